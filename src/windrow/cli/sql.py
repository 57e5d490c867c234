"""`windrow sql`: a query over the tables of the lake, or a shell for many."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from windrow.cli.answers import output_options, write_answer, write_directly
from windrow.cli.invocation import Invocation
from windrow.cli.options import Command, pass_invocation
from windrow.cli.sql_output import Format, chosen_format, explained, is_explain

if TYPE_CHECKING:
    from windrow.lake import Lake

__all__ = ["sql"]


@click.command(cls=Command, short_help="Answer a query, or many in a shell.")
@click.argument("query", required=False)
@output_options
@click.option("--explain", is_flag=True, help="Say what the query would read, and why, and do not.")
@click.option("--sandbox", is_flag=True, help="Let queries read tables of the lake, and do nothing else.")
@pass_invocation
def sql(
    invocation: Invocation, query: str | None, form: str | None, output: str | None, *, explain: bool, sandbox: bool
) -> None:
    """Answer QUERY on DuckDB; - reads it from stdin. On a terminal, no QUERY at all starts a shell.

    \b
    windrow sql "select host, avg(value) from metrics group by host"
    windrow sql "select * from metrics" -o metrics.parquet

    Parquet files are named by path or address in place of a table. Answers are written as they are worked out, tables
    excepted, and a file gets its name when it is whole. On a terminal, a table has the first 100 rows. Queries are
    DuckDB's with all that it can do, files included, unless --sandbox is given.
    """
    chosen = chosen_format(invocation, form, output)
    interactive = query is None and output is None and sys.stdin.isatty() and sys.stdout.isatty()
    text = sys.stdin.read() if query in (None, "-") and not interactive else str(query)
    with invocation.lake(sandbox=sandbox) as lake:
        if interactive:
            from windrow.cli.shell import run_shell

            run_shell(lake, chosen)
        elif explain or (chosen is Format.TABLE and output is None and is_explain(text)):
            invocation.output.answer(*_explained(lake, text))
        elif output is not None or not write_directly(lake, text, chosen):
            write_answer(invocation, lake.stream(text), chosen, output)


def _explained(lake: Lake, query: str) -> tuple[object, Callable[[], str]]:
    plan, text = explained(lake, query)
    return plan, lambda: text
