"""The rows of a checkpoint: one for each action that holds after an entry of the log, in the columns of Delta."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from windrow.mirror.log import State

__all__ = ["SCHEMA", "checkpoint_rows"]

_TEXTS = pa.map_(pa.string(), pa.string())
_NAMES = pa.list_(pa.string())
SCHEMA = pa.schema(
    {
        "txn": pa.struct({"appId": pa.string(), "version": pa.int64()}),
        "add": pa.struct(
            {
                "path": pa.string(),
                "partitionValues": _TEXTS,
                "size": pa.int64(),
                "modificationTime": pa.int64(),
                "dataChange": pa.bool_(),
                "stats": pa.string(),
                "tags": _TEXTS,
            }
        ),
        "remove": pa.struct({"path": pa.string(), "deletionTimestamp": pa.int64(), "dataChange": pa.bool_()}),
        "metaData": pa.struct(
            {
                "id": pa.string(),
                "name": pa.string(),
                "description": pa.string(),
                "format": pa.struct({"provider": pa.string(), "options": _TEXTS}),
                "schemaString": pa.string(),
                "partitionColumns": _NAMES,
                "configuration": _TEXTS,
                "createdTime": pa.int64(),
            }
        ),
        "protocol": pa.struct(
            {
                "minReaderVersion": pa.int32(),
                "minWriterVersion": pa.int32(),
                "readerFeatures": _NAMES,
                "writerFeatures": _NAMES,
            }
        ),
    }
)

_TOMBSTONE_MILLISECONDS = 7 * 24 * 3600 * 1000
"""So long others must not delete the files that were removed: Delta's default."""

Action = Mapping[str, Any]


def checkpoint_rows(state: State, moment: int | None, base: pa.Table | None) -> pa.Table:
    """Return the rows after some entries, which `state` took; `base` is the checkpoint before the first of them.

    Files that were removed long before `moment`, in milliseconds, are forgotten.
    """
    oldest = None if moment is None else moment - _TOMBSTONE_MILLISECONDS
    rows: list[Action] = [
        *({"protocol": each} for each in (state.protocol,) if each is not None),
        *({"metaData": each} for each in (state.metadata,) if each is not None),
        *({"txn": {"appId": name, "version": version}} for name, version in state.versions.items()),
        *({"remove": each} for each in _tombstones(state.removed, oldest)),
        *({"add": {**added, "dataChange": False}} for added in state.live.values()),
    ]
    own = pa.Table.from_pylist(rows, schema=SCHEMA)
    return own if base is None else pa.concat_tables([own, *_still_true(base, state, oldest)])


def _tombstones(removed: Mapping[str, int | None], oldest: int | None) -> Iterable[Action]:
    for path, moment in removed.items():
        if oldest is None or moment is None or moment >= oldest:
            yield {"path": path, "deletionTimestamp": moment, "dataChange": False}


def _still_true(base: pa.Table, state: State, oldest: int | None) -> Iterable[pa.Table]:
    """What a checkpoint says of files of which the entries after it say nothing."""
    changed = pa.array([*state.live, *state.removed], pa.string())

    def rows(name: str, holds: Callable[[pa.Array], Any]) -> pa.Table:
        table = base.filter(pc.is_valid(base[name])).combine_chunks()
        column = table[name].combine_chunks() if table.num_rows else pa.array([], SCHEMA.field(name).type)
        return table.filter(pc.and_(pc.invert(pc.is_in(pc.struct_field(column, "path"), changed)), holds(column)))

    def is_young(removed: pa.Array) -> Any:
        moments = pc.struct_field(removed, "deletionTimestamp")
        return pc.fill_null(pc.greater_equal(moments, -(2**63) if oldest is None else oldest), fill_value=True)

    yield rows("remove", is_young)
    yield rows("add", pc.is_valid)
