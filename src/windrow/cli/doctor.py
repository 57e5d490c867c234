"""`windrow doctor`: what is not well with tables, and which command helps."""

from __future__ import annotations

import click

from windrow.cli.invocation import Invocation
from windrow.cli.options import Command, pass_invocation
from windrow.cli.text import fields

__all__ = ["doctor"]


@click.command(cls=Command, short_help="Say what is not well with tables, and which command helps.")
@click.argument("table", required=False)
@click.option("--lag", default="10m", show_default=True, metavar="DURATION", help="When a closed window is compacted.")
@pass_invocation
def doctor(invocation: Invocation, table: str | None, lag: str) -> None:
    """Look at all tables, or at TABLE, for conditions that cost time, space or rows; nothing is changed.

    Each finding has the figure that shows it, the likely cause, and the command that helps. No finding is good news.
    """
    with invocation.lake() as lake:
        found = lake.doctor(table, lag=lag).to_dict()
    invocation.output.answer(found, lambda: "\n\n".join(map(fields, found)) or "nothing was found")
