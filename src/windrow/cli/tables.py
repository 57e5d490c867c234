"""`windrow create`, `list`, `describe` and `set`: the tables of a lake and their settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from windrow.cli.invocation import Invocation
from windrow.cli.options import Command, confirmed, is_confirmed, pass_invocation
from windrow.cli.settings import dotted, read_pairs, read_setting
from windrow.cli.text import fields, in_units
from windrow.cli.text import table as text_table
from windrow.errors import AlreadyExists, InvalidInput, NotFound

if TYPE_CHECKING:
    from windrow.model.settings import TableSettings

__all__ = ["change", "create", "describe", "drop", "list_tables", "rename"]

_CHANGE = ["setting", "before", "after"]
_dry_run = click.option("--dry-run", is_flag=True, help="Check everything, change nothing.")


@click.command(cls=Command, short_help="Create an empty table.")
@click.argument("table")
@click.option("--sort", required=True, metavar="SCHEMA", help='Sort schema: "metric_name|host|timestamp/V2".')
@click.option("--window", metavar="DURATION", help="Length of a time window, such as 5m or 1h.  [default: 15m]")
@click.option("--cold-window", metavar="DURATION", help="Gather closed windows into these, or off.  [default: 1d]")
@click.option("--retention", metavar="DURATION", help="Keep windows for so long, such as 30d.  [default: for ever]")
@click.option("--timestamp", metavar="COLUMN", help="Column that decides the window.  [default: timestamp]")
@click.option("--timestamp-unit", metavar="UNIT", help="What an integer timestamp counts: s, ms, us or ns.")
@click.option("--timestamp-precision", metavar="UNIT", help="What times are stored in: us or ns.  [default: us]")
@click.option("--tags", metavar="A,B", help="Columns that name a series.  [default: all text columns]")
@click.option("--partition-by", metavar="A,B", help="Columns of the tenant; tenants never share a file.")
@click.option("--bloom-filters", metavar="A,B", help="Columns with a bloom filter in every row group.")
@click.option("--primary-key", metavar="A,B", help="Columns that tell rows apart; joins are planned by it.")
@click.option("--target-split-size", metavar="SIZE", help="Size that merges aim at.  [default: 256MiB]")
@click.option("--verify", metavar="HOW", help="Compare merges with their inputs: full or sample.  [default: full]")
@click.option("--compaction-start-time", metavar="TIME", help="Leave windows before this moment unmerged.")
@click.option("--late-data-acceptance-window", metavar="DURATION", help="Drop older points of streams.  [default: 1h]")
@click.option(
    "--policy", metavar="KEY=VALUE", multiple=True, help="When to merge, such as merge_factor=12; repeatable."
)
@_dry_run
@pass_invocation
def create(
    invocation: Invocation, /, table: str, *, policy: tuple[str, ...], dry_run: bool, **typed: str | None
) -> None:
    """Create the empty table TABLE; the lake is made too, if there is none."""
    from windrow.model.settings import TableSettings

    values = {name: read_setting(name, text) for name, text in typed.items() if text is not None}
    values |= read_pairs(f"policy.{pair}" for pair in policy)
    settings = TableSettings.of(**values)
    settings.check_names()
    if dry_run:
        _check_new_table(invocation, table)
    else:
        with invocation.lake(create=True) as lake:
            lake.create_table(table, **values)
    _answer_created(invocation, table, settings, dry_run=dry_run)


def _check_new_table(invocation: Invocation, name: str) -> None:
    from windrow.model.ids import check_name

    problem = check_name(name)
    if problem:
        raise InvalidInput(problem)
    try:
        with invocation.lake() as lake:
            taken = next((row.name for row in lake.tables() if row.name.lower() == name.lower()), None)
    except NotFound:  # no lake yet, so every name is free
        return
    if taken is not None:
        raise AlreadyExists(f"the table {taken!r} exists already; open it or choose another name")


def _answer_created(invocation: Invocation, table: str, settings: TableSettings, *, dry_run: bool) -> None:
    lake, plain = invocation.config.lake, settings.to_dict()
    done = "would create" if dry_run else "created"
    invocation.output.answer(
        {"table": table, "lake": lake, "dry_run": dry_run, "settings": plain},
        lambda: f"{done} table {table} in {lake}\n\n{fields(dotted(plain))}",
    )


@click.command(cls=Command, short_help="Drop a table; its files are deleted later.")
@click.argument("table")
@click.option("--dry-run", is_flag=True, help="Say what would leave, change nothing; so it is without --yes.")
@confirmed
@pass_invocation
def drop(invocation: Invocation, table: str, *, dry_run: bool, yes: bool) -> None:
    """Take TABLE out of the lake: its name is free, and what is being written into it is refused.

    Its files stay until `windrow gc --dropped` deletes them.
    """
    run = is_confirmed(dry_run=dry_run, yes=yes)
    with invocation.lake() as lake:
        answer = (lake.drop_table.run if run else lake.drop_table.plan)(table).to_dict()
    hint = "its files are there until `windrow gc --dropped`" if run else "nothing was changed; add --yes to do it"
    invocation.output.answer(
        {"dry_run": not run, **answer},
        lambda: f"{'dropped' if run else 'would drop'}\n\n{fields(answer)}\n\n{hint}",
    )


@click.command(cls=Command, short_help="Give a table another name.")
@click.argument("table")
@click.argument("name")
@_dry_run
@pass_invocation
def rename(invocation: Invocation, table: str, name: str, *, dry_run: bool) -> None:
    """Give TABLE another NAME; its files and its Delta log stay where they are."""
    with invocation.lake() as lake:
        answer = (lake.rename_table.plan if dry_run else lake.rename_table.run)(table, name).to_dict()
    done = "would rename" if dry_run else "renamed"
    invocation.output.answer({"dry_run": dry_run, **answer}, lambda: f"{done}\n\n{fields(answer)}")


@click.command("list", cls=Command)
@pass_invocation
def list_tables(invocation: Invocation) -> None:
    """List the tables of the lake."""
    with invocation.lake() as lake:
        rows = lake.tables().to_dict()
    names = ["name", "version", "window_seconds", "created_at", "sort"]
    invocation.output.answer(rows, lambda: text_table(rows, names))


@click.command(cls=Command, short_help="Show what a table is and how much it holds.")
@click.argument("table")
@click.option("--version", metavar="N", type=click.IntRange(min=0), help="Describe an older version of the table.")
@pass_invocation
def describe(invocation: Invocation, table: str, version: int | None) -> None:
    """Show what TABLE is and how much it holds."""
    with invocation.lake() as lake:
        opened = lake.table(table)
        description = (opened if version is None else opened.at(version=version)).describe().to_dict()
    invocation.output.answer(description, lambda: fields(description | {"settings": dotted(description["settings"])}))


@click.command("set", cls=Command, short_help="Change the settings of a table.")
@click.argument("table")
@click.argument("settings", nargs=-1, required=True, metavar="KEY=VALUE...")
@_dry_run
@pass_invocation
def change(invocation: Invocation, table: str, settings: tuple[str, ...], *, dry_run: bool) -> None:
    """Change settings of TABLE; new splits use the new values, old ones keep theirs.

    \b
    windrow set metrics window=5m policy.merge_factor=12
    windrow set metrics retention=none
    """
    values = read_pairs(settings)
    with invocation.lake() as lake:
        opened = lake.table(table)
        before = opened.settings()
        if "policy" in values:
            values["policy"] = before.to_dict()["policy"] | values["policy"]
        before.changed(**values)  # names that are no settings are refused here
        changed = (opened.change.plan if dry_run else opened.change.run)(**values)
    _answer_changed(invocation, table, changed.to_dict()["changes"], dry_run=dry_run)


def _answer_changed(invocation: Invocation, table: str, changes: list[dict[str, Any]], *, dry_run: bool) -> None:
    done = ("would change" if dry_run else "changed") if changes else "nothing to change in"
    lines = [{name: in_units(row["setting"], value) for name, value in row.items()} for row in changes]
    invocation.output.answer(
        {"table": table, "dry_run": dry_run, "changes": changes},
        lambda: f"{done} table {table}" + ("\n\n" + text_table(lines, _CHANGE) if changes else ""),
    )
