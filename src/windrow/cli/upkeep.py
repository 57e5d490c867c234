"""`windrow gc`, `windrow expire` and `windrow check`: what leaves a table, what leaves the store, and what is wrong.

None of them changes anything without an option that says so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from windrow.cli.exit_codes import ExitCode
from windrow.cli.invocation import Invocation
from windrow.cli.options import Command, confirmed, is_confirmed, pass_invocation
from windrow.cli.progress import ticking
from windrow.cli.sparks import sparks
from windrow.cli.text import fields
from windrow.errors import NotFound, WindrowError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from windrow.lake import Lake

__all__ = ["check", "expire", "gc"]

_dry_run = click.option(
    "--dry-run", is_flag=True, help="Say what would be done, change nothing; so it is without --yes."
)


@click.command(cls=Command, short_help="Delete files that nobody can need any more.")
@click.argument("table", required=False)
@click.option("--dropped", is_flag=True, help="Instead of TABLE: what the dropped tables of the lake left.")
@click.option("--grace", default="1d", show_default=True, metavar="DURATION", help="Keep what is younger than this.")
@click.option("--limit", type=click.IntRange(min=0), metavar="N", help="Delete so many splits, and orphans, at most.")
@click.option("--per-second", type=click.FloatRange(min=0, min_open=True), metavar="N", help="Delete no faster.")
@_dry_run
@confirmed
@pass_invocation
def gc(
    invocation: Invocation,
    table: str | None,
    *,
    dropped: bool,
    grace: str,
    limit: int | None,
    per_second: float | None,
    dry_run: bool,
    yes: bool,
) -> None:
    """Delete the files of TABLE that no version shows any more, and those that failed commits left.

    Versions older than the grace period can no longer be read afterwards, unless a reader holds them. With --dropped,
    the files and Delta logs of tables go that were dropped longer ago than the grace period.
    """
    from windrow.upkeep.pace import Pace

    run = is_confirmed(dry_run=dry_run, yes=yes)
    if dropped:
        if table is not None or limit is not None or per_second is not None:
            raise click.UsageError("--dropped is for all dropped tables; leave TABLE, --limit and --per-second out")
        _collect_dropped(invocation, grace, run=run)
        return
    if table is None:
        raise click.UsageError("give a TABLE, or --dropped")
    with invocation.lake() as lake:
        verb = lake.table(table).upkeep.gc
        if not run:
            _answer(invocation, "would delete", verb.plan(grace=grace).to_dict(), dry_run=True)
            return
        with ticking(f"collecting garbage of {table}") as advance:
            result = verb.run(grace=grace, limit=limit, pace=Pace(per_second), on_delete=lambda size: advance(0, size))
    _answer(invocation, "deleted", result.to_dict(), dry_run=False)


def _collect_dropped(invocation: Invocation, grace: str, *, run: bool) -> None:
    with invocation.lake() as lake:
        verb = lake.collect_dropped
        reports = [each.to_dict() for each in (verb.run(grace=grace) if run else verb.plan(grace=grace))]
    _answer(
        invocation, "dropped tables" if reports else "there are no dropped tables", {"tables": reports}, dry_run=not run
    )


@click.command(cls=Command, short_help="Take windows out of a table that are older than it keeps them.")
@click.argument("table")
@click.option("--retention", metavar="DURATION", help="Keep windows for so long.  [default: the table's retention]")
@_dry_run
@confirmed
@pass_invocation
def expire(invocation: Invocation, table: str, *, retention: str | None, dry_run: bool, yes: bool) -> None:
    """Take whole windows out of TABLE, as one commit; `windrow gc` deletes their files later."""
    run = is_confirmed(dry_run=dry_run, yes=yes)
    with invocation.lake() as lake:
        verb = lake.table(table).upkeep.expire
        if run:
            _answer(invocation, "expired", verb.run(retention=retention).to_dict(), dry_run=False)
        else:
            _answer(invocation, "would expire", verb.plan(retention=retention).to_dict(), dry_run=True)


@click.command(cls=Command, short_help="Check a table: metastore, files, sidecars, mirror, invariants.")
@click.argument("table", required=False)
@click.option("--data", is_flag=True, help="Read every row too, not only what files say of themselves.")
@click.option("--repair", is_flag=True, help="Make sidecars again, let the mirror catch up, rebuild a lost metastore.")
@click.option("--dry-run", is_flag=True, help="With --repair: say what is wrong, change nothing.")
@click.option("--runner", type=click.Choice(["local", "spark"]), default="local", show_default=True, help="Who works.")
@pass_invocation
def check(invocation: Invocation, table: str | None, *, data: bool, repair: bool, dry_run: bool, runner: str) -> None:
    """Check TABLE, or every table of the lake, and exit with 6 when something is wrong.

    With --repair, tables that the metastore does not know are made again from their Delta logs and files.
    """
    repair = repair and not dry_run
    with (
        invocation.lake(accept="repair" if repair else None) as lake,
        sparks(invocation, wanted=runner == "spark") as spark,
    ):
        names = [table] if table is not None else sorted({row.name for row in lake.tables()} | set(lake.lost_tables()))
        results = [
            _checked(lake, name, data=data, repair=repair, spark=spark, strict=table is not None) for name in names
        ]
    sound = all(each["sound"] for each in results)
    if table is not None:
        invocation.output.answer(results[0], lambda: _check_text(results[0]))
    else:
        invocation.output.answer(
            {"sound": sound, "tables": results}, lambda: "\n\n".join(map(_check_text, results)) or "no tables"
        )
    if not sound:
        raise click.exceptions.Exit(ExitCode.DAMAGED)


def _checked(
    lake: Lake, name: str, *, data: bool, repair: bool, spark: SparkSession | None, strict: bool
) -> dict[str, Any]:
    """Check one table, and rebuild it before if it is lost; one of many that cannot be brought back stops no other."""
    rebuilt, folder = None, name
    if name not in [row.name for row in lake.tables()] and (repair or not strict):
        try:
            if not repair:
                raise NotFound("the metastore does not know it; add --repair to make it again")
            rebuilt = lake.rebuild_table(folder)
            name = rebuilt.table
        except WindrowError as error:
            if strict:
                raise
            return {"sound": False, "table": name, "problem": str(error)}
    with ticking(f"checking {name}") as advance:
        result = lake.table(name).upkeep.check(data=data, repair=repair, spark=spark, on_splits=advance)
    return result.to_dict() | ({} if rebuilt is None else {"rebuilt": rebuilt.to_dict()})


def _check_text(result: dict[str, Any]) -> str:
    return f"table {result['table']} is {'sound' if result['sound'] else 'not sound'}\n\n{fields(result)}"


def _answer(invocation: Invocation, done: str, result: dict[str, Any], *, dry_run: bool) -> None:
    hint = "\n\nnothing was changed; add --yes to do it" if dry_run else ""
    invocation.output.answer({"dry_run": dry_run, **result}, lambda: f"{done}\n\n{fields(result)}{hint}")
