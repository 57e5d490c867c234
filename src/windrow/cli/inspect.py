"""`windrow inspect`: what a table is made of."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from windrow.cli.invocation import Invocation
from windrow.cli.options import Group, pass_invocation
from windrow.cli.text import table as text_table

if TYPE_CHECKING:
    from windrow.inspection import Inspect
    from windrow.model.rows import Rows

__all__ = ["inspect"]

_table = click.argument("table")
_version = click.option(
    "--version", metavar="N", type=click.IntRange(min=0), help="Look at an older version of the table."
)
_limit = click.option("--limit", metavar="N", type=click.IntRange(min=0), help="Show so many at most.")


@click.group(cls=Group)
def inspect() -> None:
    """Look at what a table is made of."""


@inspect.command()
@_table
@_version
@_limit
@pass_invocation
def windows(invocation: Invocation, table: str, version: int | None, limit: int | None) -> None:
    """List the time windows of TABLE with the splits and rows in each."""
    rows = _read(invocation, table, version, lambda views: views.windows())
    _answer(invocation, rows[:limit], ["window", "splits", "rows", "size_bytes", "generation", "start"])


@inspect.command()
@_table
@_version
@_limit
@pass_invocation
def splits(invocation: Invocation, table: str, version: int | None, limit: int | None) -> None:
    """List the files of TABLE that are visible, by window."""
    rows = _read(invocation, table, version, lambda views: views.splits(limit))
    names = ["split_id", "window", "rows", "size_bytes", "generation", "first", "last", "key"]
    _answer(invocation, rows, names)


@inspect.command()
@_table
@_limit
@pass_invocation
def commits(invocation: Invocation, table: str, limit: int | None) -> None:
    """List the commits to TABLE, newest first."""
    rows = _read(invocation, table, None, lambda views: views.commits(limit))
    names = ["commit_id", "kind", "state", "version", "opened_at", "added", "removed", "rows_added", "rows_removed"]
    _answer(invocation, rows, names)


@inspect.command()
@_table
@_limit
@pass_invocation
def merges(invocation: Invocation, table: str, limit: int | None) -> None:
    """List the merges that compaction published in TABLE, newest first."""
    rows = _read(invocation, table, None, lambda views: views.merges(limit))
    names = ["window", "version", "splits_in", "splits_out", "rows", "bytes_in", "bytes_out", "seconds", "why"]
    _answer(invocation, rows, names)


@inspect.command()
@_table
@_limit
@pass_invocation
def quarantine(invocation: Invocation, table: str, limit: int | None) -> None:
    """List the splits of TABLE that compaction keeps away from, with the reasons; queries read them as before."""
    rows = _read(invocation, table, None, lambda views: views.quarantine())
    _answer(invocation, rows[:limit], ["split_id", "since", "reason"])


@inspect.command()
@_table
@_limit
@pass_invocation
def runs(invocation: Invocation, table: str, limit: int | None) -> None:
    """List the runs of compaction on TABLE, newest first."""
    rows = _read(invocation, table, None, lambda views: views.runs(limit))
    names = [
        "started_at", "state", "planned", "done", "skipped", "failed", "splits_in", "splits_out", "bytes_in",
        "bytes_out", "write_amplification", "rewrites", "rewrites_bound", "seconds", "problems",
    ]  # fmt: skip
    _answer(invocation, rows, names)


@inspect.command()
@_table
@_version
@_limit
@pass_invocation
def columns(invocation: Invocation, table: str, version: int | None, limit: int | None) -> None:
    """List the columns of TABLE with their types and Parquet field ids."""
    rows = _read(invocation, table, version, lambda views: views.columns())
    _answer(invocation, rows[:limit], ["name", "type", "field_id"])


@inspect.command()
@_table
@click.argument("column")
@click.option("--where", metavar="CONDITION", help="Of the rows that meet this condition alone.")
@_version
@_limit
@pass_invocation
def labels(
    invocation: Invocation, table: str, column: str, where: str | None, version: int | None, limit: int | None
) -> None:
    """List the values of COLUMN in TABLE, a column of text, and whether metadata or the rows told of each."""
    rows = _read(invocation, table, version, lambda views: views.labels(column, where))
    _answer(invocation, rows[:limit], ["value", "known_by"])


@inspect.command()
@_table
@_version
@_limit
@pass_invocation
def sources(invocation: Invocation, table: str, version: int | None, limit: int | None) -> None:
    """List the sources of TABLE with the rows that came of each and those that were dropped."""
    rows = _read(invocation, table, version, lambda views: views.sources())
    _answer(
        invocation, rows[:limit], ["source", "commits", "rows", "late", "future", "conflicting", "unfit", "rounded"]
    )


@inspect.command("dead-letters")
@_table
@_version
@_limit
@pass_invocation
def dead_letters(invocation: Invocation, table: str, version: int | None, limit: int | None) -> None:
    """List the files of rows that ingests into TABLE dropped, newest first."""
    rows = _read(invocation, table, version, lambda views: views.dead_letters())
    _answer(invocation, rows[:limit], ["key", "rows", "version", "commit_id"])


def _read(
    invocation: Invocation, table: str, version: int | None, view: Callable[[Inspect], Rows[Any]]
) -> list[dict[str, Any]]:
    with invocation.lake() as lake:
        opened = lake.table(table)
        return view((opened if version is None else opened.at(version=version)).inspect).to_dict()


def _answer(invocation: Invocation, rows: list[dict[str, Any]], names: list[str]) -> None:
    invocation.output.answer(rows, lambda: text_table(rows, names))
