"""The noun `table.upkeep`: what keeps a table well, each verb with a plan and a run."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

from windrow.context import Context
from windrow.upkeep.analysis import Analysis, AnalyzeTable
from windrow.upkeep.check import CheckResult, CheckTable
from windrow.upkeep.gc import GarbageCollection
from windrow.upkeep.retention import Retention

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Upkeep"]


@dataclass(frozen=True, slots=True)
class Upkeep:
    """Upkeep of one table."""

    context: Context
    name: str

    @property
    def expire(self) -> Retention:
        """Take windows out of the table that are older than it keeps them."""
        return Retention(self.context, self.name)

    def check(
        self,
        *,
        data: bool = False,
        repair: bool = False,
        spark: SparkSession | None = None,
        on_splits: Callable[[int, int], None] | None = None,
    ) -> CheckResult:
        """Check the table: metastore, files, sidecars, mirror, invariants; with `data`, every row too.

        With `repair`, sidecars are made again and the mirror catches up. `spark` lets Spark's tasks do the work.
        `on_splits` hears of the rows and bytes of splits as they are checked.
        """
        check = CheckTable(self.context, self.name, on_splits) if on_splits else CheckTable(self.context, self.name)
        return check.run(data=data, repair=repair, spark=spark)

    def analyze(
        self,
        columns: Collection[str] | None = None,
        *,
        spark: SparkSession | None = None,
        on_splits: Callable[[int, int], None] | None = None,
    ) -> Analysis:
        """Learn the statistics of all columns, or of some, at once: queries would learn them one after the other.

        With all columns come labels and series, which `inspect.cardinality` counts. Only what is not known is read.
        `spark` lets Spark's tasks do the work. `on_splits` hears of the rows and bytes of splits as they are done.
        """
        analyze = (
            AnalyzeTable(self.context, self.name, on_splits) if on_splits else AnalyzeTable(self.context, self.name)
        )
        return analyze.run(columns, spark=spark)

    @property
    def gc(self) -> GarbageCollection:
        """Delete files that nobody can need any more."""
        return GarbageCollection(self.context, self.name)
