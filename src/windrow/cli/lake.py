"""`windrow lake`: which lake this is to its metastore, and how to move it or to add one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from windrow.cli.invocation import Invocation
from windrow.cli.options import Group, pass_invocation
from windrow.cli.text import fields
from windrow.cli.text import table as text_table

if TYPE_CHECKING:
    from windrow.identity.binding import Accept, Binding

__all__ = ["lake"]

_LAKES = ["lake_id", "address", "tables"]
_dry_run = click.option("--dry-run", is_flag=True, help="Check everything, change nothing.")


@click.group(cls=Group)
def lake() -> None:
    """Show which lake this is to its metastore, move it, or add one."""


@lake.command()
@pass_invocation
def show(invocation: Invocation) -> None:
    """Show how the lake stands to its metastore, and the lakes that the metastore serves; nothing is changed."""
    binding = _identified(invocation).to_dict()
    invocation.output.answer(binding, lambda: _text(binding))


@lake.command()
@_dry_run
@pass_invocation
def move(invocation: Invocation, *, dry_run: bool) -> None:
    """Let the metastore know the lake by the address that it has now."""
    _accept(invocation, "move", "moved", dry_run=dry_run)


@lake.command()
@_dry_run
@pass_invocation
def add(invocation: Invocation, *, dry_run: bool) -> None:
    """Let the metastore serve the lake too, beside those that it serves already."""
    _accept(invocation, "add", "added", dry_run=dry_run)


def _accept(invocation: Invocation, accept: Accept, done: str, *, dry_run: bool) -> None:
    before = _identified(invocation)
    before.check(accept)
    changes = before.record is None or before.state == "moved"
    if not dry_run:
        # To open it is all there is to do.
        with invocation.lake(create=accept == "add", accept=accept):
            pass
    after = (before if dry_run else _identified(invocation)).to_dict() | {"dry_run": dry_run, "changed": changes}
    verb = (f"would be {done}" if dry_run else f"was {done}") if changes else "is served already"
    invocation.output.answer(after, lambda: f"the lake at {after['lake']} {verb}\n\n{_text(after)}")


def _identified(invocation: Invocation) -> Binding:
    from windrow.identity.identify import identify

    config = invocation.config
    return identify(config.lake, metastore=config.metastore, store_options=config.store_options)


def _text(binding: dict[str, Any]) -> str:
    plain = {name: value for name, value in binding.items() if name != "lakes" and value is not None}
    lakes = text_table(binding["lakes"], _LAKES) if binding["lakes"] else "the metastore serves no lake yet"
    return f"{fields(plain)}\n\n{lakes}"
