"""CRC-32 as Parquet pages carry it (that of zlib), over many pages by one call.

Tables do it, eight bytes at a time. Where the processor multiplies without carries, 64 bytes at a time are folded
first: 14 GB/s instead of 1.3 by tables, which alone would add more than a twentieth to a merge.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from windrow.kernels.compiled import kernel
from windrow.kernels.native import BLOCK, can_fold, fold

__all__ = ["crc32", "first_mismatch", "joined", "tabled_crc32"]

Bytes = npt.NDArray[np.uint8]
Longs = npt.NDArray[np.int64]

POLYNOMIAL = 0xEDB88320
ONES = 0xFFFFFFFF


def _tables() -> npt.NDArray[np.uint32]:
    """The remainder of each byte that is followed by 0 to 7 bytes of zeros."""
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, table >> 1 ^ np.uint32(POLYNOMIAL), table >> 1)
    tables = [table]
    for _ in range(7):
        tables.append(tables[-1] >> 8 ^ table[tables[-1] & 0xFF])
    return np.concatenate(tables)


_TABLES = _tables()


@kernel
def _word(state: np.uint64, word: np.uint64) -> np.uint64:
    """The state behind eight bytes."""
    mixed, found = state ^ word, np.uint64(0)
    for byte in range(8):
        found ^= np.uint64(_TABLES[(7 - byte) * 256 + np.int64(mixed >> np.uint64(8 * byte) & np.uint64(0xFF))])
    return found


@kernel
def _by_tables(state: np.uint64, data: Bytes, at: int, end: int) -> np.uint64:
    while at + 8 <= end:
        word = np.uint64(0)
        for byte in range(8):
            word |= np.uint64(data[at + byte]) << np.uint64(8 * byte)
        state = _word(state, word)
        at += 8
    while at < end:
        place = np.int64((state ^ np.uint64(data[at])) & np.uint64(0xFF))
        state = np.uint64(_TABLES[place]) ^ state >> np.uint64(8)
        at += 1
    return state


@kernel
def tabled_crc32(crc: int, data: Bytes, at: int, size: int) -> int:
    """The same as `crc32`, by tables alone."""
    state = _by_tables(np.uint64(crc ^ ONES), data, at, at + size)
    return np.int64(state ^ np.uint64(ONES))  # type: ignore[return-value]


@kernel
def crc32(crc: int, data: Bytes, at: int, size: int) -> int:
    """The CRC-32 of bytes that begin with some of CRC-32 `crc` (0 for none) and end with `size` bytes of an array."""
    state, end, blocks = np.uint64(crc ^ ONES), at + size, size // BLOCK
    if blocks > 0 and can_fold():
        low, high = fold(data, at, blocks, state)
        state = _word(_word(np.uint64(0), low), high)
        at += blocks * BLOCK
    return np.int64(_by_tables(state, data, at, end) ^ np.uint64(ONES))  # type: ignore[return-value]


@kernel
def first_mismatch(source: Bytes, bodies: Longs, sizes: Longs, checksums: Longs) -> int:
    """The first page whose bytes have another CRC-32 than its header states, or -1; a negative statement is none."""
    for page in range(bodies.size):
        if checksums[page] >= 0 and crc32(0, source, bodies[page], sizes[page]) != checksums[page]:
            return page
    return -1


@kernel
def _product(one: np.uint64, other: np.uint64) -> np.uint64:
    """Two polynomials multiplied, modulo that of the checksum; the highest bit is that of x to the 0."""
    found = np.uint64(0)
    for bit in range(31, -1, -1):
        if one >> np.uint64(bit) & np.uint64(1):
            found ^= other
        other = other >> np.uint64(1) ^ (np.uint64(POLYNOMIAL) if other & np.uint64(1) else np.uint64(0))
    return found


@kernel
def joined(first: int, second: int, size: int) -> int:
    """The CRC-32 of two pieces behind each other, from those of both and the bytes of the second."""
    shift, power = np.uint64(1 << 31), np.uint64(1 << 23)
    while size:
        # x to the 8, 16, 32 and so on
        if size & 1:
            shift = _product(shift, power)
        power = _product(power, power)
        size >>= 1
    return np.int64(_product(np.uint64(first), shift) ^ np.uint64(second))  # type: ignore[return-value]
