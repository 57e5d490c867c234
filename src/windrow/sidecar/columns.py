"""One column of a sidecar over all row groups, as arrays: counts, byte ranges and bounds.

Nothing is parsed: the column's chunk records are gathered once, and each property is a few array operations on them.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from windrow.parquet.schema import PhysicalType
from windrow.sidecar import layout
from windrow.sidecar.layout import Order, Side, StatFlag
from windrow.sidecar.types import may_be_unsigned

if TYPE_CHECKING:
    from windrow.sidecar.reader import Sidecar

NUMBERS: dict[int, np.dtype[Any]] = {
    int(PhysicalType.BOOLEAN): np.dtype("u1"),
    int(PhysicalType.INT32): np.dtype("<i4"),
    int(PhysicalType.INT64): np.dtype("<i8"),
    int(PhysicalType.FLOAT): np.dtype("<f4"),
    int(PhysicalType.DOUBLE): np.dtype("<f8"),
}
"""Physical types whose bounds are numbers, and always inlined."""

_FIELDS = np.arange(layout.CHUNK_WORDS)
_FLAGS_SHIFT = 16
_SIZES_SHIFT = 24


class _Bits:
    """The bits of a chunk record's first word that speak of its minimum or of its maximum."""

    def __init__(self, side: Side) -> None:
        flags = side.present | side.inlined
        self.size_shift = _SIZES_SHIFT + side.size_shift
        self.present = np.uint64(side.present << _FLAGS_SHIFT)
        self.inlined = side.inlined << _FLAGS_SHIFT
        self.exact = np.uint64(side.exact << _FLAGS_SHIFT)
        self.form = np.uint64(flags << _FLAGS_SHIFT | 0xF << self.size_shift)
        self.forms = {width: np.uint64(flags << _FLAGS_SHIFT | width << self.size_shift) for width in (1, 4, 8)}
        """The bits of `form` that an inlined number of a width has."""


_MIN, _MAX = _Bits(layout.MINIMUM), _Bits(layout.MAXIMUM)
_NULL_COUNT = np.uint64(StatFlag.NULL_COUNT_PRESENT << _FLAGS_SHIFT)
_DISTINCT_COUNT = np.uint64(StatFlag.DISTINCT_COUNT_PRESENT << _FLAGS_SHIFT)


class Bound:
    """The minimum or the maximum of every row group."""

    def __init__(
        self, values: NDArray[Any], present: NDArray[np.bool_], forms: NDArray[np.uint64], bits: _Bits
    ) -> None:
        self.values = values
        """Numbers for fixed-width physical types, `bytes` objects for byte arrays."""
        self.present = present
        """Where there is a value."""
        self._forms = forms
        self._bits = bits

    @property
    def exact(self) -> NDArray[np.bool_]:
        """Where the value occurs; elsewhere it is a truncated one, outside of all values but not one of them."""
        return _has(self._forms, self._bits.exact)

    def where(self, condition: NDArray[np.bool_]) -> Bound:
        """The same bound, present only where a condition holds as well."""
        return Bound(self.values, self.present & condition, self._forms, self._bits)


