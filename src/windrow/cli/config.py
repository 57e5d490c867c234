"""`windrow config`: the settings of a call and where they came from."""

from __future__ import annotations

from dataclasses import asdict

import click

from windrow.cli.invocation import Invocation
from windrow.cli.options import Group, pass_invocation
from windrow.cli.text import table

__all__ = ["config"]


@click.group(cls=Group)
def config() -> None:
    """Look at the settings."""


@config.command("show", short_help="Show every setting and where it came from.")
@pass_invocation
def show(invocation: Invocation) -> None:
    """Show every setting, its value and where the value came from; secrets are masked."""
    rows = [asdict(setting) for setting in invocation.resolved.shown()]
    invocation.output.answer(rows, lambda: table(rows, ["name", "value", "origin"]))
