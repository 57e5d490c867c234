"""CRC-32 as Parquet pages carry it (that of zlib), over many pages by one call.

Where the processor multiplies without carries, 64 bytes are folded at a time, ten times as fast as by tables: tables
alone would add more than a twentieth to a merge. With bounds checks on, and on all other processors, tables do it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import types
from numba.core import cgutils, config
from numba.core.registry import cpu_target
from numba.extending import intrinsic
from numba.np import arrayobj

from windrow.kernels.compiled import kernel

__all__ = ["FOLDS", "crc32", "first_mismatch", "joined", "tabled_crc32"]

Bytes = npt.NDArray[np.uint8]
Longs = npt.NDArray[np.int64]

# The compiler has no type hints.
_ir, _cgutils, _arrayobj, _config, _types, _cpu = (
    cast("Any", each) for each in (ir, cgutils, arrayobj, config, types, cpu_target)
)

FOLDS = "+pclmul" in _cpu.target_context.codegen().magic_tuple()[2] and not _config.BOUNDSCHECK
"""Whether this processor folds."""

POLYNOMIAL = 0xEDB88320
ONES = 0xFFFFFFFF
BLOCK = 64
# What 128 bits are multiplied by to lie 512, and 128, bits further on: powers of x modulo the polynomial, reflected.
_BY_FOUR = 0x0154442BD4, 0x01C6E41596
_BY_ONE = 0x01751997D0, 0x00CCAA009E


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


def _fold(_typing: Any, data: Any, _at: Any, _blocks: Any, _state: Any) -> Any:
    """Some blocks, and the state before them, as 16 bytes that have the same remainder: two words."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array, at, blocks, state = arguments
        memory = _arrayobj.make_array(signature.args[0])(context, builder, array).data
        word, byte, half = _ir.IntType(64), _ir.IntType(8), _ir.IntType(32)
        pair = _ir.VectorType(word, 2)
        takes = _ir.FunctionType(pair, [pair, pair, byte])
        multiply = _cgutils.get_or_insert_function(builder.module, takes, "llvm.x86.pclmulqdq")

        def load(place: Any, lane: int) -> Any:
            start = builder.gep(memory, [builder.add(place, word(16 * lane))])
            found = builder.load(builder.bitcast(start, pair.as_pointer()))
            found.align = 1
            return found

        def moved(value: Any, powers: tuple[int, int]) -> Any:
            by = pair([word(power) for power in powers])
            return builder.xor(*(builder.call(multiply, [value, by, byte(which)]) for which in (0x00, 0x11)))

        lanes = [_cgutils.alloca_once(builder, pair) for _ in range(BLOCK // 16)]
        for number, lane in enumerate(lanes):
            builder.store(load(at, number), lane)
        before = builder.insert_element(pair([word(0), word(0)]), state, half(0))
        builder.store(builder.xor(builder.load(lanes[0]), before), lanes[0])
        with _cgutils.for_range(builder, builder.sub(blocks, word(1))) as loop:
            place = builder.add(at, builder.mul(builder.add(loop.index, word(1)), word(BLOCK)))
            for number, lane in enumerate(lanes):
                builder.store(builder.xor(moved(builder.load(lane), _BY_FOUR), load(place, number)), lane)
        found = builder.load(lanes[0])
        for lane in lanes[1:]:
            found = builder.xor(moved(found, _BY_ONE), builder.load(lane))
        return context.make_tuple(
            builder, signature.return_type, [builder.extract_element(found, half(place)) for place in range(2)]
        )

    number, state = _types.int64, _types.uint64
    return _types.UniTuple(state, 2)(data, number, number, state), generate


fold = cast("Callable[[Bytes, int, int, np.uint64], tuple[np.uint64, np.uint64]]", intrinsic(_fold))


@kernel
def _word(state: np.uint64, word: np.uint64) -> np.uint64:
    """The state behind eight bytes."""
    mixed, found = state ^ word, np.uint32(0)
    for byte in range(8):
        found ^= _TABLES[(7 - byte) * 256 + np.int64(mixed >> np.uint64(8 * byte) & np.uint64(0xFF))]
    return np.uint64(found)


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
def _folded_crc32(crc: int, data: Bytes, at: int, size: int) -> int:
    state, end, blocks = np.uint64(crc ^ ONES), at + size, size // BLOCK
    if blocks > 0:
        low, high = fold(data, at, blocks, state)
        state = _word(_word(np.uint64(0), low), high)
        at += blocks * BLOCK
    return np.int64(_by_tables(state, data, at, end) ^ np.uint64(ONES))  # type: ignore[return-value]


crc32 = _folded_crc32 if FOLDS else tabled_crc32
"""The CRC-32 of bytes whose beginning has the CRC-32 `crc` (0 for none) and whose rest is `size` bytes of an array."""


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
