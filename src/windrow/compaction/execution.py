"""Where merges run: threads of this process, or tasks of Spark; reports come back as merges end."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from itertools import islice
from typing import TYPE_CHECKING

from windrow.compaction.merge_task import Job, MergeTask
from windrow.runners.dealing import dealt
from windrow.runners.local import run_locally
from windrow.runners.spark import run_on_spark, slots

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
                batches = dealt(wave, at_once * _TASKS_PER_SLOT, lambda job: job.merge.size_bytes)
                for report in run_on_spark(spark, batches, task.report, on_report):
                    on_report(report)
            except Exception as error:
                # Merges that reported are published; the others are tried again.
                _log.warning("a Spark job with %d merges failed: %s", len(wave), str(error).partition("\n")[0])

    return execute
