"""Between stored values and their bytes in a Parquet file: what bounds hold, and what a bloom filter is probed with.

Raw values come as numbers of a fixed width, or as `bytes` objects: text, binary values, and in these also decimals (the
high byte first) and floats of 16 bits.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from windrow.pruning.bounds import Mask
from windrow.pruning.types import ColumnType, Family

__all__ = ["cells_of", "stored_values"]

_HALF = np.dtype("<f2")


def stored_values(
    raw: NDArray[Any], present: Mask, column_type: ColumnType, length: int | None = None
) -> tuple[NDArray[Any], Mask]:
    """Values of a column's type, and where there are some; `length` is that of byte strings which all have the same."""
    family, dtype = column_type.family, column_type.dtype
    if family is Family.OPAQUE:
        return np.zeros(len(raw), dtype), np.zeros(len(raw), bool)
    if raw.dtype.kind != "O":
        return (raw.view(f"<u{raw.itemsize}") if dtype == "uint64" else raw).astype(dtype), present
    if family in (Family.TEXT, Family.BINARY):
        return raw, present
    if length is not None:
        present = present & np.array([len(value) == length for value in raw], bool)
    return (_halves if family is Family.FLOAT else _integers)(raw, present), present


def _halves(raw: NDArray[Any], present: Mask) -> NDArray[Any]:
    bits = b"".join(value if there else bytes(2) for value, there in zip(raw, present, strict=True))
    return np.frombuffer(bits, _HALF).astype(np.float64)


def _integers(raw: NDArray[Any], present: Mask) -> NDArray[Any]:
    numbers = np.zeros(len(raw), object)
    numbers[present] = [int.from_bytes(value, "big", signed=True) for value in raw[present]]
    return numbers


def cells_of(
    points: tuple[Any, ...], column_type: ColumnType, width: np.dtype[Any] | None, length: int | None = None
) -> list[bytes] | None:
    """The bytes that stand in a file for stored values, without those that cannot; None where that is not one form.

    `width` is the type of numbers that are stored as such; `length` that of byte strings which all have the same.
    """
    several_forms = width is None and length is None and column_type.family is Family.NUMBER
    if several_forms or any(isinstance(point, float) and np.isnan(point) for point in points):
        return None
    return [cell for point in points for cell in _cells(point, column_type, width, length)]


def _cells(point: Any, column_type: ColumnType, width: np.dtype[Any] | None, length: int | None) -> list[bytes]:
    if isinstance(point, bytes):
        return [point] if length in (None, len(point)) else []
    if isinstance(point, float):
        return _float_cells(point, width or _HALF)
    if width is None:
        return _integer_cells(point, length or 0, "big", signed=True)
    # Where the sign is uncertain, a number has the same bytes in both forms, or can be there in one of them alone.
    signed = column_type.dtype == "int64" or (column_type.dtype == "object" and point < 0)
    return _integer_cells(point, width.itemsize, "little", signed=signed)


def _integer_cells(point: int, size: int, order: Literal["big", "little"], *, signed: bool) -> list[bytes]:
    try:
        return [point.to_bytes(size, order, signed=signed)]
    except OverflowError:
        return []


def _float_cells(point: float, width: np.dtype[Any]) -> list[bytes]:
    """A float, if it can be stored in this width; zero with either sign, as writers differ in which one they hash."""
    with np.errstate(over="ignore"):
        value = np.array(point).astype(width)
    if float(value) != point:
        return []
    return [value.tobytes()] if point else [np.array(zero, width).tobytes() for zero in (0.0, -0.0)]
