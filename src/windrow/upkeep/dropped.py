"""`lake.collect_dropped`: deletes what dropped tables left, once nobody can need it: files first, the Delta log last.

A table's rows are forgotten when its files are gone, so whatever stops a run, the next one continues. Files that are
not Windrow's stay in the folder.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from windrow.context import Context
from windrow.identity.folders import dropped_key, mark_dropped
from windrow.metastore import DroppedTable
from windrow.model.shown import ShownByField
from windrow.model.split import dead_letter_folder
from windrow.model.units import parse_seconds
from windrow.storage import ObjectInfo
from windrow.upkeep.clock import clock_key
from windrow.upkeep.deleting import Deleting
from windrow.upkeep.files import split_id_of
from windrow.upkeep.gc import DEFAULT_GRACE

__all__ = ["CollectDropped", "DroppedReport"]

_PAGE = 1000


@dataclass(frozen=True, slots=True, repr=False)
class DroppedReport(ShownByField):
    """What a dropped table left, and what becomes of it."""

    table: str
    table_id: str
    folder: str
    files: int
    """Files that were deleted, or would be."""
    size_bytes: int
    other_files: int
    """Files in the folder that are not Windrow's; they stay."""
    held_by: tuple[str, ...]
    """What keeps the files for now; nothing is deleted then."""
    problems: tuple[str, ...] = ()
    """Files that the store would not delete; the next run tries again."""


@dataclass(frozen=True, slots=True)
class _Left:
    """The files of a dropped table, in the order in which they go."""

    splits: Sequence[ObjectInfo]
    log: Sequence[ObjectInfo]
    mark: Sequence[ObjectInfo]
    others: int

    @property
    def ours(self) -> list[ObjectInfo]:
        return [*self.splits, *self.log, *self.mark]


@dataclass(frozen=True, slots=True)
class CollectDropped:
    """Garbage collection of the dropped tables of a lake."""

    context: Context

    def plan(self, *, grace: str | int = DEFAULT_GRACE) -> list[DroppedReport]:
        """Say what `run` would delete and what it would leave, table by table; nothing is changed."""
        tables = self.context.metastore.dropped_tables(grace=parse_seconds(grace, "grace"))
        return [_report(table, self._left(table)) for table in tables]

    def run(self, *, grace: str | int = DEFAULT_GRACE) -> list[DroppedReport]:
        """Delete what tables left that were dropped longer ago than `grace`, and that no reader or writer holds."""
        seconds = parse_seconds(grace, "grace")
        for table in self.context.metastore.dropped_tables():
            self.context.pins.let_go(table.table_id)
        return [self._collect(table) for table in self.context.metastore.dropped_tables(grace=seconds)]

    def _collect(self, table: DroppedTable) -> DroppedReport:
        left, store = self._left(table), self.context.store
        if table.held_by:
            mark_dropped(store, table.folder, table.table_id)
            return _report(table, left)
        delete = Deleting(store)
        # The log says that the folder was a table, and the mark that it is none any more: they go last.
        if all(self._delete(delete, files) for files in (left.splits, left.log, left.mark)):
            if store.local is not None:
                for unfinished in store.local.unfinished(table.folder):
                    store.local.remove_unfinished(unfinished)
            self.context.metastore.forget_table(table.table_id)
        return _report(table, left, tuple(delete.problems))

    def _delete(self, delete: Deleting, files: Sequence[ObjectInfo]) -> bool:
        """Delete files, page by page, and return whether all of them are gone."""
        pages = [files[start : start + _PAGE] for start in range(0, len(files), _PAGE)]
        return all(len(delete.files([info.key for info in page])) == len(page) for page in pages)

    def _left(self, table: DroppedTable) -> _Left:
        folder = table.folder
        splits, log, mark, others = [], [], [], 0
        for info in self.context.store.list(folder):
            if info.key == dropped_key(folder):
                mark.append(info)
            elif info.key.startswith(f"{folder}/_delta_log/"):
                log.append(info)
            elif (
                split_id_of(folder, info.key) is not None
                or info.key == clock_key(folder)
                or str(PurePosixPath(info.key).parent) == dead_letter_folder(folder)
            ):
                splits.append(info)
            else:
                others += 1
        return _Left(splits, log, mark, others)


def _report(table: DroppedTable, left: _Left, problems: tuple[str, ...] = ()) -> DroppedReport:
    return DroppedReport(
        table=table.name,
        table_id=table.table_id,
        folder=table.folder,
        files=len(left.ours),
        size_bytes=sum(info.size for info in left.ours),
        other_files=left.others,
        held_by=table.held_by,
        problems=problems,
    )
