"""Records that people read: a line for each field, sizes in units, long lists cut."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from windrow.model.units import format_bytes, is_size

__all__ = ["ShownByField"]

_MOST = 5
"""Items of a list that are shown."""


class ShownByField:
    """Gives a frozen dataclass (with `repr=False`) a text for people: its name, then a line for each field."""

    __slots__ = ()

    def __repr__(self) -> str:
        shown = [(field.name, getattr(self, field.name)) for field in fields(self) if field.repr]  # type: ignore[arg-type]
        width = max(len(name) for name, _ in shown)
        lines = [f"  {name:<{width}}  {_text(name, value)}" for name, value in shown]
        return "\n".join([type(self).__name__, *lines])


def _text(name: str, value: Any) -> str:
    if value is None or value == ():
        return "-"
    if isinstance(value, tuple):
        more = f" and {len(value) - _MOST:,} more" if len(value) > _MOST else ""
        return ", ".join(map(str, value[:_MOST])) + more
    if isinstance(value, bool) or not isinstance(value, int):
        return str(value)
    return format_bytes(value) if is_size(name) else f"{value:,}"
