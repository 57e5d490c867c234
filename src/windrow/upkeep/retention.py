"""Retention: whole windows leave the table when all of their points are older than the table keeps them.

Points without a timestamp, and files that were registered as they are, have no place in time; they go by the moment
at which their split was made. What has left the table is deleted by garbage collection later.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, takewhile

from windrow.context import Context
from windrow.errors import Conflict, InvalidInput
from windrow.metastore import CommitKind, SplitQuery, TableRecord
from windrow.model.shown import ShownByField
from windrow.model.split import SplitMetadata
from windrow.model.units import parse_seconds
from windrow.runners.leases import given_up_on_error

__all__ = ["ExpirePlan", "ExpireResult", "Retention"]

_MOST_ATTEMPTS = 5
_LONG_AGO = -(2**62)


@dataclass(frozen=True, slots=True, repr=False)
class ExpirePlan(ShownByField):
    """What retention would take out of a table."""

    table: str
    retention_seconds: int
    before: int
    """Points before this moment are too old; microseconds since the epoch."""
    windows: int
    splits: int
    rows: int
    size_bytes: int


@dataclass(frozen=True, slots=True, repr=False)
class ExpireResult(ExpirePlan):
    """What retention took out of a table; without a version, there was nothing to do."""

    version: int | None
    commit_id: str | None


@dataclass(frozen=True, slots=True)
class Retention:
    """Retention on one table: look with `plan`, take out with `run`."""

    context: Context
    name: str
    lease: float = 120.0

    def plan(self, *, retention: str | int | None = None) -> ExpirePlan:
        """Say what `run` would take out; nothing is changed."""
        table = self.context.metastore.table(self.name)
        seconds = _seconds(table, retention)
        before = self.context.now() - seconds * 1_000_000
        return _counted(self.name, seconds, before, list(self._expired(table, before)))

    def run(self, *, retention: str | int | None = None) -> ExpireResult:
        """Take out, as one commit, what is older than the table keeps, or than `retention` says.

        When a merge replaces some of it in between, what it made is judged instead.
        """
        attempts = 0
        while True:
            attempts += 1
            table = self.context.metastore.table(self.name)
            seconds = _seconds(table, retention)
            before = self.context.now() - seconds * 1_000_000
            expired = list(self._expired(table, before))
            plan = _counted(self.name, seconds, before, expired)
            if not expired:
                return ExpireResult(**plan.to_dict(), version=None, commit_id=None)
            try:
                return self._publish(table, plan, expired)
            except Conflict:
                if attempts == _MOST_ATTEMPTS:
                    raise

    def _publish(self, table: TableRecord, plan: ExpirePlan, expired: list[SplitMetadata]) -> ExpireResult:
        metastore, commit_id = self.context.metastore, self.context.new_id()
        opened = metastore.open_commit(table.table_id, CommitKind.EXPIRE, commit_id=commit_id, lease=self.lease)
        with given_up_on_error(metastore, commit_id, opened.attempt):
            published = metastore.publish(
                commit_id,
                replace=[split.split_id for split in expired],
                summary={"before": plan.before, "retention": plan.retention_seconds},
            )
        return ExpireResult(**plan.to_dict(), version=published.version, commit_id=commit_id)

    def _expired(self, table: TableRecord, before: int) -> Iterator[SplitMetadata]:
        """Yield the visible splits that are too old; only windows that began before the moment are looked at."""
        # Registered files come first in every listing, then the overflow; such a file with times is among
        # those of a time range too.
        first = takewhile(_is_of_no_time, self._listed(table, SplitQuery()))
        timed = self._listed(table, SplitQuery(time_range=(_LONG_AGO, before)))
        others = (split for split in timed if split.window is not None)
        return (split for split in chain(first, others) if _too_old(split, before))

    def _listed(self, table: TableRecord, query: SplitQuery) -> Iterator[SplitMetadata]:
        return chain.from_iterable(self.context.metastore.splits(table.table_id, table.version, query))


def _is_of_no_time(split: SplitMetadata) -> bool:
    return split.window is None or split.window.overflow


def _too_old(split: SplitMetadata, before: int) -> bool:
    if split.window is None or split.window.overflow:
        return split.created_at < before
    return split.window.end * 1_000_000 <= before


def _seconds(table: TableRecord, given: str | int | None) -> int:
    if given is not None:
        return parse_seconds(given, "retention")
    if table.settings.retention is None:
        raise InvalidInput(
            f"table {table.name!r} keeps its points for ever; give it a retention, such as 30d, or say one now"
        )
    return table.settings.retention


def _counted(name: str, seconds: int, before: int, expired: list[SplitMetadata]) -> ExpirePlan:
    return ExpirePlan(
        table=name,
        retention_seconds=seconds,
        before=before,
        windows=len({(split.window, split.window is None and split.split_id) for split in expired}),
        splits=len(expired),
        rows=sum(split.row_count for split in expired),
        size_bytes=sum(split.size_bytes for split in expired),
    )
