"""What a Delta log shows, compared with what the metastore says of the same version."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from windrow.metastore import CommitKind, TableColumn
from windrow.mirror import actions
from windrow.mirror.actions import Described, Origin
from windrow.mirror.log import State
from windrow.mirror.schema import partitions_of, schema_of
from windrow.mirror.shape import SPLIT_TAG
from windrow.model.settings import TableSettings
from windrow.model.sort_schema import SortSchema
from windrow.model.split import SplitMetadata
from windrow.model.stored_types import type_from_text
from windrow.model.widening import widened

__all__ = ["Difference", "add_difference", "compare_adds", "described_differences", "differences"]

_SETTLED = ("table_id", "created_at", "schema_epoch", "attributes", "epochs")
_ANY = Origin(0, "", CommitKind.INGEST, 0)


@dataclass(frozen=True, slots=True)
class Difference:
    """Something of which log and metastore say different things."""

    problem: str
    is_sealed: bool
    """Whether an intact entry says it: then the metastore is in doubt, not the log."""


def differences(state: State, visible: Iterable[SplitMetadata], described: Described) -> Iterator[Difference]:
    """Yield what differs between what readers of the log see and a version of the table."""
    by_path = {actions.path_of(described.table.folder, split.key): split for split in visible}
    for problem, path in compare_adds(state.live, by_path, described):
        yield Difference(problem, path in state.sealed if path in state.live else state.is_sealed)
    yield from described_differences(state, described)


def compare_adds(
    added: Mapping[str, Mapping[str, Any]], splits: Mapping[str, SplitMetadata], described: Described
) -> Iterator[tuple[str, str]]:
    """Yield what differs between files that a log shows and splits, both by path, and the path."""
    for path in sorted(added.keys() ^ splits.keys()):
        yield f"differs in the file {path}", path
    for path in sorted(added.keys() & splits.keys()):
        what = add_difference(added[path], splits[path], described)
        if what is not None:
            yield f"differs in the {what} of the file {path}", path


def add_difference(added: Mapping[str, Any], split: SplitMetadata, described: Described) -> str | None:
    """Return what an action says of a split that the metastore does not; None when they agree.

    Columns may have come and widened since the action was written, and a sidecar may have been made again.
    """
    try:
        expected = actions.add(split, described, _ANY)["add"]
    except (ValueError, TypeError):  # sort schema and zones do not belong together
        return "split, which the metastore cannot describe,"
    for name in ("size", "modificationTime"):
        if added[name] != expected[name]:
            return name
    if not added["partitionValues"].items() <= actions.folders_of(split).items():
        return "partition values"
    if not _is_same_statistics(added.get("stats"), split, described):
        return "statistics"
    stated = json.loads((added.get("tags") or {}).get(SPLIT_TAG, "{}"))
    outside = ("split_id", "etag", "digest")
    if [stated.get(name) for name in outside] != [getattr(split, name) for name in outside]:
        return "split"
    return None


def _is_same_statistics(text: str | None, split: SplitMetadata, described: Described) -> bool:
    stated, expected = json.loads(text or "{}"), actions.statistics(split, described)
    if stated.get("numRecords") != expected["numRecords"]:
        return False
    bounded = {described.table.settings.timestamp}
    if split.zones:
        bounded.update(SortSchema.parse(split.scope.sort_schema).column_names)
    for kind in ("minValues", "maxValues", "nullCount"):
        values = stated.get(kind)
        if not isinstance(values, dict) or not values.keys() <= bounded:
            return False
        if any(values[name] != expected[kind][name] for name in values.keys() & expected[kind].keys()):
            return False
    return bool(stated.keys() == expected.keys())


def described_differences(state: State, described: Described) -> Iterator[Difference]:
    """Yield what differs between protocol and metadata of a log and a version of the table."""
    if state.protocol != actions.protocol(described)["protocol"]:
        yield Difference("has another protocol", is_sealed=False)
    if state.metadata is None:
        yield Difference("does not describe the table", is_sealed=False)
        return
    expected = actions.metadata(described)["metaData"]
    # The table may have been renamed since; its name stands there twice.
    expected["name"] = (state.metadata.get("configuration") or {}).get(f"{actions.PREFIX}name")
    for name in ("id", "name", "format", "createdTime"):
        if state.metadata.get(name) != expected[name]:
            yield Difference(f"describes the table with another {name}", state.is_described)
    problem = _configuration_problem(state.metadata, described)
    if problem is not None:
        yield Difference(f"describes the table with {problem}", state.is_described)


def _configuration_problem(metadata: Mapping[str, Any], described: Described) -> str | None:
    stated, expected = metadata.get("configuration") or {}, described.configuration
    for name in (f"{actions.PREFIX}{each}" for each in _SETTLED):
        if stated.get(name) != expected.get(name):
            return f"another {name}"
    try:
        # Settings may have changed since.
        TableSettings.from_json(stated[f"{actions.PREFIX}settings"])
        listed = json.loads(stated[f"{actions.PREFIX}columns"])
        columns = [TableColumn(name, type_from_text(text), field_id) for name, field_id, text in listed]
    except Exception as error:
        return f"settings or columns that cannot be read ({error})"
    if json.loads(metadata["schemaString"]) != schema_of(columns):
        return "another schema"
    if metadata["partitionColumns"] != partitions_of(columns):
        return "other partition columns"
    now = {column.name: column for column in described.columns}
    stated_ids = {column.name: column.field_id for column in columns}
    if stated_ids != {name: column.field_id for name, column in now.items()}:
        return "other columns"
    narrow = (each.name for each in columns if widened(each.type, now[each.name].type) != now[each.name].type)
    changed = next(narrow, None)
    return None if changed is None else f"another type of the column {changed!r}"
