"""`windrow analyze`: statistics of the columns of a table, or of files."""

from __future__ import annotations

import click

from windrow.cli.invocation import Invocation
from windrow.cli.options import Command, pass_invocation
from windrow.cli.progress import ticking
from windrow.cli.sparks import sparks
from windrow.cli.text import fields
from windrow.model.ids import check_name

__all__ = ["analyze"]


@click.command(cls=Command, short_help="Learn the statistics of a table or of files at once.")
@click.argument("table")
@click.argument("columns", nargs=-1)
@click.option("--runner", type=click.Choice(["local", "spark"]), default="local", show_default=True, help="Who works.")
@pass_invocation
def analyze(invocation: Invocation, table: str, columns: tuple[str, ...], *, runner: str) -> None:
    """Read those values of COLUMNS of TABLE, or of all, that were not read before, and store their statistics.

    In place of TABLE, Parquet files are named by path, glob or address. `windrow inspect statistics` lists what was
    learnt, and `windrow inspect cardinality` counts series by it. Merges pass it on to the files that they write.

    \b
    windrow analyze metrics host value
    windrow analyze 'raw/*.parquet'
    """
    is_table = check_name(table) is None
    with (
        invocation.lake() as lake,
        sparks(invocation, wanted=is_table and runner == "spark") as spark,
        ticking(f"analyzing {table}") as advance,
    ):
        if is_table:
            result = lake.table(table).upkeep.analyze(columns or None, spark=spark, on_splits=advance).to_dict()
        else:
            result = lake.files(table).analyze(columns or None, on_files=advance).to_dict()
    invocation.output.answer(result, lambda: f"analyzed\n\n{fields(result)}")
