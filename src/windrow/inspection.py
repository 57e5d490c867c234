"""Read-only views of a table: what it is made of, as rows that print, turn into plain values and export Arrow."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import chain, islice
from typing import Any

from windrow.engines.labels import LabelRow, Labels
from windrow.errors import InvalidInput
from windrow.metastore import CommitKind, CommitRecord, Metastore, RunRecord, TableRecord, WindowSummary
from windrow.model.rows import Rows, like
from windrow.model.scope import DEFAULT_SOURCE
from windrow.model.shown import ShownByField
from windrow.model.split import SplitMetadata
from windrow.model.window import Window
from windrow.splits.column_plans import created_by
from windrow.statistics.cardinality_report import Cardinality, cardinality_report
from windrow.statistics.puffin import puffin_file
from windrow.statistics.report import StatisticsRow, sketch_blobs, statistics_rows

__all__ = [
    "ColumnRow",
    "CommitRow",
    "DeadLetterRow",
    "Inspect",
    "MergeRow",
    "QuarantineRow",
    "RunRow",
    "SourceRow",
    "SplitRow",
    "TableDescription",
    "TableRow",
    "VersionRow",
    "WindowRow",
    "describe",
    "history",
    "tables_as_rows",
]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


_COUNTED = ("late", "future", "conflicting", "unfit", "rounded")


@dataclass(frozen=True, slots=True)
class WindowRow:
    """A window and how many splits it is made of."""

    window: str
    start: int | None
    seconds: int | None
    splits: int
    rows: int
    size_bytes: int
    generation: int


@dataclass(frozen=True, slots=True)
class SplitRow:
    """A split, shortly."""

    split_id: str
    window: str
    rows: int
    size_bytes: int
    generation: int
    first: str | None
    last: str | None
    key: str


@dataclass(frozen=True, slots=True)
class CommitRow:
    """A commit, open or ended."""

    commit_id: str
    kind: str
    state: str
    version: int | None
    opened_at: str
    added: int
    removed: int
    rows_added: int
    rows_removed: int


@dataclass(frozen=True, slots=True)
class VersionRow:
    """A version of a table: the commit that made it, and what that added and removed."""

    version: int
    published_at: str
    kind: str
    commit_id: str
    splits_added: int
    splits_removed: int
    rows_added: int
    rows_removed: int


@dataclass(frozen=True, slots=True)
class DeadLetterRow:
    """A file of rows that an ingest dropped."""

    key: str
    rows: int
    commit_id: str
    version: int


@dataclass(frozen=True, slots=True)
class MergeRow:
    """A published merge."""

    window: str
    version: int | None
    published_at: str
    splits_in: int
    splits_out: int
    rows: int
    bytes_in: int
    bytes_out: int
    seconds: float
    why: str
    run: str
    commit_id: str


@dataclass(frozen=True, slots=True)
class QuarantineRow:
    """A split that merging leaves out; queries read it as before."""

    split_id: str
    since: str
    reason: str


@dataclass(frozen=True, slots=True)
class RunRow:
    """A run of compaction."""

    run_id: str
    state: str
    started_at: str
    seconds: float | None
    planned: int
    done: int
    skipped: int
    failed: int
    splits_in: int
    splits_out: int
    bytes_in: int
    bytes_out: int
    write_amplification: float | None
    """Bytes written for every byte that was merged for the first time."""
    rewrites: int | None
    """How often rows that it wrote had been rewritten by then, at most; None when it merged nothing."""
    rewrites_bound: int | None
    """How often the policy of that time lets a row be rewritten."""
    problems: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SourceRow:
    """A source, what came of it into the table, and what was dropped on the way."""

    source: str
    commits: int
    rows: int
    late: int = 0
    future: int = 0
    conflicting: int = 0
    unfit: int = 0
    rounded: int = 0
    """Rows that were written with times that lost digits."""


@dataclass(frozen=True, slots=True)
class ColumnRow:
    """A column, its Arrow type and its Parquet field id."""

    name: str
    type: str
    field_id: int


@dataclass(frozen=True, slots=True)
class TableRow:
    """A table of a lake, shortly."""

    name: str
    version: int
    sort: str
    window_seconds: int
    created_at: str


@dataclass(frozen=True, slots=True, repr=False)
class TableDescription(ShownByField):
    """What a table is and how much it holds at a version."""

    name: str
    table_id: str
    folder: str
    """Where its files and its Delta log are in the lake."""
    version: int
    created_at: str
    settings: dict[str, Any]
    columns: list[dict[str, Any]]
    windows: int
    splits: int
    rows: int
    size_bytes: int
    schema_epoch: int
    """How often the type of a column was changed."""


@dataclass(frozen=True, slots=True)
class Inspect:
    """The views of one table, at its newest version or at an older one."""

    metastore: Metastore
    name: str
    as_of: int | None
    table_labels: Callable[[], Labels] = field(repr=False, compare=False)
    """Makes the labels of the table, which may read rows."""
    analyze: Callable[[], object] = field(repr=False, compare=False)
    """Learns the statistics of the newest version."""

    def labels(self, column: str, where: str | None = None) -> Rows[LabelRow]:
        """Return the values of a column of text, of all rows or of those that meet a condition.

        Values that metadata is certain of are not looked for in the rows; the others are.

        >>> metrics.inspect.labels("host", "timestamp >= '2026-01-01 10:00:00'")  # doctest: +SKIP
        """
        return self.table_labels().values(column, where)

    def series(self, where: str | None = None) -> int:
        """Count the series, in all rows or in those that meet a condition."""
        return self.table_labels().series(where)

    def windows(self) -> Rows[WindowRow]:
        """Return the windows in order of time, with counts."""
        return Rows(WindowRow, tuple(map(_window_row, self.metastore.windows(*self._snapshot()))))

    def splits(self, limit: int | None = None) -> Rows[SplitRow]:
        """Return the visible splits, ordered by window."""
        splits = chain.from_iterable(self.metastore.splits(*self._snapshot()))
        return Rows(SplitRow, tuple(map(_split_row, islice(splits, limit))))

    def commits(self, limit: int | None = None) -> Rows[CommitRow]:
        """Return the commits, newest first."""
        return Rows(CommitRow, tuple(map(_commit_row, self.metastore.commits(self._table_id(), limit=limit))))

    def sources(self) -> Rows[SourceRow]:
        """Return the sources that were ingested, by name, with the rows that came of each and those dropped."""
        totals: dict[str, Counter[str]] = {}
        for each in self._published():
            if each.kind is CommitKind.INGEST:
                total = totals.setdefault(each.summary.get("source", DEFAULT_SOURCE), Counter())
                total.update(commits=1, rows=each.rows_added)
                total.update({name: int(each.summary.get(name, 0)) for name in _COUNTED})
        return Rows(SourceRow, tuple(SourceRow(name, **totals[name]) for name in sorted(totals)))

    def dead_letters(self) -> Rows[DeadLetterRow]:
        """Return the files of rows that ingests dropped, newest first; those that are not listed were not published."""
        return Rows(
            DeadLetterRow,
            tuple(
                DeadLetterRow(file["key"], file["rows"], each.commit_id, each.version or 0)
                for each in self._published()
                for file in each.summary.get("dead_letters", ())
            ),
        )

    def merges(self, limit: int | None = None) -> Rows[MergeRow]:
        """Return the merges that were published, newest first."""
        return Rows(MergeRow, tuple(map(_merge_row, islice(self._merge_commits(), limit))))

    def quarantine(self) -> Rows[QuarantineRow]:
        """Return the splits that merging leaves out, with the reasons."""
        rows = self.metastore.quarantined(self._table_id())
        return Rows(
            QuarantineRow, tuple(QuarantineRow(each.split_id, iso_time(each.since), each.reason) for each in rows)
        )

    def runs(self, limit: int | None = None) -> Rows[RunRow]:
        """Return the runs of compaction, newest first."""
        runs = self.metastore.runs(self._table_id(), limit=limit)
        rewrites = self._rewrites()
        return Rows(RunRow, tuple(_run_row(run, *rewrites.get(run.run_id, (None, None))) for run in runs))

    def columns(self) -> Rows[ColumnRow]:
        """Return the columns, in order of their field ids."""
        return _columns(self.metastore, *self._snapshot())

    def statistics(self) -> Rows[StatisticsRow]:
        """Return what is known of the values of each column; no data is read.

        >>> metrics.upkeep.analyze()  # doctest: +SKIP
        >>> metrics.inspect.statistics()  # doctest: +SKIP
        """
        return Rows(StatisticsRow, tuple(statistics_rows(self.metastore, *self._snapshot())))

    def puffin(self) -> bytes:
        """Return the sketches of all columns as a Puffin file, with DataSketches' HyperLogLog in each blob.

        >>> Path("metrics.puffin").write_bytes(metrics.inspect.puffin())  # doctest: +SKIP
        """
        table_id, version = self._snapshot()
        return puffin_file(sketch_blobs(self.metastore, table_id, version), version, created_by())

    def cardinality(self, *, learn: bool = False) -> Cardinality:
        """Return how many series there are, and where they come from: columns, pairs of labels, metrics, windows.

        Counts are put together from statistics, and no data is read. What is missing is named; with `learn` it is
        learnt first, as `upkeep.analyze()` does, by reading what was never read.

        >>> metrics.inspect.cardinality(learn=True).exploding  # doctest: +SKIP
        """
        if learn:
            if self.as_of is not None:
                raise InvalidInput(
                    f"learn: statistics of {self.name!r} are learnt of the newest version; leave at() out"
                )
            self.analyze()
        record = self.metastore.table(self.name)
        return cardinality_report(self.metastore, record, record.version if self.as_of is None else self.as_of)

    def _table_id(self) -> str:
        return self.metastore.table(self.name).table_id

    def _snapshot(self) -> tuple[str, int]:
        """Return the table's id and the version that the views are of."""
        record = self.metastore.table(self.name)
        return record.table_id, record.version if self.as_of is None else self.as_of

    def _published(self) -> Iterator[CommitRecord]:
        """Yield the commits that made the versions up to this one, newest first."""
        table_id, version = self._snapshot()
        records = self.metastore.commits(table_id)
        return (each for each in records if each.version is not None and each.version <= version)

    def _merge_commits(self) -> Iterator[CommitRecord]:
        """Yield the commits of published merges, newest first."""
        commits = self.metastore.commits(self._table_id())
        return (each for each in commits if each.kind is CommitKind.COMPACT and each.published_at is not None)

    def _rewrites(self) -> dict[str, tuple[int, int]]:
        """Return how often rows were rewritten at most, and the bound, by the run that wrote them."""
        by_run: dict[str, tuple[int, int]] = {}
        for commit in self._merge_commits():
            run, rewrites = str(commit.summary.get("run")), commit.summary.get("rewrites")
            if rewrites is not None:
                most = max(int(rewrites), by_run.get(run, (0, 0))[0])
                by_run[run] = most, int(commit.summary.get("rewrites_bound", 0))
        return by_run


