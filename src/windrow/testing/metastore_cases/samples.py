"""What the cases are made of: tables, splits, a clock that is set by hand, and looks at all that a metastore says."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from windrow.metastore import (
    CommitKind,
    CommitRecord,
    Metastore,
    Pin,
    Published,
    SplitQuery,
    TableRecord,
    WindowSummary,
)
from windrow.model.scope import CompactionScope
from windrow.model.settings import TableSettings
from windrow.model.split import SidecarLocation, SplitMetadata
from windrow.model.window import Window
from windrow.model.zones import ColumnZone, SortColumnValue

__all__ = [
    "MINUTES_15",
    "SETTINGS",
    "SOURCES",
    "TABLE",
    "FakeClock",
    "OpenAgain",
    "a_split",
    "a_table",
    "a_table_of",
    "add",
    "begin",
    "everything",
    "ids",
    "scope",
    "zone",
]

TABLE = "table-1"
MINUTES_15 = 900
SETTINGS = TableSettings.of(sort="host|timestamp&region/V2", window=MINUTES_15)
SOURCES = ("default", "kafka")
"""The sources whose checkpoints are looked at."""

EVERYTHING = SplitQuery()

OpenAgain = Callable[[], Metastore]


@dataclass
class FakeClock:
    """A clock that stands still until it is moved."""

    now: int = 1_700_000_000_000_000

    def __call__(self) -> int:
        return self.now

    def advance(self, seconds: float) -> None:
        """Move the clock."""
        self.now += int(seconds * 1_000_000)


def a_table(metastore: Metastore, name: str = "metrics", table_id: str = TABLE) -> TableRecord:
    """Create a table."""
    return metastore.create_table(name, SETTINGS, table_id=table_id)


def scope(table_id: str = TABLE, duration: int = MINUTES_15, **parts: Any) -> CompactionScope:
    """Return a scope; `parts` replace its other parts."""
    plain = {"source_id": "default", "partition_id": 0, "doc_mapping_uid": 0, "sort_schema": str(SETTINGS.sort)}
    return CompactionScope(table_id, window_duration=duration, **{**plain, **parts})


def zone(low: str | float | None, high: str | float | None, nulls: int = 0, regex: str | None = None) -> ColumnZone:
    """Return a zone with these bounds."""
    return ColumnZone(SortColumnValue.of(low), SortColumnValue.of(high), nulls, regex)


def a_split(split_id: str, commit_id: str, start: int = 0, rows: int = 10, **fields: Any) -> SplitMetadata:
    """Return a split of the window that starts at a second; `fields` replace what is plain in it."""
    window = Window(start, MINUTES_15)
    plain: dict[str, Any] = {
        "split_id": split_id,
        "commit_id": commit_id,
        "scope": scope(),
        "window": window,
        "key": f"metrics/partition_id=0/window_start={start}/{split_id}.parquet",
        "size_bytes": 1000 + rows,
        "row_count": rows,
        "created_at": 1_700_000_000_000_000,
        "etag": f'"{split_id}"',
        "time_min": window.start * 1_000_000,
        "time_max": window.end * 1_000_000 - 1,
        "zones": (zone("a", "m", 0, "(?s)(?:a|m)"), zone(start, start + 1), zone(None, None, rows)),
        "sidecar": SidecarLocation(f"metrics/partition_id=0/window_start={start}/_{split_id}.pm", 0, 4096),
    }
    return SplitMetadata(**{**plain, **fields})


def begin(
    metastore: Metastore, commit_id: str, kind: CommitKind = CommitKind.INGEST, *, table_id: str = TABLE
) -> CommitRecord:
    """Open a commit with a lease of a minute."""
    return metastore.open_commit(table_id, kind, commit_id=commit_id, lease=60)


def add(metastore: Metastore, commit_id: str, *splits: SplitMetadata, **more: Any) -> Published:
    """Open a commit and publish splits with it; when none are given, one of the same name as the commit."""
    begin(metastore, commit_id)
    return metastore.publish(commit_id, add=splits or (a_split(commit_id, commit_id),), **more)


def a_table_of(metastore: Metastore, columns: pa.Schema) -> None:
    """Create a table with columns; commit `c1` is the first that names them."""
    a_table(metastore)
    metastore.reserve_columns(TABLE, columns)
    add(metastore, "c1", columns=columns.names)


def ids(
    metastore: Metastore,
    at: int | Pin,
    query: SplitQuery = EVERYTHING,
    *,
    table_id: str = TABLE,
    page_size: int = 1000,
) -> list[str]:
    """Return the ids of a listing, in its order."""
    pages = metastore.splits(table_id, at, query, page_size=page_size)
    return [split.split_id for page in pages for split in page]


def everything(metastore: Metastore) -> dict[str, Any]:
    """Return all that a metastore says, at every version of every table: a call that is refused changes none of it."""
    return {record.table_id: _of_table(metastore, record) for record in metastore.tables()}


def _of_table(metastore: Metastore, record: TableRecord) -> dict[str, Any]:
    table_id, versions = record.table_id, range(record.version + 1)
    return {
        "record": record,
        "columns": [metastore.columns(table_id, version) for version in versions],
        "attributes": [metastore.attributes(table_id, version) for version in versions],
        "history": [metastore.history(table_id, version) for version in versions],
        "commits": list(metastore.commits(table_id)),
        "splits": [_flat(metastore.splits(table_id, version)) for version in versions],
        "windows": [_sorted(metastore.windows(table_id, version)) for version in versions],
        "changes": list(metastore.changes(table_id, 0)),
        "checkpoints": [metastore.checkpoint(table_id, source) for source in SOURCES],
        "pins": metastore.pins(table_id),
        "groups": list(metastore.groups(table_id)),
        "quarantined": metastore.quarantined(table_id),
        "runs": metastore.runs(table_id),
    }


def _flat(pages: Iterable[list[SplitMetadata]]) -> list[SplitMetadata]:
    return [split for page in pages for split in page]


def _sorted(windows: list[WindowSummary]) -> list[str]:
    return sorted(map(repr, windows))
