"""`lake.drop_table` and `lake.rename_table`: what becomes of a table's name; no file is moved or deleted.

lake.drop_table.plan("metrics")
lake.drop_table.run("metrics")                  # garbage collection deletes its files later
lake.rename_table.run("metrics", "readings")    # its folder stays where it is
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any

from windrow.context import Context
from windrow.errors import AlreadyExists, InvalidInput, WindrowError
from windrow.identity.folders import mark_dropped
from windrow.metastore import CommitState, TableRecord
from windrow.model.ids import check_name
from windrow.model.shown import ShownByField

__all__ = ["DropPlan", "DropResult", "DropTable", "RenameResult", "RenameTable"]

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, repr=False)
class DropPlan(ShownByField):
    """What leaves the lake with a table."""

    table: str
    table_id: str
    folder: str
    """Where its files stay until garbage collection deletes them."""
    version: int
    splits: int
    rows: int
    size_bytes: int
    open_commits: int
    """Commits that could not be published any more."""
    held_by: tuple[str, ...]
    """Readers that keep the files for now."""


@dataclass(frozen=True, slots=True, repr=False)
class DropResult(DropPlan):
    """A table that was dropped."""

    dropped_at: int
    """Microseconds since the epoch."""


@dataclass(frozen=True, slots=True, repr=False)
class RenameResult(ShownByField):
    """A table's name before and after."""

    before: str
    after: str
    table_id: str
    folder: str
    """Where its files stay."""


@dataclass(frozen=True, slots=True)
class DropTable:
    """Takes tables out of a lake."""

    context: Context

    def plan(self, name: str) -> DropPlan:
        """Say what would leave the lake; nothing is changed."""
        return DropPlan(**self._described(self.context.metastore.table(name)))

    def run(self, name: str) -> DropResult:
        """Drop a table in one transaction: its name is free at once, what is being written into it is refused.

        Readers that hold a version go on reading it. The files and the Delta log stay until `lake.collect_dropped`
        deletes them.
        """
        record = self.context.metastore.table(name)
        described = self._described(record)
        dropped = self.context.metastore.drop_table(record.table_id)
        try:
            mark_dropped(self.context.store, dropped.folder, dropped.table_id)
        except WindrowError as error:
            _log.warning("table %s is dropped; its folder is marked by garbage collection later: %s", name, error)
        return DropResult(**described, dropped_at=dropped.dropped_at)

    def _described(self, record: TableRecord) -> dict[str, Any]:
        metastore = self.context.metastore
        windows = metastore.windows(record.table_id, record.version)
        is_open = (each.state is CommitState.OPEN for each in metastore.commits(record.table_id))
        pins = metastore.pins(record.table_id)
        return {
            "table": record.name,
            "table_id": record.table_id,
            "folder": record.folder,
            "version": record.version,
            "splits": sum(each.splits for each in windows),
            "rows": sum(each.rows for each in windows),
            "size_bytes": sum(each.size_bytes for each in windows),
            "open_commits": sum(is_open),
            "held_by": tuple(f"pin of {pin.owner} on version {pin.version}" for pin in pins),
        }


@dataclass(frozen=True, slots=True)
class RenameTable:
    """Gives tables other names."""

    context: Context

    def plan(self, before: str, after: str) -> RenameResult:
        """Say what would change, or refuse it as `run` would; nothing is changed."""
        record = self.context.metastore.table(before)
        problem = check_name(after)
        if problem is not None:
            raise InvalidInput(problem)
        names = {each.name.lower(): each for each in self.context.metastore.tables()}
        taken = names.get(after.lower(), record)
        if taken.table_id != record.table_id:
            raise AlreadyExists(f"the table {taken.name!r} exists already; choose another name than {after!r}")
        return RenameResult(before, after, record.table_id, record.folder)

    def run(self, before: str, after: str) -> RenameResult:
        """Rename a table in one transaction; commits that are open and readers go on.

        Its folder and Delta log stay where they are, and the log has the new name from the next commit on.
        """
        record = self.context.metastore.table(before)
        renamed = self.context.metastore.rename_table(record.table_id, after)
        return RenameResult(before, renamed.name, renamed.table_id, renamed.folder)
