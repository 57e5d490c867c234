"""What a version of a table is in Delta's words: actions, one JSON object each, and what Windrow adds to them.

An entry of the log is made from what the metastore says of a version and from nothing else, so that every writer
writes the same.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote

import pyarrow as pa
from pyarrow import types

from windrow.metastore import CommitKind, TableColumn, TableRecord
from windrow.mirror.schema import delta_type, partitions_of, schema_of
from windrow.model.epochs import OldValues, SchemaHistory, TypeChange
from windrow.model.sort_schema import SortSchema
from windrow.model.split import SplitMetadata
from windrow.model.stored_types import type_from_text, type_to_text
from windrow.model.zones import ValueKind
from windrow.storage import is_foreign

__all__ = [
    "PREFIX",
    "Action",
    "Described",
    "Origin",
    "add",
    "app_id",
    "commit_info",
    "entry_of",
    "folders_of",
    "history_of",
    "is_intact",
    "metadata",
    "path_of",
    "protocol",
    "remove",
    "statistics",
    "transaction",
]

PREFIX = "windrow."
_FEATURES = ["timestampNtz"]
_OF_EPOCHS = "windrowSchemaEpochs"
"""A feature that no other reader has: they refuse the table instead of reading old values as what they are not."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Action = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Origin:
    """Who made a version of a table."""

    version: int
    commit_id: str
    kind: CommitKind
    published_at: int


@dataclass(frozen=True, slots=True)
class Described:
    """A table as its mirror describes it."""

    table: TableRecord
    columns: Sequence[TableColumn]
    attributes: Sequence[str]
    history: SchemaHistory = field(default_factory=SchemaHistory)
    is_mixed: bool = False
    """Whether splits of earlier schema epochs are visible, which only Windrow can read."""

    @property
    def configuration(self) -> dict[str, str]:
        """What Delta keeps for us: enough to make the table again."""
        columns = [[each.name, each.field_id, type_to_text(each.type)] for each in self.columns]
        values = {
            "table_id": self.table.table_id,
            "name": self.table.name,
            "settings": self.table.settings.to_json(),
            "created_at": str(self.table.created_at),
            "schema_epoch": str(self.table.schema_epoch),
            "columns": json.dumps(columns, ensure_ascii=False),
            "attributes": json.dumps(list(self.attributes), ensure_ascii=False),
        }
        if self.history.epoch:
            values["epochs"] = _history_text(self.history)
        return {PREFIX + name: value for name, value in values.items()}

    @property
    def digest(self) -> str:
        """Changes when the description does."""
        return hashlib.sha256(json.dumps(self.configuration, sort_keys=True).encode()).hexdigest()[:16]


def app_id(table: TableRecord) -> str:
    """Return the name under which Delta keeps the version of a table."""
    return f"{PREFIX}{table.table_id}"


def protocol(described: Described) -> Action:
    """Return what readers must know; writers other than Windrow have no business in a mirror."""
    both = [*_FEATURES, _OF_EPOCHS] if described.is_mixed else _FEATURES
    features = {"readerFeatures": both, "writerFeatures": [*both, "appendOnly", "invariants"]}
    return {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, **features}}


def metadata(described: Described) -> Action:
    """Return the schema, and what is needed to make the table again."""
    return {
        "metaData": {
            "id": _uuid(described.table.table_id),
            "name": described.table.name,
            "format": {"provider": "parquet", "options": {}},
            "schemaString": json.dumps(schema_of(described.columns), ensure_ascii=False),
            "partitionColumns": partitions_of(described.columns),
            "configuration": described.configuration,
            "createdTime": described.table.created_at // 1000,
        }
    }


def commit_info(described: Described, origin: Origin, checkpoints: Mapping[str, str]) -> Action:
    """Return who made the version, when and why."""
    # The digest comes before whatever else may be named so; `entry_of` fills it in.
    ours = asdict(origin) | {
        "digest": "",
        "checkpoints": dict(checkpoints),
        "description": described.digest,
        "partitions": partitions_of(described.columns),
    }
    if described.is_mixed:
        ours["mixed"] = True
    return {
        "commitInfo": {
            "timestamp": origin.published_at // 1000,
            "operation": str(origin.kind).upper(),
            "operationParameters": {},
            "engineInfo": "windrow",
            "windrow": ours,
        }
    }


def transaction(described: Described, origin: Origin) -> Action:
    """Return the version of the table in the way in which Delta keeps versions of others."""
    return {"txn": {"appId": app_id(described.table), "version": origin.version}}


def add(split: SplitMetadata, described: Described, origin: Origin) -> Action:
    """Return the action by which a split appears."""
    return {
        "add": {
            "path": path_of(described.table.folder, split.key),
            "partitionValues": _partition_values(split, described),
            "size": split.size_bytes,
            "modificationTime": split.created_at // 1000,
            "dataChange": origin.kind is not CommitKind.COMPACT,
            "stats": json.dumps(statistics(split, described), ensure_ascii=False),
            "tags": {PREFIX + "split": json.dumps(_outside(split), ensure_ascii=False)},
        }
    }


