"""`windrow migrate`: sidecars for Parquet partitions that have none, or a bad one, in place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from windrow.cli.exit_codes import ExitCode
from windrow.cli.invocation import Invocation
from windrow.cli.options import Command, pass_invocation
from windrow.cli.progress import stepping
from windrow.cli.sparks import sparks
from windrow.cli.text import fields
from windrow.cli.text import table as text_table
from windrow.model.units import format_count

if TYPE_CHECKING:
    from windrow.questdb.migration_plan import MigrationPlan
    from windrow.upkeep.migration import MigrationResult

__all__ = ["migrate"]

_LINES = 20


@click.command(cls=Command, short_help="Write sidecars for Parquet partitions that have none.")
@click.argument("path", metavar="PATH")
@click.option("--dry-run", is_flag=True, help="Say what would be written, and why; change nothing.")
@click.option("--regenerate", is_flag=True, help="Write sound sidecars again too, from their Parquet files.")
@click.option(
    "--rewrite",
    type=click.Choice(["keep", "windrow", "questdb"]),
    help="Write sound sidecars anew from themselves, without old footers: with the sections that they have, with "
    "Windrow's, or with QuestDB's alone.",
)
@click.option("--threads", metavar="N", type=click.IntRange(min=1), help="Files at once in this process.")
@click.option("--runner", type=click.Choice(["local", "spark"]), default="local", show_default=True, help="Who works.")
@pass_invocation
def migrate(
    invocation: Invocation,
    path: str,
    *,
    dry_run: bool,
    regenerate: bool,
    rewrite: str | None,
    threads: int | None,
    runner: str,
) -> None:
    """Write a sidecar beside every Parquet partition of a QuestDB table at PATH, or of all tables in that folder.

    Other folders are searched for Parquet files. A sound sidecar is left alone, so a second run does nothing and one
    that was interrupted goes on. No Parquet file and no `_txn` is written; partitions in cold storage are skipped.
    """
    from windrow.questdb.migration_plan import Wish
    from windrow.sidecar.rewrite import Sections
    from windrow.upkeep.migration import Migration

    migration = Migration(path, Wish(regenerate, None if rewrite is None else Sections(rewrite)))
    plan = migration.plan()
    if dry_run:
        invocation.output.answer({"dry_run": True, **plan.to_dict()}, lambda: _plan_text(plan))
        return
    with (
        sparks(invocation, wanted=runner == "spark") as spark,
        stepping(f"migrating {path}", len(plan.work), "sidecars") as advance,
    ):
        result = migration.run(plan=plan, spark=spark, threads=threads, on_report=lambda _: advance())
    invocation.output.answer({"dry_run": False, **result.to_dict()}, lambda: _result_text(result))
    if result.failed:
        raise click.exceptions.Exit(ExitCode.DAMAGED)


def _plan_text(plan: MigrationPlan) -> str:
    plain = plan.to_dict()
    steps: list[dict[str, Any]] = [step for step in plain["steps"] if step["action"] != "none"]
    head = f"{plan.path}: {format_count(len(plan.steps), 'Parquet file')}\n\n{fields(plain['counts'])}"
    if not steps:
        return f"{head}\n\nnothing to do"
    more = len(steps) - _LINES
    shown = text_table(steps[:_LINES], ["action", "partition", "parquet_bytes", "why"])
    return f"{head}\n\n{shown}" + (f"\nand {more} more" if more > 0 else "")


def _result_text(result: MigrationResult) -> str:
    plain = result.to_dict()
    problems, skipped = plain.pop("problems"), plain.pop("skipped")
    head = "migrated" if result.planned else "nothing to do"
    blocks = [head if not result.failed else f"{format_count(result.failed, 'file')} failed", fields(plain)]
    blocks += ["\n".join(f"skipped: {path}: in cold storage" for path in skipped[:_LINES])] if skipped else []
    blocks += ["\n".join(f"failed: {problem}" for problem in problems[:_LINES])] if problems else []
    return "\n\n".join(blocks)
