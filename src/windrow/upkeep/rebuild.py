"""A table whose metastore was lost, made again from its Delta mirror and its files.

The mirror says which files were visible and at which version; each file says the rest of itself. What the mirror does
not know is not brought back: a file that it does not show may have been retired, or never published.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from typing import Any
from urllib.parse import unquote

from windrow.context import Context
from windrow.errors import AlreadyExists, Damaged, NotFound
from windrow.metastore import CommitKind, CommitRecord, CommitState, LostTable, TableColumn, TableRecord
from windrow.mirror.actions import PREFIX, type_of
from windrow.mirror.follow import Mirror
from windrow.mirror.log import Entry, Log
from windrow.model.settings import TableSettings
from windrow.model.split import SidecarLocation, SplitMetadata
from windrow.storage import is_foreign
from windrow.upkeep.files import own_files
from windrow.upkeep.footers import footer_at

__all__ = ["Rebuilt", "rebuild_table"]

_CANNOT_KNOW = (
    "versions before this one, pins, open commits, runs of compaction and splits in quarantine",
    "settings that were changed after the last commit",
    "commits whose entry in the Delta log was not written, or was lost with its end",
)


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """What was brought back, and what was not."""

    table: str
    version: int
    splits: int
    rows: int
    missing_files: tuple[str, ...]
    """Files that the mirror shows and that are not there any more, or are not what it says; their rows are lost."""
    missing_rows: int
    unknown_files: int
    """Files of commits that the mirror does not know; they are left as they are, and never read."""
    log_ends: str | None
    """Where the log could not be read on; None when it was read to its end."""
    cannot_know: tuple[str, ...] = _CANNOT_KNOW

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self)


@dataclass
class _History:
    """What the entries of a log say, one after the other."""

    table: str
    version: int = -1
    number: int = -1
    configuration: dict[str, str] = field(default_factory=dict)
    live: dict[str, tuple[dict[str, Any], int]] = field(default_factory=dict)
    """By path: the action that shows a file, and the version that added it."""
    commits: list[CommitRecord] = field(default_factory=list)
    checkpoints: dict[str, tuple[str, str]] = field(default_factory=dict)
    ends: str | None = None

    @classmethod
    def read(cls, log: Log) -> _History:
        """Read a log up to its end, or to where it breaks off."""
        history = cls(log.table)
        for entry in log.entries():
            if entry.number != history.number + 1:
                history.ends = f"entry {history.number + 1} of the Delta log is missing; what comes after is not used"
                break
            if entry.actions is None:
                history.ends = f"entry {entry.number} of the Delta log cannot be read; it and what follows is not used"
                break
            history.take(entry)
        return history

    def take(self, entry: Entry) -> None:
        """Go one entry further; entries of others say nothing of our versions, but what they add and remove counts."""
        origin = entry.origin
        self.number = entry.number
        if origin is not None:
            self.version = origin["version"]
            self._take_origin(entry, origin)
        for described in entry.of("metaData"):
            self.configuration = described.get("configuration") or self.configuration
        for removed in entry.of("remove"):
            self.live.pop(removed["path"], None)
        for added in entry.of("add"):
            first = self.live.get(added["path"], (None, self.version))[1]
            self.live[added["path"]] = (added, first)

    def _take_origin(self, entry: Entry, origin: dict[str, Any]) -> None:
        if not origin["commit_id"]:
            return
        added, removed = list(entry.of("add")), list(entry.of("remove"))
        self.commits.append(
            CommitRecord(
                commit_id=origin["commit_id"],
                table_id="",
                kind=CommitKind(origin["kind"]),
                state=CommitState.PUBLISHED,
                attempt=1,
                opened_at=origin["published_at"],
                lease_expires_at=origin["published_at"],
                published_at=origin["published_at"],
                version=origin["version"],
                added=len(added),
                removed=len(removed),
                rows_added=sum(_rows(action) for action in added),
            )
        )
        for source, position in origin["checkpoints"].items():
            self.checkpoints[source] = (position, origin["commit_id"])

    def said(self, name: str) -> str:
        """Return what the log says of the table."""
        value = self.configuration.get(PREFIX + name)
        if value is None:
            raise Damaged(
                f"{self.table}/_delta_log: it does not say the table's {name}; this is no mirror of a Windrow table"
            )
        return value

    @property
    def record(self) -> TableRecord:
        """The table at the version where the log ends."""
        return TableRecord(
            table_id=self.said("table_id"),
            name=self.table,
            settings=TableSettings.from_json(self.said("settings")),
            created_at=int(self.said("created_at")),
            version=self.version,
            oldest_version=self.version,
            schema_epoch=int(self.said("schema_epoch")),
        )


def rebuild_table(context: Context, name: str) -> Rebuilt:
    """Make a table again that the metastore does not know; AlreadyExists when it does."""
    if any(each.name == name for each in context.metastore.tables()):
        raise AlreadyExists(f"the metastore knows the table {name!r}; there is nothing to rebuild")
    log = Log(context.store, name)
    history = _History.read(log)
    if history.version < 0:
        raise NotFound(f"{log.folder}: there is no Delta log to rebuild the table {name!r} from; restore a backup")
    splits, missing = [], []
    for path, (added, version) in sorted(history.live.items()):
        found = _split(context, history, path, added)
        if found is None:
            missing.append(path)
        else:
            splits.append((found, version))
    context.metastore.restore_table(_lost(history, splits))
    if history.ends is not None:
        mirror = Mirror(context.metastore, context.store, context.store_options)
        mirror.restate(context.metastore.table(name), history.number + 1)
    return Rebuilt(
        table=name,
        version=history.version,
        splits=len(splits),
        rows=sum(split.row_count for split, _ in splits),
        missing_files=tuple(missing),
        missing_rows=sum(_rows(history.live[path][0]) for path in missing),
        unknown_files=sum(1 for _ in _unknown(context, name, history)),
        log_ends=history.ends,
    )


def _lost(history: _History, splits: list[tuple[SplitMetadata, int]]) -> LostTable:
    columns = json.loads(history.said("columns"))
    return LostTable(
        record=history.record,
        columns=tuple(TableColumn(name, type_of(text), field_id) for name, field_id, text in columns),
        attributes=tuple(json.loads(history.said("attributes"))),
        commits=tuple(_one_each(history.commits)),
        splits=tuple(splits),
        checkpoints=dict(history.checkpoints),
    )


def _one_each(commits: list[CommitRecord]) -> Iterator[CommitRecord]:
    """A version that was stated again is stated by the same commit; the first statement has its counts."""
    seen: set[str] = set()
    for commit in commits:
        if commit.commit_id not in seen:
            seen.add(commit.commit_id)
            yield commit


def _split(context: Context, history: _History, path: str, added: dict[str, Any]) -> SplitMetadata | None:
    """Return a file as the split that it says it is; None when it is missing or is another one."""
    outside = json.loads((added.get("tags") or {}).get(PREFIX + "split", "null"))
    if outside is None:
        return None
    if is_foreign(path):
        return SplitMetadata.from_dict(outside)
    key = f"{history.table}/{unquote(path)}"
    try:
        info, footer = footer_at(context.store, key)
        pairs = {name: value for name, value in footer.key_value.items() if value is not None}
        split = SplitMetadata.from_key_value(pairs, key=key, size_bytes=info.size, etag=outside["etag"])
    except (NotFound, Damaged):  # a store that fails says nothing of the file: that stops the rebuild
        return None
    if info.size != added["size"] or split.split_id != outside["split_id"]:
        return None
    if split.scope.index_uid != history.said("table_id"):
        return None
    place = outside["sidecar"]
    return replace(split, sidecar=None if place is None else SidecarLocation(*place))


def _unknown(context: Context, name: str, history: _History) -> Iterator[str]:
    known = {commit.commit_id for commit in history.commits}
    for split_id, info in own_files(context.store, name):
        parts = split_id.split("-")
        if known.isdisjoint("-".join(parts[:count]) for count in range(1, len(parts))):
            yield info.key


def _rows(added: dict[str, Any]) -> int:
    return int(json.loads(added.get("stats") or "{}").get("numRecords", 0))
