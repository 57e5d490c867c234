"""Thrift bytes that come by the thousand: headers of data pages, and the places of pages in an offset index."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from windrow.kernels.compiled import kernel

__all__ = ["write_headers", "write_locations"]

Bytes = npt.NDArray[np.uint8]
Longs = npt.NDArray[np.int64]

# The numbers of a page: the bytes of its levels, of its values, and of these as they are stored; its rows and nulls,
# the encoding of its values, and whether they are stored without compression.
LEVELS, VALUES, STORED_VALUES, ROWS, NULLS, ENCODING, STORED, WIDTH = 0, 1, 2, 3, 4, 5, 6, 7
LONGEST_HEADER, LONGEST_LOCATION = 64, 32

# A field's header is its id, counted from the field before, and its type. The fields of these structs that follow each
# other by one are 32-bit numbers (I32) or 64-bit ones (I64).
I32, I64, TRUE, FALSE, SKIP_TO_V2, STOP = 0x15, 0x16, 0x11, 0x12, 0x5C, 0x00
VERSION_2 = 3


@kernel
def _byte(out: Bytes, at: int, value: int) -> int:
    out[at] = value
    return at + 1


@kernel
def _number(out: Bytes, at: int, kind: int, value: int) -> int:
    """A field with a number that is not negative, in zigzag."""
    at = _byte(out, at, kind)
    value <<= 1
    while value > 0x7F:
        at = _byte(out, at, (value & 0x7F) | 0x80)
        value >>= 7
    return _byte(out, at, value)


@kernel
def write_headers(pages: Longs, out: Bytes, ends: Longs) -> None:
    """Write the headers of data pages of version 2; each ends before `ends`."""
    at = 0
    for number in range(pages.shape[0]):
        levels, rows = pages[number, LEVELS], pages[number, ROWS]
        at = _number(out, at, I32, VERSION_2)
        at = _number(out, at, I32, levels + pages[number, VALUES])
        at = _number(out, at, I32, levels + pages[number, STORED_VALUES])
        at = _byte(out, at, SKIP_TO_V2)
        at = _number(out, at, I32, rows)
        at = _number(out, at, I32, pages[number, NULLS])
        at = _number(out, at, I32, rows)
        at = _number(out, at, I32, pages[number, ENCODING])
        at = _number(out, at, I32, levels)
        at = _number(out, at, I32, 0)
        at = _byte(out, at, FALSE if pages[number, STORED] else TRUE)
        at = _byte(out, at, STOP)
        at = _byte(out, at, STOP)
        ends[number] = at


@kernel
def write_locations(offsets: Longs, sizes: Longs, rows: Longs, out: Bytes) -> int:
    """Write page locations: offset, size and first row of each; how many bytes that are."""
    at = 0
    for number in range(offsets.size):
        at = _number(out, at, I64, offsets[number])
        at = _number(out, at, I32, sizes[number])
        at = _number(out, at, I64, rows[number])
        at = _byte(out, at, STOP)
    return at
