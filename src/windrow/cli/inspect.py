"""`windrow inspect`: what a table is made of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from operator import methodcaller
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from windrow.cli.invocation import Invocation
from windrow.cli.options import Group, pass_invocation
from windrow.cli.text import fields
from windrow.cli.text import table as text_table
from windrow.model.ids import check_name

if TYPE_CHECKING:
    from windrow.inspection import Inspect
    from windrow.model.rows import Rows
    from windrow.upkeep.file_analysis import Files

__all__ = ["inspect"]

_table = click.argument("table")
_version = click.option(
    "--version", metavar="N", type=click.IntRange(min=0), help="Look at an older version of the table."
)
_limit = click.option("--limit", metavar="N", type=click.IntRange(min=0), help="Show so many at most.")


@dataclass(frozen=True, slots=True)
class _View:
    """A view of a table that is a command: the method of `Inspect` with its name, and the columns of the text."""

    name: str
    help: str
    columns: str
    has_versions: bool = True
    """Whether an older version of the table can be looked at."""
    has_limit: bool = False
    """Whether the method takes the limit, for views that may be long."""


_VIEWS = (
    _View(
        "windows",
        "List the time windows of TABLE with the splits and rows in each.",
        "window splits rows size_bytes generation start",
    ),
    _View(
        "splits",
        "List the files of TABLE that are visible, by window.",
        "split_id window rows size_bytes generation first last key",
        has_limit=True,
    ),
    _View(
        "commits",
        "List the commits to TABLE, newest first.",
        "commit_id kind state version opened_at added removed rows_added rows_removed",
        has_versions=False,
        has_limit=True,
    ),
    _View(
        "merges",
        "List the merges that compaction published in TABLE, newest first.",
        "window version splits_in splits_out rows bytes_in bytes_out seconds why",
        has_versions=False,
        has_limit=True,
    ),
    _View(
        "quarantine",
        "List the splits of TABLE that compaction keeps away from, with the reasons; queries read them as before.",
        "split_id since reason",
        has_versions=False,
    ),
    _View(
        "runs",
        "List the runs of compaction on TABLE, newest first.",
        "started_at state planned done skipped failed splits_in splits_out bytes_in bytes_out write_amplification "
        "rewrites rewrites_bound seconds problems",
        has_versions=False,
        has_limit=True,
    ),
    _View("columns", "List the columns of TABLE with their types and Parquet field ids.", "name type field_id"),
    _View(
        "sources",
        "List the sources of TABLE with the rows that came of each and those that were dropped.",
        "source commits rows late future conflicting unfit rounded",
    ),
    _View(
        "dead-letters",
        "List the files of rows that ingests into TABLE dropped, newest first.",
        "key rows version commit_id",
    ),
)


@click.group(cls=Group)
def inspect() -> None:
    """Look at what a table is made of."""


def _add(view: _View) -> None:
    @pass_invocation
    def show(invocation: Invocation, table: str, limit: int | None, version: int | None = None) -> None:
        rows = methodcaller(view.name.replace("-", "_"), *([limit] if view.has_limit else []))
        _answer(invocation, _read(invocation, table, version, rows)[:limit], view.columns.split())

    options = [_table, *([_version] if view.has_versions else []), _limit]
    for option in reversed(options):
        show = option(show)
    inspect.command(view.name, help=view.help)(show)


for _each in _VIEWS:
    _add(_each)


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
    """List the values of COLUMN in TABLE, a column of text, and whether metadata or the rows have each."""
    rows = _read(invocation, table, version, lambda views: views.labels(column, where))
    _answer(invocation, rows[:limit], ["value", "known_by"])


@inspect.command()
@_table
@click.option(
    "--puffin",
    metavar="FILE",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    help="Write the sketches of all columns of a table into a Puffin file.",
)
@_version
@_limit
@pass_invocation
def statistics(invocation: Invocation, table: str, puffin: Path | None, version: int | None, limit: int | None) -> None:
    """List what is known of the columns of TABLE, or of Parquet files by path, glob or address.

    It is distinct values, nulls, least and greatest; `windrow analyze` learns them at once.
    """
    if version is None and puffin is None and check_name(table) is not None:
        found = _of_files(invocation, table, lambda files: files.statistics())
    else:
        found = _read(invocation, table, version, lambda views: _statistics(views, puffin))
    names = "column rows learnt_rows distinct distinct_error is_exact nulls minimum maximum"
    _answer(invocation, found[:limit], names.split())


def _statistics(views: Inspect, puffin: Path | None) -> Rows[Any]:
    if puffin is not None:
        puffin.write_bytes(views.puffin())
    return views.statistics()


@inspect.command()
@_table
@click.option("--learn", is_flag=True, help="Read what was never read, and learn it first.")
@_version
@_limit
@pass_invocation
def cardinality(invocation: Invocation, table: str, *, learn: bool, version: int | None, limit: int | None) -> None:
    """Count the series of TABLE by column, pair of labels, metric and window, from statistics, without reading data.

    Labels whose values grow with the series are marked. `windrow analyze` learns what is missing.
    """
    with invocation.lake() as lake:
        opened = lake.table(table)
        views = (opened if version is None else opened.at(version=version)).inspect
        found = views.cardinality(learn=learn).to_dict()
    shown = {name: value[:limit] if isinstance(value, list) else value for name, value in found.items()}
    invocation.output.answer(shown, lambda: fields(shown))


def _read(
    invocation: Invocation, table: str, version: int | None, view: Callable[[Inspect], Rows[Any]]
) -> list[dict[str, Any]]:
    with invocation.lake() as lake:
        opened = lake.table(table)
        return view((opened if version is None else opened.at(version=version)).inspect).to_dict()


def _of_files(invocation: Invocation, pattern: str, view: Callable[[Files], Rows[Any]]) -> list[dict[str, Any]]:
    with invocation.lake() as lake:
        return view(lake.files(pattern)).to_dict()


def _answer(invocation: Invocation, rows: list[dict[str, Any]], names: list[str]) -> None:
    invocation.output.answer(rows, lambda: text_table(rows, names))
