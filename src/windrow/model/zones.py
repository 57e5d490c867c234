"""Zone maps: the bounds of a column of a split, without reading it."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, overload

from windrow.errors import Damaged

__all__ = ["ColumnZone", "SortColumnValue", "StoredZones", "ValueKind"]


class ValueKind(StrEnum):
    """The tags of a sort column value."""

    STRING = "string"
    I64 = "i64"
    U64 = "u64"
    F64 = "f64"
    NULL = "null"


@dataclass(frozen=True, slots=True)
class SortColumnValue:
    """A bound of a column: a string, a signed or unsigned integer, a float, or null."""

    kind: ValueKind
    value: str | int | float | None

    @classmethod
    def of(cls, value: str | float | None) -> SortColumnValue:
        """Tag a Python value; integers are signed where they fit."""
        if value is None:
            return NULL
        if isinstance(value, str):
            return cls(ValueKind.STRING, value)
        if isinstance(value, int):
            return cls(ValueKind.I64 if value < 2**63 else ValueKind.U64, int(value))
        return cls(ValueKind.F64, value)

    @property
    def plain(self) -> str | int | float | None:
        """The value as JSON can hold it: floats that it cannot are strings."""
        value = self.value
        return repr(value) if self.kind is ValueKind.F64 and not math.isfinite(value) else value  # type: ignore[arg-type]

    def to_json(self) -> dict[str, Any]:
        """Return `{kind: value}`."""
        return {str(self.kind): self.plain}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> SortColumnValue:
        """Read what `to_json` wrote."""
        ((kind, value),) = data.items()
        return cls.from_plain(kind, value)

    @classmethod
    def from_plain(cls, kind: str, value: Any) -> SortColumnValue:
        """Read a kind and a `plain` value."""
        of_kind = ValueKind(kind)
        return cls(of_kind, float(value) if of_kind is ValueKind.F64 else value)


NULL = SortColumnValue(ValueKind.NULL, None)


@dataclass(frozen=True, slots=True)
class ColumnZone:
    """Bounds of one column over the rows of a split.

    `minimum` and `maximum` bound the values that are not null (strings may be shortened outwards). Null bounds with
    `null_count` below the row count mean that there are no bounds: such a zone proves nothing.
    """

    minimum: SortColumnValue
    maximum: SortColumnValue
    null_count: int
    regex: str | None = None
    """Matches, wholly, every value that is not null; None when there is none."""

    def to_json(self) -> list[Any]:
        """Return a compact list for the metastore."""
        low, high = self.minimum, self.maximum
        return [low.kind, low.plain, high.kind, high.plain, self.null_count, self.regex]

    @classmethod
    def from_json(cls, data: list[Any]) -> ColumnZone:
        """Read what `to_json` wrote."""
        low_kind, low, high_kind, high, null_count, regex = data
        low, high = SortColumnValue.from_plain(low_kind, low), SortColumnValue.from_plain(high_kind, high)
        return cls(low, high, null_count, regex)


class StoredZones(Sequence[ColumnZone]):
    """The zones of a split as JSON, each read when it is first used: a listing needs none, or those of a column.

    It equals the tuple of its zones, and hashes like it.
    """

    __slots__ = ("_owner", "_text", "_zones")

    def __init__(self, text: str, owner: str = "") -> None:
        self._text = text
        self._owner = owner
        self._zones: list[Any] | None = None

    @staticmethod
    def text_of(zones: Sequence[ColumnZone]) -> str:
        """Return the text of zones."""
        return _encode([zone.to_json() for zone in zones])

    def __len__(self) -> int:
        return len(self._read())

    @overload
    def __getitem__(self, place: int) -> ColumnZone: ...

    @overload
    def __getitem__(self, place: slice) -> tuple[ColumnZone, ...]: ...

    def __getitem__(self, place: int | slice) -> ColumnZone | tuple[ColumnZone, ...]:
        if isinstance(place, slice):
            return tuple(self)[place]
        zones = self._read()
        if not isinstance(zones[place], ColumnZone):
            try:
                zones[place] = ColumnZone.from_json(zones[place])
            except (ValueError, TypeError, AttributeError) as error:
                raise self._damaged(error) from error
        zone: ColumnZone = zones[place]
        return zone

    def __eq__(self, other: object) -> bool:
        return tuple(self) == tuple(other) if isinstance(other, tuple | StoredZones) else NotImplemented

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return repr(tuple(self))

    def _read(self) -> list[Any]:
        if self._zones is None:
            try:
                self._zones = list(json.loads(self._text))
            except (ValueError, TypeError, RecursionError) as error:
                raise self._damaged(error) from error
        return self._zones

    def _damaged(self, error: Exception) -> Damaged:
        return Damaged(
            f"the metastore is damaged: windrow_splits, row {self._owner!r}, column zones: {error}; run windrow check "
            "TABLE, which says what is wrong and how to make the metastore again"
        )


_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