def describe(metastore: Metastore, record: TableRecord, version: int) -> TableDescription:
    """Return what a table is and how much it holds."""
    windows = metastore.windows(record.table_id, version)
    return like(
        TableDescription,
        record,
        version=version,
        created_at=iso_time(record.created_at),
        settings=record.settings.to_dict(),
        columns=_columns(metastore, record.table_id, version).to_dict(),
        windows=len(windows),
        splits=sum(row.splits for row in windows),
        rows=sum(row.rows for row in windows),
        size_bytes=sum(row.size_bytes for row in windows),
        schema_epoch=metastore.history(record.table_id, version).epoch,
    )


def history(metastore: Metastore, table_id: str, version: int, limit: int | None = None) -> Rows[VersionRow]:
    """Return the versions of a table up to one of them, newest first."""
    made = {each.version: each for each in metastore.commits(table_id) if each.version is not None}
    wanted = sorted((each for each in made if each <= version), reverse=True)[:limit]
    return Rows(VersionRow, tuple(_version_row(each, made[each]) for each in wanted))


def tables_as_rows(records: list[TableRecord]) -> Rows[TableRow]:
    """Return the tables of a lake, shortly."""
    rows = (
        TableRow(each.name, each.version, str(each.settings.sort), each.settings.window, iso_time(each.created_at))
        for each in records
    )
    return Rows(TableRow, tuple(rows))


