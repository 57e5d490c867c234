"""Runs a migration: its steps on threads of this process, or spread over the tasks of Spark."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING

from windrow.model.shown import ShownByField
from windrow.questdb.migration import Action, Step, StepReport, carry_out
from windrow.questdb.migration_plan import MigrationPlan, Wish, plan_migration
from windrow.runners.dealing import dealt
from windrow.runners.local import run_locally
from windrow.runners.memory import check_threads

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Migration", "MigrationResult"]

_TASKS_PER_SLOT = 4
_FOOTER_BYTES = 64 * 2**10
"""About what a step reads, whatever the size of its file."""


@dataclass(frozen=True, slots=True, repr=False)
class MigrationResult(ShownByField):
    """What a run did."""

    path: str
    planned: int
    """Steps that were to write a sidecar."""
    written: int
    unchanged: int
    """Sidecars that were sound."""
    skipped: tuple[str, ...]
    """Partitions in cold storage."""
    failed: int
    sidecar_bytes: int
    seconds: float
    problems: tuple[str, ...]
    """One for each Parquet file that has no sound sidecar now; each names its file."""


class Migration:
    """Sidecars for the Parquet partitions of QuestDB tables, or for plain Parquet files, in place."""

    def __init__(self, path: str | os.PathLike[str], wish: Wish | None = None) -> None:
        self.path = path
        self.wish = wish or Wish()

    def plan(self) -> MigrationPlan:
        """What a run would do now; nothing is written."""
        return plan_migration(self.path, self.wish)

    def run(
        self,
        *,
        plan: MigrationPlan | None = None,
        spark: SparkSession | None = None,
        threads: int | None = None,
        on_report: Callable[[StepReport], None] | None = None,
    ) -> MigrationResult:
        """Do it, here or on Spark; a file that fails stops no other. Spark's workers need the same path."""
        start = time.perf_counter()
        plan = plan or self.plan()
        tell = None if on_report is None else partial(_pass_on, on_report)
        texts = _on_spark(spark, plan.work, tell) if spark else _in_process(plan.work, tell, check_threads(threads))
        reports = [StepReport(**json.loads(text)) for text in texts]
        return _result(plan, reports, time.perf_counter() - start)


def _result(plan: MigrationPlan, reports: Sequence[StepReport], seconds: float) -> MigrationResult:
    problems = [step.why for step in plan.of(Action.REFUSE)]
    problems += [f"{report.sidecar}: {report.problem}" for report in reports if report.problem is not None]
    return MigrationResult(
        path=plan.path,
        planned=len(plan.work),
        written=sum(report.problem is None for report in reports),
        unchanged=len(plan.of(Action.NONE)),
        skipped=tuple(step.parquet for step in plan.of(Action.SKIP)),
        failed=len(problems),
        sidecar_bytes=sum(report.sidecar_bytes for report in reports),
        seconds=seconds,
        problems=tuple(problems),
    )


def _pass_on(on_report: Callable[[StepReport], None], text: str) -> None:
    on_report(StepReport(**json.loads(text)))


def _reports(steps: Iterable[Step]) -> Iterator[str]:
    return (json.dumps(asdict(carry_out(step))) for step in steps)


def _in_process(steps: Iterable[Step], tell: Callable[[str], None] | None, threads: int | None) -> list[str]:
    return run_locally(([step] for step in steps), lambda batch, _: _reports(batch), tell, threads=threads)


def _on_spark(spark: SparkSession, steps: Sequence[Step], tell: Callable[[str], None] | None) -> list[str]:
    from windrow.runners.spark import run_on_spark, slots
    from windrow.runners.task_errors import errors_of_tasks

    batches = dealt(steps, slots(spark) * _TASKS_PER_SLOT, lambda step: min(step.parquet_bytes, _FOOTER_BYTES))
    with errors_of_tasks():
        return run_on_spark(spark, batches, lambda batch, _: _reports(batch), tell)
