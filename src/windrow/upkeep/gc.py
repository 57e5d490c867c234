"""Garbage collection: the only thing that deletes files of a lake.

It takes three kinds of things. Commits that are open although their lease ran out are ended. Splits that no readable
version shows are marked, their files deleted, their rows forgotten, page by page. Files that no split owns and whose
commit has ended are deleted, dead letters among them. Whatever stops it, at any point, the next run continues; nothing
that a reader or a writer can still need is touched.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import TypeVar

from windrow.context import Context
from windrow.errors import InvalidInput, WindrowError
from windrow.metastore import TableRecord
from windrow.model.rows import like
from windrow.model.split import SplitMetadata
from windrow.model.units import parse_seconds
from windrow.storage import ObjectInfo
from windrow.upkeep.clock import store_time
from windrow.upkeep.deleting import Deleting, OnDelete
from windrow.upkeep.files import own_files, split_id_of
from windrow.upkeep.gc_report import GcPlan, GcResult
from windrow.upkeep.letters import useless_letters
from windrow.upkeep.pace import Pace
from windrow.upkeep.unfinished import remove_unfinished

__all__ = ["DEFAULT_GRACE", "GarbageCollection"]

DEFAULT_GRACE = "1d"
"""For so long old versions stay readable without a pin, and files of ended commits stay where they are."""

_MOST_PROBLEMS = 10

T = TypeVar("T")


@dataclass
class _Sweep:
    """Counts of both reports, by their names there, and problems so far."""

    retired_splits: int = 0
    retired_bytes: int = 0
    orphan_files: int = 0
    orphan_bytes: int = 0
    young_files: int = 0
    unknown_files: int = 0
    problems: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class GarbageCollection:
    """Garbage collection on one table: look with `plan`, delete with `run`."""

    context: Context
    name: str
    page: int = 1000
    """How many splits or files are judged, and deleted, in one go."""
    threads: int = 8

    def plan(self, *, grace: str | int = DEFAULT_GRACE) -> GcPlan:
        """Say what `run` would delete; nothing is changed. Here, age is judged by this machine's clock."""
        seconds, table = parse_seconds(grace, "grace"), self._table
        self.context.pins.let_go(table.table_id)
        metastore = self.context.metastore
        shown = self.context.mirror.version(table) if table.settings.mirror else None
        horizon = metastore.horizon(table.table_id, grace=seconds)
        expired = [commit.commit_id for commit in metastore.expired_commits(table.table_id)]
        now = datetime.fromtimestamp(self.context.now() / 1e6, UTC)
        sweep = _Sweep()
        for info in self._orphans(table, now - timedelta(seconds=seconds), sweep, expired):
            sweep.orphan_files += 1
            sweep.orphan_bytes += info.size
        retired = metastore.retired(table.table_id, horizon)
        return like(
            GcPlan,
            sweep,
            table=self.name,
            grace_seconds=seconds,
            oldest_version=table.oldest_version,
            oldest_version_then=horizon,
            held_by=self._holders(table, horizon, shown),
            expired_commits=len(expired),
            retired_splits=retired.splits,
            retired_bytes=retired.size_bytes,
        )

    def run(
        self,
        *,
        grace: str | int = DEFAULT_GRACE,
        limit: int | None = None,
        pace: Pace | None = None,
        on_delete: OnDelete | None = None,
    ) -> GcResult:
        """Delete what nobody can need any more: at most `limit` splits and as many orphans, no faster than `pace`.

        A file that the store does not let go of is left for the next run, and reported.
        """
        seconds, table, sweep = parse_seconds(grace, "grace"), self._table, _Sweep()
        if limit is not None and limit < 0:
            raise InvalidInput(f"limit: expected 0 or more, found {limit}")
        self.context.pins.let_go(table.table_id)
        metastore, store = self.context.metastore, self.context.store
        delete = Deleting(store, self.threads, pace or Pace(), problems=sweep.problems)
        delete.on_delete = on_delete or delete.on_delete
        # The store's clock is read before anything is judged: whatever is written from now on is younger than that.
        now, grace_time = store_time(store, table.folder), timedelta(seconds=seconds)
        before = now - grace_time
        ended = metastore.end_expired(table.table_id)
        shown = self._shown_to_others(table, sweep)
        oldest = metastore.drop_versions(table.table_id, grace=seconds, upto=shown)
        self._delete_retired(table, delete, sweep, limit)
        for some in _pages(islice(self._orphans(table, before, sweep), limit), self.page):
            gone = delete.files([info.key for info in some])
            sweep.orphan_files += len(gone)
            sweep.orphan_bytes += delete.report(sum(info.size for info in some if info.key in gone))
        files = store.local
        unfinished = 0 if files is None else remove_unfinished(files, metastore, table, now=now, grace=grace_time)
        return like(
            GcResult,
            sweep,
            table=self.name,
            grace_seconds=seconds,
            oldest_version=oldest,
            ended_commits=tuple(ended),
            unfinished_files=unfinished,
            failed_files=delete.failed,
            problems=tuple(sweep.problems[:_MOST_PROBLEMS]),
        )

    @property
    def _table(self) -> TableRecord:
        return self.context.metastore.table(self.name)

    def _holders(self, table: TableRecord, horizon: int, shown: int | None) -> tuple[str, ...]:
        pins = self.context.metastore.pins(table.table_id)
        holders = [f"pin of {pin.owner} on version {pin.version}" for pin in pins if pin.version <= horizon]
        behind = shown is not None and shown < horizon
        return (*holders, *([f"the Delta mirror, at version {shown}, until it has caught up"] if behind else []))

    def _shown_to_others(self, table: TableRecord, sweep: _Sweep) -> int | None:
        """Bring the mirror up to date and return the version that it shows; what it shows has to stay.

        Where it does not even say what it shows, no version is dropped.
        """
        if not table.settings.mirror:
            return None
        try:
            return self.context.mirror.follow(table)
        except WindrowError as error:
            sweep.problems.append(f"the Delta mirror is behind, and what it shows was kept: {error}")
        try:
            return self.context.mirror.version(table) or table.oldest_version
        except WindrowError:
            return table.oldest_version

    def _delete_retired(self, table: TableRecord, delete: Deleting, sweep: _Sweep, limit: int | None) -> None:
        """Mark, delete, forget, a page at a time. A page on which nothing could be forgotten is the last."""
        metastore = self.context.metastore
        while limit is None or sweep.retired_splits < limit:
            size = self.page if limit is None else min(self.page, limit - sweep.retired_splits)
            claimed = metastore.claim(table.table_id, limit=size)
            keys = {split.split_id: _files_of(table.folder, split) for split in claimed}
            gone = delete.files([key for each in keys.values() for key in each])
            done = [split for split in claimed if gone.issuperset(keys[split.split_id])]
            metastore.forget(table.table_id, [split.split_id for split in done])
            sweep.retired_splits += len(done)
            sweep.retired_bytes += delete.report(sum(split.size_bytes for split in done))
            if not done or len(claimed) < size:
                return

    def _orphans(
        self, table: TableRecord, before: datetime, sweep: _Sweep, ended: Collection[str] = ()
    ) -> Iterator[ObjectInfo]:
        """Yield files that are no split's, whose commit has ended, and that were there before a moment.

        Files of dead letters come last.
        """
        for page in _pages(own_files(self.context.store, table.folder), self.page):
            names = {split_id for split_id, _ in page}
            judged = self.context.metastore.orphans(table.table_id, names, ended=ended)
            for split_id, info in page:
                if split_id in judged.unknown:
                    sweep.unknown_files += 1
                elif split_id in judged.dead and info.modified >= before:
                    sweep.young_files += 1
                elif split_id in judged.dead:
                    yield info
        for info, is_old in useless_letters(self.context, table, before, ended):
            if is_old:
                yield info
            sweep.young_files += not is_old


def _files_of(table: str, split: SplitMetadata) -> list[str]:
    """Return the files to delete with a split: those that Windrow wrote. A registered file is its owner's."""
    keys = [split.key] if split.sidecar is None else [split.key, split.sidecar.key]
    return [key for key in keys if split_id_of(table, key) == split.split_id]


def _pages(items: Iterable[T], size: int) -> Iterator[list[T]]:
    rest = iter(items)
    while page := list(islice(rest, size)):
        yield page
