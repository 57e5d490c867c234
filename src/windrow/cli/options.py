"""The global options, which may stand before or after a command, and how a command gets at them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Concatenate, ParamSpec, TypeVar

import click
from click.shell_completion import CompletionItem

from windrow.cli.invocation import Invocation
from windrow.config import LOG_LEVELS

__all__ = ["Command", "Group", "confirmed", "invocation_of", "is_confirmed", "pass_invocation"]

P = ParamSpec("P")
R = TypeVar("R")

_META = "windrow.options"
_PLACES = ("FILE", "PATH", "SOURCE", "URL")
"""How parameters that take files and addresses are called in the help."""


def _remember(context: click.Context, parameter: click.Parameter, value: Any) -> None:
    """Keep what was given; a command stands after its group, so its own word wins."""
    if value is not None:
        context.meta.setdefault(_META, {})[parameter.name] = value


_LISTED = (
    ("--lake", "URL", "Folder or bucket of the lake.  [default: ./lake]"),
    ("--metastore", "URL", "Database of the lake.  [default: windrow.db in its folder]"),
    ("--config", "FILE", "File of settings.  [default: windrow.toml, if it exists]"),
    ("--log-level", "LEVEL", "Show debug, info, warning or error lines.  [default: warning]"),
)


def _global_options(*, hidden: bool) -> list[click.Parameter]:
    """Return the options; below the top only `--json` is listed, the others work but would drown the command's own."""
    shared: dict[str, Any] = {"expose_value": False, "callback": _remember, "default": None}
    levels = click.Choice(LOG_LEVELS, case_sensitive=False)
    options: list[click.Parameter] = [
        click.Option(
            [name], metavar=metavar, help=text, hidden=hidden, type=levels if name == "--log-level" else str, **shared
        )
        for name, metavar, text in _LISTED
    ]
    return [*options, click.Option(["--json"], is_flag=True, help="Answer with JSON on stdout.", **shared)]


confirmed = click.option("--yes", is_flag=True, help="Do it; without this, only say what would be done.")
"""For commands that delete, or take away what people see."""


def is_confirmed(*, dry_run: bool, yes: bool) -> bool:
    """Whether a command that takes `--yes` may do its work."""
    if dry_run and yes:
        raise click.UsageError("--dry-run changes nothing, --yes does; give one of them")
    return yes


class _TableName(click.types.StringParamType):
    """The name of a table; a shell completes it."""

    def shell_complete(
        self,
        ctx: click.Context,
        param: click.Parameter,  # noqa: ARG002
        incomplete: str,
    ) -> list[CompletionItem]:
        """The tables of the lake."""
        from windrow.cli.shell_completion import tables_of

        return tables_of(ctx, incomplete)


class _Place(click.types.StringParamType):
    """A file or an address; a shell completes files."""

    def shell_complete(
        self,
        ctx: click.Context,  # noqa: ARG002
        param: click.Parameter,  # noqa: ARG002
        incomplete: str,
    ) -> list[CompletionItem]:
        """Leave it to the shell, which knows its files."""
        return [CompletionItem(incomplete, type="file")]


def _completed(parameters: Iterable[click.Parameter]) -> None:
    """Let shells complete what parameters name: tables, files and folders."""
    for each in parameters:
        if each.type is not click.STRING:
            continue
        if each.name == "table" and isinstance(each, click.Argument):
            each.type = _TableName()
        elif (each.metavar or "").startswith(_PLACES):
            each.type = _Place()


class Command(click.Command):
    """A command that takes the global options too."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params.extend(_global_options(hidden=True))
        _completed(self.params)


class Group(click.Group):
    """A group whose commands take the global options; the top one lists them."""

    command_class = Command
    group_class = type

    def __init__(self, *args: Any, top: bool = False, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params.extend(_global_options(hidden=not top))
        _completed(self.params)


def pass_invocation(function: Callable[Concatenate[Invocation, P], R]) -> Callable[P, R]:
    """Hand the command its invocation as the first argument, once all options were read."""

    @functools.wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> R:
        return function(invocation_of(click.get_current_context()), *args, **kwargs)

    return called


def invocation_of(context: click.Context) -> Invocation:
    """Build the invocation from the global options that a context has read."""
    given: Mapping[str, Any] = context.meta.get(_META, {})
    return Invocation.of(given)
