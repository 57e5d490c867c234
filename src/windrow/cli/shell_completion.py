"""Completion of the `windrow` command by the user's own shell: commands, options, tables of the lake, files."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem, get_completion_class, shell_complete

from windrow.cli.options import Command, invocation_of, pass_invocation

if TYPE_CHECKING:
    from windrow.cli.invocation import Invocation

__all__ = ["complete", "completion", "tables_of"]

_VARIABLE = "_WINDROW_COMPLETE"
_SHELLS = {
    "bash": 'eval "$(windrow completion bash)"   in ~/.bashrc',
    "zsh": 'eval "$(windrow completion zsh)"    in ~/.zshrc',
    "fish": "windrow completion fish | source    in ~/.config/fish/config.fish",
}
_HELP = "\n".join(_SHELLS.values())


def complete(cli: click.Command) -> int | None:
    """Answer a shell that asks what may come next, and return the exit code; None when none asks."""
    instruction = os.environ.get(_VARIABLE)
    return None if not instruction else shell_complete(cli, {}, "windrow", _VARIABLE, instruction)


@click.command(cls=Command, short_help="Make Tab complete commands, tables and files.", epilog=f"\b\n{_HELP}")
@click.argument("shell", type=click.Choice(list(_SHELLS)))
@pass_invocation
def completion(invocation: Invocation, shell: str) -> None:
    """Print what makes SHELL complete commands, options, tables and files of `windrow`.

    Add the line of your shell to its start-up file:
    """
    script = get_completion_class(shell)
    if script is not None:
        source = script(click.get_current_context().find_root().command, {}, "windrow", _VARIABLE).source()
        invocation.output.answer({"shell": shell, "script": source}, lambda: source)


def tables_of(context: click.Context, incomplete: str) -> list[CompletionItem]:
    """The tables of the lake that the command line names so far; none where it cannot be opened."""
    from windrow.errors import WindrowError

    with suppress(WindrowError, OSError), invocation_of(context).lake() as lake:
        typed = incomplete.lower()
        return [CompletionItem(row.name) for row in lake.tables() if row.name.lower().startswith(typed)]
    return []
