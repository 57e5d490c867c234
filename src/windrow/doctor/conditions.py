"""Conditions under which a table is not well: each looks at one thing, and gives a finding where it is wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from statistics import median

from windrow.compaction.planner import PlannedMerge, Planner
from windrow.context import Context
from windrow.metastore import CommitKind, CommitRecord, GroupSummary, TableRecord
from windrow.model.scope import DEFAULT_SOURCE
from windrow.model.sparse import LONGEST, Spread, sparse_warning
from windrow.model.units import format_bytes, format_count, format_seconds
from windrow.statistics.cardinality import cardinality_of

__all__ = ["CONDITIONS", "LAG", "Condition", "Examined", "Finding"]

LAG = 600
"""Seconds in which a closed window is expected to be compacted."""
_SECOND = 10**6
_LONG_PIN = 86_400
_FEW_COMMITS = 20
_FEW_ROWS = 100
_DROPPED = ("late", "future", "conflicting", "unfit")
_RECENT_RUNS = 20


@dataclass(frozen=True, slots=True)
class Finding:
    """One condition that a table is in: the figure that shows it, the likely cause, and the command that helps."""

    table: str
    condition: str
    figure: str
    cause: str
    command: str
    """Says first what it would do, where it changes anything."""


@dataclass(frozen=True)
class Examined:
    """A table, and what several conditions look at; each is read once."""

    context: Context
    table: TableRecord
    lag: int = LAG

    @property
    def now(self) -> int:
        """Microseconds since the epoch."""
        return self.context.now()

    @cached_property
    def groups(self) -> list[GroupSummary]:
        """Visible splits, counted by scope and window."""
        return list(self.context.metastore.groups(self.table.table_id))

    @cached_property
    def published(self) -> list[CommitRecord]:
        """The commits that made the versions, newest first."""
        commits = self.context.metastore.commits(self.table.table_id)
        return [each for each in commits if each.version is not None]

    def finding(self, condition: str, figure: str, cause: str, command: str) -> Finding:
        """A finding of this table."""
        return Finding(self.table.name, condition, figure, cause, command)


Condition = Callable[[Examined], Iterator[Finding]]


def behind(it: Examined) -> Iterator[Finding]:
    """Closed windows that should have been compacted by now."""
    table = it.table
    patience = table.settings.late_data_acceptance_window + it.lag
    late: dict[int, int] = {}
    for merge in Planner(it.context.metastore, table, it.now).merges():
        due = (merge.window.end + patience) * _SECOND
        if not merge.window.overflow and due <= it.now and _newest(merge) + it.lag * _SECOND <= it.now:
            late[merge.window.start] = max(late.get(merge.window.start, 0), (it.now - due) // _SECOND)
    if late:
        yield it.finding(
            "compaction is behind",
            f"{format_count(len(late), 'closed window')}, the oldest for {format_seconds(max(late.values()))} beyond "
            f"{format_seconds(it.lag)}",
            "nothing compacts this table, or not often enough for what arrives",
            f"windrow compact {table.name} --dry-run",
        )


def _newest(merge: PlannedMerge) -> int:
    """When the newest split of a merge was written: one that just came is not late."""
    return max(each.created_at for each in merge.inputs)


def small_files(it: Examined) -> Iterator[Finding]:
    """Rows that lie in many files of few rows, however often they are merged."""
    within = [each for each in it.groups if each.window is not None]
    files, rows = sum(each.splits for each in within), sum(each.rows for each in within)
    places = {
        (each.scope.partition_id, each.window.overflow, each.window.start // LONGEST)
        for each in within
        if each.window is not None
    }
    warning = sparse_warning(Spread(rows, files, len(places)), it.table.settings)
    if warning is not None:
        yield it.finding(
            "small files",
            f"{format_count(files, 'file')} of {rows // max(files, 1):,} rows each",
            warning.removeprefix("sparse data: "),
            f"windrow compact {it.table.name} --dry-run",
        )


def held_back(it: Examined) -> Iterator[Finding]:
    """Pins and open commits that keep files from garbage collection for long."""
    metastore, table = it.context.metastore, it.table
    pins = metastore.pins(table.table_id)
    waiting = metastore.retired(table.table_id, table.version)
    if pins and waiting.splits and pins[0].version < table.version:
        oldest = next((each for each in it.published if each.version == pins[0].version), None)
        age = 0 if oldest is None or oldest.published_at is None else (it.now - oldest.published_at) // _SECOND
        if age >= _LONG_PIN:
            yield it.finding(
                "a reader holds old files",
                f"version {pins[0].version} of {table.version}, {format_seconds(age)} old, "
                f"{format_bytes(waiting.size_bytes)} wait",
                f"{pins[0].owner} reads it, and renews its pin",
                f"windrow gc {table.name} --dry-run",
            )
    expired = metastore.expired_commits(table.table_id)
    if expired:
        age = (it.now - expired[0].lease_expires_at) // _SECOND
        yield it.finding(
            "commits were left open",
            f"{format_count(len(expired), 'commit')}, the oldest ran out {format_seconds(max(age, 0))} ago",
            "a writer died, or lost the metastore; its files are orphans",
            f"windrow gc {table.name} --dry-run",
        )


def quarantined(it: Examined) -> Iterator[Finding]:
    """Splits that merging leaves out."""
    away = it.context.metastore.quarantined(it.table.table_id)
    if away:
        yield it.finding(
            "splits in quarantine",
            format_count(len(away), "split"),
            away[0].reason,
            f"windrow check {it.table.name} --data",
        )


def dropped_rows(it: Examined) -> Iterator[Finding]:
    """Sources of which rows were dropped on their way in."""
    totals: dict[str, Counter[str]] = {}
    for each in it.published:
        if each.kind is CommitKind.INGEST:
            total = totals.setdefault(str(each.summary.get("source", DEFAULT_SOURCE)), Counter())
            total.update(rows=each.rows_added)
            total.update({name: int(each.summary.get(name, 0)) for name in _DROPPED})
    for source, total in sorted(totals.items()):
        lost = {name: total[name] for name in _DROPPED if total[name]}
        if lost:
            counts = ", ".join(f"{count:,} {name}" for name, count in lost.items())
            yield it.finding(
                "rows were dropped",
                f"{counts} beside {total['rows']:,} rows of source {source!r}",
                _cause_of_drops(lost),
                f"windrow inspect sources {it.table.name}",
            )


def _cause_of_drops(lost: dict[str, int]) -> str:
    causes = {
        "late": "points came later than late_data_acceptance_window allows",
        "future": "clocks of senders are ahead",
        "conflicting": "values did not have the type of their column",
        "unfit": "rows broke a rule of the table, such as a null metric name",
    }
    return causes[max(lost, key=lambda name: lost[name])]


def mirror_behind(it: Examined) -> Iterator[Finding]:
    """A Delta log that shows an older version than the table has."""
    if not it.table.settings.mirror or not it.table.version:
        return
    shown = it.context.mirror.version(it.table)
    if shown is None or shown < it.table.version:
        yield it.finding(
            "the Delta mirror is behind",
            f"it shows {'nothing' if shown is None else f'version {shown}'}, the table has version {it.table.version}",
            "the store refused a write after a commit, or another writer changed the log",
            f"windrow check {it.table.name}",
        )


def amplified(it: Examined) -> Iterator[Finding]:
    """Rows that were rewritten more often than the policy promises."""
    bound = it.table.settings.policy.rewrites_bound
    merges = [each for each in it.published if each.kind is CommitKind.COMPACT]
    most = max((int(each.summary.get("rewrites", 0)) for each in merges), default=0)
    allowed = max((int(each.summary.get("rewrites_bound", 0)) for each in merges), default=bound)
    if most > max(bound, allowed):
        yield it.finding(
            "rows are rewritten too often",
            f"{most} times, where {it.table.settings.policy.name} allows {max(bound, allowed)}",
            "the policy was changed while windows were open",
            f"windrow inspect runs {it.table.name}",
        )


def failing(it: Examined) -> Iterator[Finding]:
    """Runs of compaction in which merges fail."""
    runs = it.context.metastore.runs(it.table.table_id, limit=_RECENT_RUNS)
    if runs and runs[0].failed:
        yield it.finding(
            "merges fail",
            f"{runs[0].failed:,} of {runs[0].planned:,} in the newest run",
            next(iter(runs[0].problems), "see the log of that run"),
            f"windrow inspect runs {it.table.name}",
        )


def small_batches(it: Examined) -> Iterator[Finding]:
    """Ingests of so few rows that a commit costs more than they do."""
    recent = [each for each in it.published if each.kind is CommitKind.INGEST][:_FEW_COMMITS]
    if len(recent) < _FEW_COMMITS:
        return
    rows, files = median(each.rows_added for each in recent), median(each.added for each in recent)
    if rows < files * _FEW_ROWS:
        yield it.finding(
            "batches are small",
            f"{rows:,.0f} rows in {files:,.0f} files, by the median of the last {_FEW_COMMITS}",
            "each ingest is a commit and a file for each of its windows, however few its rows are",
            f"windrow inspect commits {it.table.name}",
        )


def exploding(it: Examined) -> Iterator[Finding]:
    """A label whose values grow with the series, by statistics that are on record."""
    found = cardinality_of(it.context.metastore, it.table, it.table.version)
    label = found.exploding
    if label is not None:
        count = found.columns[label]
        yield it.finding(
            "the cardinality of a column explodes",
            f"{label}: {'' if count is None else f'about {round(count.estimate):,} values, '}growing with the series",
            "an id, an address or a version is used as a label",
            f"windrow inspect cardinality {it.table.name}",
        )


CONDITIONS: tuple[Condition, ...] = (
    quarantined,
    failing,
    behind,
    mirror_behind,
    held_back,
    dropped_rows,
    amplified,
    small_files,
    small_batches,
    exploding,
)
"""In the order in which they matter."""
