"""`windrow sql`: a query over the tables of the lake."""

from __future__ import annotations

import sys

import click

from windrow.cli.invocation import Invocation
from windrow.cli.options import Command, pass_invocation
from windrow.cli.text import literal, table

__all__ = ["sql"]


@click.command(cls=Command, short_help="Answer a query.")
@click.argument("query")
@pass_invocation
def sql(invocation: Invocation, query: str) -> None:
    """Answer QUERY on DuckDB; - reads it from stdin.

    \b
    windrow sql "select host, avg(value) from metrics group by host"
    """
    if query == "-":
        query = sys.stdin.read()
    with invocation.lake() as lake:
        answer = lake.sql(query)
    rows = answer.to_dict()
    invocation.output.answer(rows, lambda: table(rows, answer.arrow().column_names, literal))
