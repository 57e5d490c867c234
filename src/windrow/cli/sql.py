"""`windrow sql`: a query over the tables of the lake, or a shell for many."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from windrow.cli.invocation import Invocation
from windrow.cli.options import Command, pass_invocation
from windrow.cli.sql_output import (
    MOST_SHOWN,
    Format,
    chosen_format,
    explained,
    is_explain,
    shown,
    write,
    written_aside,
)

if TYPE_CHECKING:
    from windrow.lake import Lake

__all__ = ["sql"]


@click.command(cls=Command, short_help="Answer a query, or many in a shell.")
@click.argument("query", required=False)
@click.option(
    "--format",
    "form",
    type=click.Choice([str(each) for each in Format]),
    help="What to write.  [default: as the name of the output ends, else table]",
)
@click.option("-o", "--output", metavar="FILE", help="Write to this file instead of stdout.")
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
        elif output is not None:
            _to_file(invocation, lake, text, chosen, output)
        elif chosen is Format.TABLE and sys.stdout.isatty():
            _to_terminal(lake, text)
        else:
            _to_stdout(lake, text, chosen)


def _explained(lake: Lake, query: str) -> tuple[object, Callable[[], str]]:
    said, text = explained(lake, query)
    return said, lambda: text


def _to_stdout(lake: Lake, query: str, form: Format) -> None:
    sink = sys.stdout.buffer
    with lake.stream(query) as batches:
        write(form, batches, sink)
    sink.flush()


def _to_terminal(lake: Lake, query: str) -> None:
    start = time.perf_counter()
    with lake.stream(query) as batches:
        rows = shown(batches, MOST_SHOWN)
    seconds = time.perf_counter() - start
    click.echo(rows.text(short=True))
    click.secho(f"{rows.counted}, {seconds:.3f} s", dim=True)


def _to_file(invocation: Invocation, lake: Lake, query: str, form: Format, output: str) -> None:
    start = time.perf_counter()
    with lake.stream(query) as batches, written_aside(output) as sink:
        rows = write(form, batches, sink)
    seconds = time.perf_counter() - start
    said = {"output": output, "format": str(form), "rows": rows, "seconds": round(seconds, 3)}
    invocation.output.answer(said, lambda: f"{rows:,} {'row' if rows == 1 else 'rows'} in {output}, {seconds:.3f} s")
