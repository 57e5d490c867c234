"""Records that people read: a line for each field, sizes in units, long lists cut."""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import Any

from windrow.model.units import format_bytes, is_size

__all__ = ["ShownByField", "ShownVerdict"]

_MOST = 5
"""Items of a list that are shown."""

_BREAK = "\n"
"""Between items of several words, which get a line each."""


class ShownByField:
    """Gives a frozen dataclass (with `repr=False`) plain values, and a text for people: its name, then its fields."""

    __slots__ = ()

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self)  # type: ignore[call-overload,no-any-return]

    def __repr__(self) -> str:
        shown = [(field.name, getattr(self, field.name)) for field in fields(self) if field.repr]  # type: ignore[arg-type]
        width = max(len(name) for name, _ in shown)
        indent = "\n" + " " * (width + 4)
        lines = [f"  {name:<{width}}  {_text(name, value).replace(_BREAK, indent)}" for name, value in shown]
        return "\n".join([type(self).__name__, *lines])


class ShownVerdict(ShownByField):
    """Shows the report of a check; `findings` are what is wrong."""

    __slots__ = ()
    findings: tuple[Any, ...]

    @property
    def sound(self) -> bool:
        """Whether nothing is wrong."""
        return not self.findings

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, the verdict first."""
        return {"sound": self.sound, **super().to_dict()}


def _text(name: str, value: Any) -> str:
    if value is None or value == ():
        return "-"
    if isinstance(value, tuple):
        items = list(map(str, value[:_MOST]))
        more = f" and {len(value) - _MOST:,} more" if len(value) > _MOST else ""
        return (_BREAK if any(" " in item for item in items) else ", ").join(items) + more
    if isinstance(value, bool) or not isinstance(value, int):
        return str(value)
    return format_bytes(value) if is_size(name) else f"{value:,}"