class ColumnChunks:
    """The chunks of one column in all row groups, or in some."""

    def __init__(self, sidecar: Sidecar, position: int, row_groups: NDArray[np.int64] | None = None) -> None:
        self.position = position
        _, _, self.column_type, _, _, _, self.physical_type, _, _, _ = sidecar.descriptor(position)
        self._sidecar = sidecar
        self._row_groups = row_groups
        bounds = sidecar.column_bounds(position)
        if bounds is None:
            self._forms, self._minima, self._maxima = (self._words[:, word] for word in layout.BOUND_WORDS)
        else:
            self._forms, self._minima, self._maxima = bounds.T if row_groups is None else bounds[row_groups].T

    @cached_property
    def _words(self) -> NDArray[np.uint64]:
        entries = self._sidecar.entries if self._row_groups is None else self._sidecar.entries[self._row_groups]
        first = entries + (1 + self.position * layout.CHUNK_WORDS)
        words: NDArray[np.uint64] = self._sidecar.words[first[:, None] + _FIELDS]
        return words

    @property
    def records(self) -> NDArray[np.void]:
        """The chunk records themselves, one for each row group."""
        records: NDArray[np.void] = self._words.view(layout.CHUNK)[:, 0]
        return records

    @property
    def order(self) -> Order:
        """How the bounds compare."""
        return self._sidecar.order(self.position)

    @property
    def null_count(self) -> tuple[NDArray[np.uint64], NDArray[np.bool_]]:
        """The number of nulls, and where there is one."""
        return self._words[:, 4], _has(self._forms, _NULL_COUNT)

    @property
    def distinct_count(self) -> tuple[NDArray[np.uint64], NDArray[np.bool_]]:
        """The number of distinct values, and where there is one."""
        return self._words[:, 5], _has(self._forms, _DISTINCT_COUNT)

    @property
    def all_null(self) -> NDArray[np.bool_]:
        """Row groups in which the column holds nothing but nulls for certain."""
        count, counted = self.null_count
        all_null: NDArray[np.bool_] = counted & (count == self._words[:, 1])
        return all_null

    @property
    def minimum(self) -> Bound:
        """The smallest value of every row group, as `order` compares."""
        return self._comparable(self.stored_minimum)

    @property
    def maximum(self) -> Bound:
        """The largest value of every row group, as `order` compares."""
        return self._comparable(self.stored_maximum)

    @property
    def stored_minimum(self) -> Bound:
        """The minimum, also where its order is uncertain."""
        return self._bound(_MIN, self._minima)

    @property
    def stored_maximum(self) -> Bound:
        """The maximum, also where its order is uncertain."""
        return self._bound(_MAX, self._maxima)

    def _comparable(self, bound: Bound) -> Bound:
        """The bound where its order is certain: without a schema, integers may be signed or unsigned."""
        if not may_be_unsigned(self.column_type, self.physical_type) or self.order != Order.SIGN_UNKNOWN:
            return bound
        maximum = self.stored_maximum
        # Signed and unsigned numbers agree on bounds exactly where the maximum has no sign bit.
        return bound.where(maximum.present & (maximum.values >= 0))

    def _bound(self, bits: _Bits, slots: NDArray[np.uint64]) -> Bound:
        dtype = NUMBERS.get(self.physical_type)
        if dtype is None:
            return Bound(*self._byte_strings(bits, slots), self._forms, bits)
        # A bound of another width is not a value of this type; it must not prune.
        present = (self._forms & bits.form) == bits.forms[dtype.itemsize]
        return Bound(_low_bytes(slots, dtype), present, self._forms, bits)

    def _byte_strings(self, bits: _Bits, slots: NDArray[np.uint64]) -> tuple[NDArray[np.object_], NDArray[np.bool_]]:
        strings = np.full(len(slots), b"", dtype=object)
        for i in np.flatnonzero(_has(self._forms, bits.present)).tolist():
            form, slot = int(self._forms[i]), int(slots[i])
            if form & bits.inlined:
                size = form >> bits.size_shift & 0xF
                strings[i] = slot.to_bytes(8, "little")[:size] if size <= layout.LONGEST_INLINE else b""
            else:
                row_group = i if self._row_groups is None else int(self._row_groups[i])
                strings[i] = self._sidecar.out_of_line(row_group, slot >> 16, slot & layout.LONGEST_BOUND)
        return strings, strings != b""


def _has(forms: NDArray[np.uint64], flag: np.uint64) -> NDArray[np.bool_]:
    has: NDArray[np.bool_] = (forms & flag) != 0
    return has


def _low_bytes(slots: NDArray[np.uint64], dtype: np.dtype[Any]) -> NDArray[Any]:
    """The numbers in the low bytes of slots."""
    return slots.view(dtype) if dtype.itemsize == layout.WORD else slots.astype(f"<u{dtype.itemsize}").view(dtype)
