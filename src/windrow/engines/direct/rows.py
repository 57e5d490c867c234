"""Rows of an answer as Python values."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["DirectRows"]


@dataclass(frozen=True, slots=True)
class DirectRows:
    """An answer of few rows and plain values, which needs no Arrow until somebody wants it."""

    names: Sequence[str]
    types: Sequence[str]
    """Arrow's, by their functions."""
    rows: Sequence[tuple[Any, ...]]

    def to_arrow(self) -> pa.Table:
        """The same as an Arrow table."""
        import pyarrow as pa

        columns = [[row[place] for row in self.rows] for place in range(len(self.types))]
        arrays = [
            pa.Array.from_buffers(
                getattr(pa, kind)(), len(values), [pa.py_buffer(each) for each in _buffers(values, kind)]
            )
            for values, kind in zip(columns, self.types, strict=True)
        ]
        return pa.Table.from_arrays(arrays, names=list(self.names))


_CODES = {
    "int8": "b",
    "int16": "h",
    "int32": "i",
    "int64": "q",
    "float32": "f",
    "float64": "d",
    "uint8": "B",
    "uint16": "H",
    "uint32": "I",
    "uint64": "Q",
}


def _buffers(values: Sequence[Any], kind: str) -> list[bytes | array[Any]]:
    """Arrow's buffers of a column: `pyarrow.array` would load pandas, where it is installed, to look at a list."""
    valid = _bits(value is not None for value in values)
    if kind == "bool_":
        return [valid, _bits(map(bool, values))]
    if kind == "string":
        texts = [b"" if value is None else value.encode() for value in values]
        return [valid, array("i", accumulate(map(len, texts), initial=0)), b"".join(texts)]
    return [valid, array(_CODES[kind], [0 if value is None else value for value in values])]


def _bits(flags: Iterable[bool]) -> bytes:
    """A bitmap, as long as Arrow wants it."""
    bits = list(flags)
    return sum(flag << place for place, flag in enumerate(bits)).to_bytes((len(bits) + 7) // 8, "little")
