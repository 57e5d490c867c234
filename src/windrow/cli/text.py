"""Records as people read them: in units, under headings, as wide as the terminal; plain lines when piped."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from textwrap import indent
from typing import Any

from windrow.cli.grid import Grid
from windrow.model.units import format_bytes, format_seconds, is_size

__all__ = ["fields", "in_units", "literal", "table"]


def _count(value: int) -> str:
    return f"{value:,}"


def _moment(text: str) -> str:
    """Seconds are enough for people; JSON has the rest."""
    return text.partition(".")[0].partition("+")[0].replace("T", " ") + "Z"


# Numbers without a unit here stay as they are: seconds since the epoch, versions and ids are no counts.
_COUNTS = (
    "added", "conflicting", "future", "late",
    "distinct", "new", "new_error",
    "null_timestamps", "nulled", "points", "removed", "rounded", "rows", "rows_added", "rows_removed",
    "series", "splits", "unfit", "windows",
    "files_after", "files_before", "merges", "splits_after", "splits_in", "splits_out",
)  # fmt: skip
_DURATIONS = (
    "window", "window_seconds", "cold_window", "retention", "retention_seconds", "grace_seconds",
    "late_data_acceptance_window", "maturation_period",
)  # fmt: skip
_SIZE: tuple[type, Callable[[Any], str]] = (int, format_bytes)
_UNITS: dict[str, tuple[type, Callable[[Any], str]]] = {
    **dict.fromkeys(_COUNTS, (int, _count)),
    **dict.fromkeys(_DURATIONS, (int, format_seconds)),
    **dict.fromkeys(("created_at", "opened_at", "published_at", "since", "started_at"), (str, _moment)),
    **dict.fromkeys(("seconds", "write_amplification"), (float, "{:.2f}".format)),
}


def in_units(name: str, value: Any) -> str:
    """Return one of our own values as text, in the unit that its field has."""
    if value is None or value in ([], ()):
        return "-"
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    field = name.rpartition(".")[2]
    kind, write = _SIZE if is_size(field) else _UNITS.get(field, (object, str))
    return _printable(write(value) if isinstance(value, kind) else str(value))


def literal(_: str, value: Any) -> str:
    """Return a value of the user's own as it is."""
    return "NULL" if value is None else _printable(str(value))


def _printable(text: str) -> str:
    """A tag may hold anything, line ends and control characters of terminals too."""
    return text if text.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def table(rows: Sequence[Mapping[str, Any]], names: Sequence[str], write: Callable[[str, Any], str] = in_units) -> str:
    """Return rows as a table of the named fields; on a terminal the last ones are left out when they do not fit."""
    grid = Grid(
        titles=tuple(_title(name) if write is in_units else name for name in names),
        rows=tuple(tuple(write(name, row[name]) for name in names) for row in rows),
        right=tuple(_are_numbers([row[name] for row in rows]) for name in names),
    )
    return grid.on_terminal() if sys.stdout.isatty() else grid.plain()


def fields(record: Mapping[str, Any]) -> str:
    """Return a record as a line for each field; records in it come below, each under its name."""
    inner = {name: value for name, value in record.items() if _is_inner(value)}
    flat = [(name.removesuffix("_bytes"), in_units(name, value)) for name, value in record.items() if name not in inner]
    width = max((len(name) for name, _ in flat), default=0)
    blocks = ["\n".join(f"{name:<{width}}  {value}" for name, value in flat)] if flat else []
    for name, value in inner.items():
        body = fields(value) if isinstance(value, Mapping) else table(value, list(value[0]))
        blocks.append(f"{name}:\n" + indent(body, "  "))
    return "\n\n".join(blocks)


def _title(name: str) -> str:
    """The unit is beside the value."""
    return name.removesuffix("_bytes").removesuffix("_seconds").replace("_", " ")


def _is_inner(value: Any) -> bool:
    return isinstance(value, Mapping) or (
        isinstance(value, list | tuple) and isinstance(next(iter(value), None), Mapping)
    )


def _are_numbers(values: list[Any]) -> bool:
    present = [value for value in values if value is not None]
    return bool(present) and all(hasattr(value, "__float__") and not isinstance(value, bool) for value in present)
