"""`windrow analyze`: statistics of the columns of a table."""

from __future__ import annotations

import click

from windrow.cli.invocation import Invocation
from windrow.cli.options import Command, pass_invocation
from windrow.cli.progress import ticking
from windrow.cli.text import fields

__all__ = ["analyze"]


@click.command(cls=Command, short_help="Learn the statistics of a table at once.")
@click.argument("table")
@click.argument("columns", nargs=-1)
@pass_invocation
def analyze(invocation: Invocation, table: str, columns: tuple[str, ...]) -> None:
    """Read those values of COLUMNS of TABLE, or of all, that were not read before, and store their statistics.

    `windrow inspect statistics` lists them. Merges pass them on to the files that they write.
    """
    with invocation.lake() as lake, ticking(f"analyzing {table}") as advance:
        result = lake.table(table).upkeep.analyze(columns or None, on_splits=advance).to_dict()
    invocation.output.answer(result, lambda: f"analyzed\n\n{fields(result)}")
