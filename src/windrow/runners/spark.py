"""Runs work on the partitions of a Spark DataFrame and brings home what each of them reports."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Work", "numbered", "run_on_partitions", "run_on_spark", "slots", "units_of"]

T = TypeVar("T")

Work = Callable[[Iterable[pa.RecordBatch], int], Iterator[str]]
"""Takes the batches of a partition and the number of the task's attempt, and yields reports as text."""

_LOOK_EVERY = 0.2


def run_on_spark(
    spark: SparkSession,
    units: Sequence[T],
    work: Callable[[T, int], Iterator[str]],
    on_report: Callable[[str], None] | None = None,
) -> list[str]:
    """Run the work on every unit, each in a task of its own, and return the reports, as `run_on_partitions` does."""
    return run_on_partitions(numbered(spark, units), partial(_on_units, units, work), on_report) if units else []


def numbered(spark: SparkSession, units: Sequence[Any]) -> DataFrame:
    """Return a row for each unit, in a partition of its own; the units travel with the code, under Connect too."""
    # To repartition so few rows would not give that.
    return spark.range(0, len(units), 1, len(units))


def units_of(units: Sequence[T], batches: Iterable[pa.RecordBatch]) -> Iterator[T]:
    """Yield the units whose numbers a task was given."""
    return (units[number] for batch in batches for number in batch.column(0).to_pylist())


def _on_units(
    units: Sequence[T], work: Callable[[T, int], Iterator[str]], batches: Iterable[pa.RecordBatch], task_attempt: int
) -> Iterator[str]:
    for unit in units_of(units, batches):
        yield from work(unit, task_attempt)


def run_on_partitions(rows: DataFrame, work: Work, on_report: Callable[[str], None] | None = None) -> list[str]:
    """Run the work on every partition and return the reports of the attempts that Spark counts.

    Attempts that failed or were repeated report nothing here. `on_report` hears of reports while other tasks still
    run, as far as Spark tells; it is for showing progress only, and may hear of attempts that do not count.
    """
    heard = _Heard.of(rows) if on_report is not None else None

    def on_partition(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context = TaskContext.get()
        for report in work(batches, context.taskAttemptId() if context is not None else 0):
            if heard is not None:
                heard.add(report)
            yield pa.RecordBatch.from_pydict({"report": [report]})

    reports = rows.mapInArrow(on_partition, "report string")
    if on_report is not None and heard is not None:
        return _collected(reports, heard, on_report)
    collected = [row.report for row in reports.collect()]
    if on_report is not None:
        for report in collected:
            on_report(report)
    return collected


def _collected(reports: DataFrame, heard: _Heard, on_report: Callable[[str], None]) -> list[str]:
    """Collect in a thread of its own, and tell of what was heard meanwhile."""
    passed_on = 0
    with ThreadPoolExecutor(1, "spark job") as pool:
        job = pool.submit(lambda: [row.report for row in reports.collect()])
        while not job.done():
            wait([job], _LOOK_EVERY)
            for report in heard.since(passed_on):
                on_report(report)
                passed_on += 1
        return job.result()


class _Heard:
    """Reports that reach the driver as tasks end, by way of a Spark accumulator."""

    def __init__(self, accumulator: Any) -> None:
        self._accumulator = accumulator

    @classmethod
    def of(cls, rows: DataFrame) -> _Heard | None:
        """Return an empty one, or None where the session has no accumulators, as under Connect."""
        from pyspark.accumulators import AccumulatorParam
        from pyspark.errors import PySparkException

        class Growing(AccumulatorParam[list[str]]):
            def zero(self, value: list[str]) -> list[str]:  # noqa: ARG002 - Spark's signature
                return []

            def addInPlace(self, value1: list[str], value2: list[str]) -> list[str]:  # noqa: N802 - Spark's name
                value1.extend(value2)
                return value1

        try:
            return cls(rows.sparkSession.sparkContext.accumulator([], Growing()))
        except PySparkException:
            return None

    def add(self, report: str) -> None:
        """Say a report, in a task."""
        self._accumulator.add([report])

    def since(self, count: int) -> list[str]:
        """Return what was heard after the first `count` reports, in the driver."""
        heard: list[str] = self._accumulator.value[count:]
        return heard


def slots(spark: SparkSession) -> int:
    """Return how many tasks run at once, as far as the session tells; under Connect it has a setting at most."""
    from pyspark.errors import PySparkException

    try:
        return max(1, int(spark.sparkContext.defaultParallelism))
    except PySparkException:
        return int(spark.conf.get("spark.sql.leafNodeDefaultParallelism", None) or 8)
