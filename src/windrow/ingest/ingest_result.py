"""What an ingest did."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from windrow.errors import InvalidInput
from windrow.ingest.task_reports import Reports
from windrow.metastore import CommitRecord, Published
from windrow.model.shown import ShownByField

__all__ = ["IngestResult", "nothing_of", "result_of", "summary_of"]


@dataclass(frozen=True, slots=True, repr=False)
class IngestResult(ShownByField):
    """One published ingest, counted."""

    table: str
    commit_id: str
    version: int
    rows: int
    splits: int
    windows: int
    size_bytes: int
    null_timestamps: int
    """Rows without a timestamp, which lie in the overflow window."""
    late: int = 0
    """Rows that were dropped because they came too late."""
    future: int = 0
    """Rows that were dropped because they lie too far ahead."""
    conflicting: int = 0
    """Rows that were dropped because of their types."""
    unfit: int = 0
    """Rows that were dropped because they lack what a point needs, or have a time out of range."""
    rounded: int = 0
    """Rows of which a time lost digits, since the table stores microseconds."""
    dead_letters: tuple[str, ...] = ()
    """The files that keep dropped rows, relative to the lake."""
    replayed: bool = False
    """The batch had been published before: this time nothing was written."""
    warnings: tuple[str, ...] = ()
    """What to look at, though the rows were taken."""


_COUNTED = ("windows", "size_bytes", "null_timestamps", "late", "future", "conflicting", "unfit", "rounded")


def summary_of(reports: Reports) -> dict[str, Any]:
    """Return what is stored with the commit, so that a replay reports what the first run did."""
    splits, counts = reports.splits, reports.counts
    return {
        "windows": len({split.window for split in splits}),
        "size_bytes": sum(split.size_bytes for split in splits),
        "null_timestamps": sum(split.row_count for split in splits if split.window and split.window.overflow),
        "late": counts.late,
        "future": counts.future,
        "conflicting": counts.conflicting,
        "unfit": counts.unfit,
        "rounded": counts.rounded,
        "dead_letters": [asdict(each) for each in reports.dead_letters],
    }


def nothing_of(table: str, commit_id: str, version: int) -> IngestResult:
    """Return the result of an ingest without rows: nothing was published, and the version is the one before."""
    return IngestResult(table, commit_id, version, rows=0, splits=0, windows=0, size_bytes=0, null_timestamps=0)


def result_of(
    table: str,
    done: Published | CommitRecord,
    summary: Mapping[str, Any],
    *,
    replayed: bool = False,
    warnings: Sequence[str] = (),
) -> IngestResult:
    """Return what a published commit did."""
    if done.version is None:
        raise InvalidInput(f"commit {done.commit_id} of table {table!r} is not published; it has no result")
    counts: dict[str, Any] = {name: int(summary.get(name, 0)) for name in _COUNTED}
    counts["dead_letters"] = tuple(each["key"] for each in summary.get("dead_letters", ()))
    counts |= {"replayed": replayed, "warnings": tuple(warnings)}
    return IngestResult(table, done.commit_id, done.version, done.rows_added, done.added, **counts)
