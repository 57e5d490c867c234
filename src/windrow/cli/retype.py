"""`windrow retype`: a column gets a type that its values do not have."""

from __future__ import annotations

import click

from windrow.cli.invocation import Invocation
from windrow.cli.options import Command, pass_invocation
from windrow.cli.text import fields

__all__ = ["retype"]


@click.command(cls=Command, short_help="Give a column another type.")
@click.argument("table")
@click.argument("column")
@click.argument("to", metavar="TYPE")
@click.option(
    "--old-values",
    metavar="RULE",
    help="How values that exist are read: cast, cast_or_null or null.  [required]",
)
@click.option("--dry-run", is_flag=True, help="Look at all values, change nothing.")
@pass_invocation
def retype(
    invocation: Invocation, /, table: str, column: str, to: str, *, old_values: str | None, dry_run: bool
) -> None:
    """Give COLUMN of TABLE another TYPE, such as double, int64, string or "timestamp[us, tz=UTC]".

    Nothing is rewritten. Values that exist are read by a rule from then on: `cast` converts every one exactly, or
    changes nothing; with `cast_or_null` those that cannot be converted exactly read as null; with `null` all do. Older
    versions show the old type. Other readers of the Delta log refuse the table while such values are visible.

    \b
    windrow retype metrics load double --old-values cast_or_null --dry-run
    """
    with invocation.lake() as lake:
        verbs = lake.table(table).retype
        if dry_run:
            plan = verbs.plan(column, to, old_values=old_values).to_dict()
            invocation.output.answer({"dry_run": True, **plan}, lambda: f"would change\n\n{fields(plan)}")
            return
        result = verbs.run(column, to, old_values=old_values).to_dict()
    invocation.output.answer(result, lambda: f"changed\n\n{fields(result)}")
