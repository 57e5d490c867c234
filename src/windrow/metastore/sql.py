"""The metastore on SQLite or PostgreSQL: one implementation, put together from its parts."""

from __future__ import annotations

import time
from collections.abc import Callable

from windrow.closing import Closing
from windrow.metastore.auditing import Auditing
from windrow.metastore.collecting import Collecting
from windrow.metastore.compaction import CompactionRecords
from windrow.metastore.database import Clock, Database
from windrow.metastore.heat import HeatRecords
from windrow.metastore.lakes import Lakes
from windrow.metastore.naming import TableNaming
from windrow.metastore.pins import PinRecords
from windrow.metastore.restoring import Restoring
from windrow.metastore.scopes import Scopes
from windrow.metastore.statistics import Statistics

__all__ = ["SqlMetastore"]


class SqlMetastore(
    TableNaming, Restoring, Auditing, Collecting, PinRecords, HeatRecords, Statistics, CompactionRecords, Lakes, Closing
):
    """Versions, splits, commits, pins, checkpoints and runs of compaction in a SQL database.

    `url` is `sqlite:///path` or `postgresql://...`. An empty database is set up unless `create` is False. `clock`
    replaces the clock by which leases and pins are judged; `at_step` is called at the named points of a publish.
    """

    def __init__(
        self,
        url: str,
        *,
        create: bool = True,
        clock: Clock | None = None,
        at_step: Callable[[str], None] | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        super().__init__(Database(url, clock=clock, create=create), at_step=at_step or _no_step, sleep=sleep)
        self._scopes = Scopes()

    def close(self) -> None:
        """Give all connections back."""
        self.database.close()


def _no_step(_: str) -> None:
    """Nothing happens between the steps of a publish."""
