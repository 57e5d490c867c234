"""`windrow gc` and `windrow expire`: what leaves a table, and what leaves the store. Both only look unless told."""

from __future__ import annotations

from typing import Any

import click

from windrow.cli.invocation import Invocation
from windrow.cli.options import Command, pass_invocation
from windrow.cli.progress import ticking
from windrow.cli.text import fields

__all__ = ["expire", "gc"]

_run = click.option("--run", is_flag=True, help="Do it; without this, only say what would be done.")


@click.command(cls=Command, short_help="Delete files that nobody can need any more.")
@click.argument("table")
@click.option("--grace", default="1d", show_default=True, metavar="DURATION", help="Keep what is younger than this.")
@click.option("--limit", type=click.IntRange(min=0), metavar="N", help="Delete so many splits, and orphans, at most.")
@click.option("--per-second", type=click.FloatRange(min=0, min_open=True), metavar="N", help="Delete no faster.")
@_run
@pass_invocation
def gc(
    invocation: Invocation, table: str, *, grace: str, limit: int | None, per_second: float | None, run: bool
) -> None:
    """Delete the files of TABLE that no version shows any more, and those that failed commits left.

    Versions older than the grace period can no longer be read afterwards, unless a reader holds them.
    """
    from windrow.upkeep.pace import Pace

    with invocation.lake() as lake:
        verb = lake.table(table).upkeep.gc
        if not run:
            _answer(invocation, "would delete", verb.plan(grace=grace).to_dict(), dry_run=True)
            return
        with ticking(f"collecting garbage of {table}") as advance:
            result = verb.run(grace=grace, limit=limit, pace=Pace(per_second), on_delete=lambda size: advance(0, size))
    _answer(invocation, "deleted", result.to_dict(), dry_run=False)


@click.command(cls=Command, short_help="Take windows out of a table that are older than it keeps them.")
@click.argument("table")
@click.option("--retention", metavar="DURATION", help="Keep windows for so long.  [default: the table's retention]")
@_run
@pass_invocation
def expire(invocation: Invocation, table: str, *, retention: str | None, run: bool) -> None:
    """Take whole windows out of TABLE, as one commit; `windrow gc` deletes their files later."""
    with invocation.lake() as lake:
        verb = lake.table(table).upkeep.expire
        if run:
            _answer(invocation, "expired", verb.run(retention=retention).to_dict(), dry_run=False)
        else:
            _answer(invocation, "would expire", verb.plan(retention=retention).to_dict(), dry_run=True)


def _answer(invocation: Invocation, done: str, found: dict[str, Any], *, dry_run: bool) -> None:
    hint = "\n\nnothing was changed; add --run to do it" if dry_run else ""
    invocation.output.answer({"dry_run": dry_run, **found}, lambda: f"{done}\n\n{fields(found)}{hint}")
