"""`windrow register` and `unregister`: existing Parquet files join a table as they are, and leave it."""

from __future__ import annotations

import click

from windrow.cli.invocation import Invocation
from windrow.cli.options import Command, pass_invocation
from windrow.cli.progress import ticking
from windrow.cli.text import fields

__all__ = ["register", "unregister"]

_table = click.argument("table")
_paths = click.argument("paths", metavar="PATH...", nargs=-1, required=True)


@click.command(cls=Command, short_help="Let existing Parquet files join a table as they are.")
@_table
@_paths
@click.option(
    "--source", default="default", show_default=True, metavar="NAME", help="Stable name of where rows come from."
)
@click.option("--dry-run", is_flag=True, help="Look at the files, change nothing.")
@pass_invocation
def register(invocation: Invocation, /, table: str, paths: tuple[str, ...], *, source: str, dry_run: bool) -> None:
    """Let Parquet files, folders, globs or URLs join TABLE as they are, as one commit.

    They are read with the table, never merged, and stay where and what they are. Files that are in the table already
    are passed by.
    """
    with invocation.lake() as lake:
        opened = lake.table(table)
        if dry_run:
            plan = opened.register.plan(paths).to_dict()
            invocation.output.answer({"dry_run": True, **plan}, lambda: f"would register\n\n{fields(plan)}")
            return
        with ticking(f"registering with {table}") as advance:
            result = opened.register.run(
                paths, source=source, on_file=lambda split: advance(split.row_count, split.size_bytes)
            ).to_dict()
    invocation.output.answer(result, lambda: f"registered\n\n{fields(result)}")


@click.command(cls=Command, short_help="Take registered files out of a table.")
@_table
@_paths
@click.option("--dry-run", is_flag=True, help="Say which files would leave, change nothing.")
@pass_invocation
def unregister(invocation: Invocation, /, table: str, paths: tuple[str, ...], *, dry_run: bool) -> None:
    """Take registered files, or all below a folder, out of TABLE; the files themselves stay as they are."""
    with invocation.lake() as lake:
        opened = lake.table(table)
        if dry_run:
            plan = opened.unregister.plan(paths)
            invocation.output.answer(
                {"dry_run": True, **plan.to_dict()}, lambda: "\n".join(["would take out", *plan.files])
            )
            return
        result = opened.unregister.run(paths).to_dict()
    invocation.output.answer(result, lambda: f"taken out\n\n{fields(result)}")