def iso_time(microseconds: int) -> str:
    """Return a moment as people read it, in UTC; as a number where the calendar ends."""
    try:
        return (_EPOCH + timedelta(microseconds=microseconds)).isoformat()
    except OverflowError:
        return f"{microseconds} us"


def _columns(metastore: Metastore, table_id: str, version: int) -> Rows[ColumnRow]:
    columns = metastore.columns(table_id, version)
    return Rows(ColumnRow, tuple(ColumnRow(each.name, str(each.type), each.field_id) for each in columns))


def _window_text(window: Window | None) -> str:
    return "none (registered)" if window is None else str(window)


def _window_row(summary: WindowSummary) -> WindowRow:
    window = summary.window
    start = None if window is None or window.overflow else window.start
    seconds = None if window is None else window.duration
    return like(WindowRow, summary, window=_window_text(window), start=start, seconds=seconds)


def _commit_row(commit: CommitRecord) -> CommitRow:
    opened_at = iso_time(commit.opened_at)
    return like(CommitRow, commit, kind=str(commit.kind), state=str(commit.state), opened_at=opened_at)


def _merge_row(commit: CommitRecord) -> MergeRow:
    summary = commit.summary
    return MergeRow(
        window=str(summary.get("window", "")),
        version=commit.version,
        published_at=iso_time(commit.published_at or 0),
        splits_in=commit.removed,
        splits_out=commit.added,
        rows=commit.rows_added,
        bytes_in=int(summary.get("bytes_in", 0)),
        bytes_out=int(summary.get("bytes_out", 0)),
        seconds=float(summary.get("seconds", 0.0)),
        why=str(summary.get("why", "")),
        run=str(summary.get("run", "")),
        commit_id=commit.commit_id,
    )


def _version_row(version: int, commit: CommitRecord) -> VersionRow:
    return like(
        VersionRow,
        commit,
        version=version,
        published_at=iso_time(commit.published_at or 0),
        kind=str(commit.kind),
        splits_added=commit.added,
        splits_removed=commit.removed,
    )


def _run_row(run: RunRecord, rewrites: int | None, rewrites_bound: int | None) -> RunRow:
    return like(
        RunRow,
        run,
        state=str(run.state),
        started_at=iso_time(run.started_at),
        seconds=None if run.ended_at is None else (run.ended_at - run.started_at) / 1e6,
        rewrites=rewrites,
        rewrites_bound=rewrites_bound,
    )


def _split_row(split: SplitMetadata) -> SplitRow:
    first, last = (None if time is None else iso_time(time) for time in (split.time_min, split.time_max))
    return like(SplitRow, split, window=_window_text(split.window), rows=split.row_count, first=first, last=last)