def remove(path: str, origin: Origin) -> Action:
    """Return the action by which a file disappears."""
    return {
        "remove": {
            "path": path,
            "deletionTimestamp": origin.published_at // 1000,
            "dataChange": origin.kind is not CommitKind.COMPACT,
        }
    }


def path_of(table: str, key: str) -> str:
    """Return where a file is, as Delta writes it: below the table's folder, or the whole URL of a registered file."""
    return key if is_foreign(key) else quote(key.removeprefix(f"{table}/"), safe="/=-_.~")


def _outside(split: SplitMetadata) -> dict[str, Any]:
    """What a file cannot say of itself; of a registered file, all."""
    values = split.to_dict()
    return (
        values if split.window is None else {name: values[name] for name in ("split_id", "etag", "sidecar", "digest")}
    )


def _partition_values(split: SplitMetadata, described: Described) -> dict[str, str | None]:
    values = folders_of(split)
    return {name: values[name] for name in partitions_of(described.columns)}


def folders_of(split: SplitMetadata) -> dict[str, str | None]:
    """Return the folders of a split as Delta writes partition values."""
    return {
        "partition_id": str(split.scope.partition_id),
        "window_start": None if split.window is None else str(split.window.start),
    }


def statistics(split: SplitMetadata, described: Described) -> dict[str, Any]:
    """Return bounds that hold for what a reader sees. Floats have none: a NaN is within no bounds."""
    low: dict[str, Any] = {}
    high: dict[str, Any] = {}
    nulls: dict[str, int] = {}
    kinds = {column.name: column.type for column in described.columns if delta_type(column.type) is not None}
    names = SortSchema.parse(split.scope.sort_schema).column_names if split.zones else ()
    for name, zone in zip(names, split.zones, strict=True):
        if name not in kinds:
            continue
        nulls[name] = zone.null_count
        if _has_bounds(kinds[name], zone.minimum.kind) and _has_bounds(kinds[name], zone.maximum.kind):
            low[name], high[name] = zone.minimum.value, zone.maximum.value
    time = described.table.settings.timestamp
    if types.is_timestamp(kinds.get(time, pa.null())) and split.time_min is not None and split.time_max is not None:
        low[time], high[time] = (_moment(each, kinds[time]) for each in (split.time_min, split.time_max))
    return {"numRecords": split.row_count, "minValues": low, "maxValues": high, "nullCount": nulls}


def _has_bounds(kind: pa.DataType, bound: ValueKind) -> bool:
    if bound is ValueKind.STRING:
        return bool(types.is_string(kind))
    return bound is ValueKind.I64 and bool(types.is_signed_integer(kind))


def _moment(microseconds: int, kind: pa.TimestampType) -> str | None:
    try:
        moment = _EPOCH + timedelta(microseconds=microseconds)
    except OverflowError:
        return None
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%f") + ("Z" if kind.tz else "")


def _uuid(text: str) -> str:
    """Delta wants a UUID; a table's id always gives the same."""
    digest = hashlib.sha256(text.encode()).hexdigest()
    return "-".join((digest[:8], digest[8:12], digest[12:16], digest[16:20], digest[20:32]))


def _history_text(history: SchemaHistory) -> str:
    """The epochs before the newest: types of columns, and what ended each."""
    types = {
        epoch: {name: type_to_text(kind) for name, kind in kinds.items()}
        for epoch, kinds in history.types.items()
        if epoch < history.epoch
    }
    changes = [[each.epoch, each.since_version, each.column, each.rule] for each in history.changes]
    return json.dumps({"types": types, "changes": changes}, ensure_ascii=False)


def history_of(text: str | None, epoch: int, columns: Sequence[TableColumn]) -> SchemaHistory:
    """Read the epochs that a description carries; `columns` are those of the newest."""
    if text is None or not epoch:
        return SchemaHistory()
    stated = json.loads(text)
    types = {
        int(number): {name: type_from_text(kind) for name, kind in kinds.items()}
        for number, kinds in stated["types"].items()
    }
    types[epoch] = {each.name: each.type for each in columns}
    changes = tuple(
        TypeChange(int(begun), int(since), str(column), OldValues(rule))
        for begun, since, column, rule in stated["changes"]
    )
    return SchemaHistory(epoch, types, changes)


def entry_of(number: int, actions: Iterable[Action]) -> bytes:
    """Return an entry of the log: a line for each action, and in ours a digest of all its bytes."""
    text = "".join(json.dumps(action, ensure_ascii=False) + "\n" for action in actions).encode()
    return text.replace(_sealed(""), _sealed(_digest(number, text)), 1)


def is_intact(number: int, entry: bytes, digest: str) -> bool:
    """Whether an entry is, to the byte, the one that carries this digest and number."""
    return _digest(number, entry.replace(_sealed(digest), _sealed(""), 1)) == digest


def _sealed(digest: str) -> bytes:
    return f'"digest": "{digest}"'.encode()


def _digest(number: int, text: bytes) -> str:
    return hashlib.sha256(b"%d\n%b" % (number, text)).hexdigest()
