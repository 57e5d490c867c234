"""The global options, which may stand before or after a command, and how a command gets at them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, Concatenate, ParamSpec, TypeVar

import click

from windrow.cli.invocation import Invocation
from windrow.config import LOG_LEVELS

__all__ = ["Command", "Group", "pass_invocation"]

P = ParamSpec("P")
R = TypeVar("R")

_META = "windrow.options"


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


class Command(click.Command):
    """A command that takes the global options too."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params.extend(_global_options(hidden=True))


class Group(click.Group):
    """A group whose commands take the global options; the top one lists them."""

    command_class = Command
    group_class = type

    def __init__(self, *args: Any, top: bool = False, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params.extend(_global_options(hidden=not top))


def pass_invocation(function: Callable[Concatenate[Invocation, P], R]) -> Callable[P, R]:
    """Hand the command its invocation as the first argument, once all options were read."""

    @functools.wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> R:
        given: Mapping[str, Any] = click.get_current_context().meta.get(_META, {})
        return function(Invocation.of(given), *args, **kwargs)

    return called
