"""How a command answers: text for people, or one JSON value for programs, behind one interface.

The answer goes to stdout and nothing else does; progress and logs go to stderr.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from datetime import date, time
from decimal import Decimal
from typing import Any, Protocol

import click

__all__ = ["JsonOutput", "Output", "TextOutput", "to_json"]


class Output(Protocol):
    """Where a command puts what it has to say."""

    def answer(self, result: Any, text: Callable[[], str]) -> None:
        """Give the one answer of the command: `result` to programs, `text` to people."""

    def tell(self, text: str) -> None:
        """Say something on the way, to people only."""


class JsonOutput:
    """One JSON value on stdout."""

    def answer(self, result: Any, text: Callable[[], str]) -> None:  # noqa: ARG002
        """Print the result."""
        click.echo(to_json(result))

    def tell(self, text: str) -> None:
        """Keep quiet: a program reads one value."""


class TextOutput:
    """Lines and tables on stdout."""

    def answer(self, result: Any, text: Callable[[], str]) -> None:  # noqa: ARG002
        """Print the text."""
        click.echo(text())

    def tell(self, text: str) -> None:
        """Print it now."""
        click.echo(text)


def to_json(value: Any, *, indent: int | None = 2) -> str:
    """Return a value as JSON: times as ISO 8601, bytes as hexadecimal digits, NaN and infinity as text."""
    try:
        return json.dumps(value, indent=indent, allow_nan=False, default=_plain)
    except (TypeError, ValueError):  # a number that JSON cannot say, or a key that is no text
        return json.dumps(_plain(value), indent=indent, allow_nan=False)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(name): _plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[str(value)]
    if isinstance(value, date | time):  # a datetime is a date
        return value.isoformat()
    return value.hex() if isinstance(value, bytes) else str(value)
