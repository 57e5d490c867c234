"""Thrift bytes that come by the thousand: headers of data pages, and the index of their places and bounds."""

# Kernels hand each other arrays and places in them, one by one: an object that holds them would cost more than they.
# ruff: noqa: PLR0913, PLR0917, FBT001

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from windrow.kernels.compiled import kernel

__all__ = ["dictionary_header", "page_header", "write_bounds", "write_locations"]

Bytes = npt.NDArray[np.uint8]
Longs = npt.NDArray[np.int64]

LONGEST_HEADER, LONGEST_LOCATION = 64, 32

# A field's header is its id, counted from the field before, and its type. The fields of these structs that follow each
# other by one are 32-bit numbers (I32) or 64-bit ones (I64).
I32, I64, LIST, TRUE, FALSE, STOP = 0x15, 0x16, 0x19, 0x11, 0x12, 0x00
SKIP_TO_DICTIONARY, SKIP_TO_V2 = 0x3C, 0x4C
DICTIONARY, VERSION_2 = 2, 3
# The types of elements of a list.
TRUTHS, LONGS, TEXTS = 1, 6, 8


@kernel
def _byte(out: Bytes, at: int, value: int) -> int:
    out[at] = value
    return at + 1


@kernel
def _varint(out: Bytes, at: int, value: int) -> int:
    while value > 0x7F:
        at = _byte(out, at, (value & 0x7F) | 0x80)
        value >>= 7
    return _byte(out, at, value)


@kernel
def _number(out: Bytes, at: int, kind: int, value: int) -> int:
    """A field with a number that is not negative, in zigzag."""
    return _varint(out, _byte(out, at, kind), value << 1)


@kernel
def _checksum(out: Bytes, at: int, crc: int) -> int:
    """A field with the 32 bits of a checksum as a number with a sign, in zigzag."""
    signed = crc if crc < 1 << 31 else crc - (1 << 32)
    return _varint(out, _byte(out, at, I32), signed << 1 ^ signed >> 63)


@kernel
def _list(out: Bytes, at: int, kind: int, count: int) -> int:
    """What stands before the elements of a list."""
    at = _byte(out, _byte(out, at, LIST), min(count, 15) << 4 | kind)
    return _varint(out, at, count) if count > 14 else at


@kernel
def page_header(
    out: Bytes,
    at: int,
    levels: int,
    values: int,
    stored_values: int,
    rows: int,
    nulls: int,
    encoding: int,
    stored: bool,
    crc: int,
) -> int:
    """Write the header of a data page of version 2: the bytes of its levels, of its values, and of these as they are
    stored; its rows and nulls, the encoding of its values, whether they are stored without compression, and the
    CRC-32 of what follows."""
    at = _number(out, at, I32, VERSION_2)
    at = _number(out, at, I32, levels + values)
    at = _number(out, at, I32, levels + stored_values)
    at = _checksum(out, at, crc)
    at = _byte(out, at, SKIP_TO_V2)
    at = _number(out, at, I32, rows)
    at = _number(out, at, I32, nulls)
    at = _number(out, at, I32, rows)
    at = _number(out, at, I32, encoding)
    at = _number(out, at, I32, levels)
    at = _number(out, at, I32, 0)
    at = _byte(out, at, FALSE if stored else TRUE)
    return _byte(out, _byte(out, at, STOP), STOP)


@kernel
def dictionary_header(out: Bytes, at: int, size: int, stored_size: int, entries: int, crc: int) -> int:
    """Write the header of a dictionary page in PLAIN encoding, with the CRC-32 of what follows."""
    at = _number(out, at, I32, DICTIONARY)
    at = _number(out, at, I32, size)
    at = _number(out, at, I32, stored_size)
    at = _checksum(out, at, crc)
    at = _byte(out, at, SKIP_TO_DICTIONARY)
    at = _number(out, at, I32, entries)
    at = _number(out, at, I32, 0)
    return _byte(out, _byte(out, at, STOP), STOP)


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


@kernel
def _texts(out: Bytes, at: int, data: Bytes, starts: Longs, lengths: Longs, first: int, last: int) -> int:
    """A list of texts."""
    at = _list(out, at, TEXTS, last - first)
    for page in range(first, last):
        at = _varint(out, at, lengths[page])
        for byte in range(lengths[page]):
            at = _byte(out, at, data[starts[page] + byte])
    return at


@kernel
def write_bounds(
    chunks: Longs,
    counts: tuple[Longs, Longs],
    data: Bytes,
    low: tuple[Longs, Longs],
    high: tuple[Longs, Longs],
    orders: Longs,
    out: Bytes,
    ends: Longs,
) -> None:
    """Write column indexes of chunks, each of the pages from its first up to the next one's; each ends before `ends`.

    `counts` are the nulls and the rows of pages. Their bounds are bytes of `data`: where they begin, and how many.
    """
    nulls, rows = counts
    at = 0
    for chunk in range(chunks.size - 1):
        first, last = chunks[chunk], chunks[chunk + 1]
        at = _list(out, at, TRUTHS, last - first)
        for page in range(first, last):
            at = _byte(out, at, 1 if nulls[page] == rows[page] else 2)
        at = _texts(out, at, data, low[0], low[1], first, last)
        at = _texts(out, at, data, high[0], high[1], first, last)
        at = _number(out, at, I32, orders[chunk])
        at = _list(out, at, LONGS, last - first)
        for page in range(first, last):
            at = _varint(out, at, nulls[page] << 1)
        at = _byte(out, at, STOP)
        ends[chunk] = at
