"""Results as rows: frozen dataclasses that print as a table, give plain values and export Arrow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, Generic, TypeVar, overload

import pyarrow as pa

from windrow.model.units import format_bytes, is_size

__all__ = ["Rows", "like"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Rows(Sequence[T], Generic[T]):
    """A sequence of records of one kind, in order."""

    kind: type[T]
    records: tuple[T, ...]

    def __len__(self) -> int:
        return len(self.records)

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[T]: ...
    def __getitem__(self, index: int | slice) -> T | Sequence[T]:
        return self.records[index]

    def __iter__(self) -> Iterator[T]:
        return iter(self.records)

    @property
    def names(self) -> list[str]:
        """The columns."""
        return [each.name for each in fields(self.kind)]  # type: ignore[arg-type]

    def to_dict(self) -> list[dict[str, Any]]:
        """Return one dictionary of plain values for each record."""
        return [asdict(record) for record in self.records]  # type: ignore[call-overload]

    def to_arrow(self) -> pa.Table:
        """Return the records as an Arrow table."""
        data = self.to_dict()
        return pa.table({name: pa.array([row[name] for row in data]) for name in self.names})

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def __str__(self) -> str:
        cells = [self.names, *([_cell(name, getattr(record, name)) for name in self.names] for record in self.records)]
        widths = [max(len(row[place]) for row in cells) for place in range(len(self.names))]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells
        ]
        return "\n".join([lines[0], "  ".join("-" * width for width in widths), *lines[1:]])

    __repr__ = __str__


def like(kind: type[T], record: object, /, **values: Any) -> T:
    """Return a record of a kind with the fields of another record that have the same names, and these `values`."""
    same = {each.name for each in fields(kind)} - values.keys()  # type: ignore[arg-type]
    return kind(**{name: getattr(record, name) for name in same}, **values)


def _cell(name: str, value: object) -> str:
    if value is None:
        return "-"
    if not isinstance(value, int) or isinstance(value, bool):
        return str(value)
    return format_bytes(value) if is_size(name) else f"{value:,}"
