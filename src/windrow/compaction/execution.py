"""Where merges run: threads of this process, or tasks of Spark; reports come back as merges end."""

from __future__ import annotations

import heapq
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

import pyarrow as pa

from windrow.compaction.task import Job, MergeTask
from windrow.runners.local import run_locally
from windrow.runners.spark import run_on_partitions, slots

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Execute", "in_process", "on_spark"]

_log = logging.getLogger(__name__)
_TASKS_PER_SLOT = 4
_WAVE_PER_SLOT = 32

Execute = Callable[[Iterable[Job], MergeTask, Callable[[str], None]], None]
"""Takes jobs, runs them as the task says, and hands on each report as it comes.

A report may come twice, and a job that was lost reports nothing.
"""


def in_process(*, threads: int | None = None) -> Execute:
    """Run each merge on a thread of this process; jobs are taken as threads become free."""

    def execute(jobs: Iterable[Job], task: MergeTask, on_report: Callable[[str], None]) -> None:
        run_locally(([job] for job in jobs), task.report, on_report, threads=threads)

    return execute


def on_spark(spark: SparkSession) -> Execute:
    """Run merges as tasks of Spark, small ones together, in waves: a lost job costs the rest of its wave at most."""
    at_once = slots(spark)

    def execute(jobs: Iterable[Job], task: MergeTask, on_report: Callable[[str], None]) -> None:
        waiting = iter(jobs)
        while wave := list(islice(waiting, at_once * _WAVE_PER_SLOT)):
            try:
                _run_wave(spark, packed(wave, at_once * _TASKS_PER_SLOT), task, on_report)
            except Exception as error:
                # Merges that reported are published; the others are tried again.
                _log.warning("a Spark job with %d merges failed: %s", len(wave), str(error).partition("\n")[0])

    return execute


def packed(jobs: Sequence[Job], most: int) -> list[list[Job]]:
    """Spread jobs over at most so many tasks, evenly by their bytes; the large ones come first and alone."""
    tasks: list[list[Job]] = [[] for _ in range(min(most, len(jobs)))]
    load = [(0, number) for number in range(len(tasks))]
    for job in sorted(jobs, key=lambda each: each.merge.size_bytes, reverse=True):
        size, number = load[0]
        tasks[number].append(job)
        heapq.heapreplace(load, (size + job.merge.size_bytes, number))
    return tasks


def _run_wave(
    spark: SparkSession, batches: Sequence[Sequence[Job]], task: MergeTask, on_report: Callable[[str], None]
) -> None:
    count = len(batches)
    # One row in one partition for each task; the tasks themselves travel with the code, which works under Connect too.
    rows = spark.range(0, count, 1, count)
    for report in run_on_partitions(rows, partial(_of_partition, batches, task), on_report):
        on_report(report)


def _of_partition(
    batches: Sequence[Sequence[Job]], task: MergeTask, rows: Iterable[pa.RecordBatch], task_attempt: int
) -> Iterator[str]:
    for batch in rows:
        for number in batch.column(0).to_pylist():
            yield from task.report(batches[number], task_attempt)
