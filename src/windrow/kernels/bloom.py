"""xxHash64 of many values at once, and split-block bloom filters that are set and asked by such hashes."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from windrow.kernels.compiled import kernel
from windrow.kernels.hashes import rotated

__all__ = ["contains", "hash_each", "hash_values", "insert", "look_up"]

Bytes = npt.NDArray[np.uint8]
Hashes = npt.NDArray[np.uint64]
Blocks = np.ndarray[tuple[int, int], np.dtype[np.uint32]]
Truths = npt.NDArray[np.bool_]

# The primes of xxHash64 (seed 0 throughout).
P1 = np.uint64(0x9E3779B185EBCA87)
P2 = np.uint64(0xC2B2AE3D27D4EB4F)
P3 = np.uint64(0x165667B19E3779F9)
P4 = np.uint64(0x85EBCA77C2B2AE63)
P5 = np.uint64(0x27D4EB2F165667C5)

# The odd numbers that pick a bit in each of the eight words of a block, as the Parquet format has them.
SALT = np.array(
    [0x47B6137B, 0x44974D91, 0x8824AD5B, 0xA2B7289D, 0x705495C7, 0x2DF1424B, 0x9EFC4947, 0x5C6BFB31], dtype=np.uint32
)


@kernel
def _word(data: Bytes, at: int, size: int) -> np.uint64:
    """A little-endian number of `size` bytes."""
    value = np.uint64(0)
    for index in range(size):
        value |= np.uint64(data[at + index]) << np.uint64(8 * index)
    return value


@kernel
def _round(lane: np.uint64, word: np.uint64) -> np.uint64:
    return rotated(lane + word * P2, 31) * P1


@kernel
def _stripes(data: Bytes, at: int, end: int) -> np.uint64:
    """The state after all whole stripes of 32 bytes, of which there is at least one."""
    a, b, c, d = P1 + P2, P2, np.uint64(0), np.uint64(0) - P1
    while at + 32 <= end:
        a = _round(a, _word(data, at, 8))
        b = _round(b, _word(data, at + 8, 8))
        c = _round(c, _word(data, at + 16, 8))
        d = _round(d, _word(data, at + 24, 8))
        at += 32
    state = rotated(a, 1) + rotated(b, 7) + rotated(c, 12) + rotated(d, 18)
    for lane in (a, b, c, d):
        state = (state ^ _round(np.uint64(0), lane)) * P1 + P4
    return state


@kernel
def _tail(state: np.uint64, data: Bytes, at: int, end: int) -> np.uint64:
    """The state after the last bytes, fewer than 32."""
    while at + 8 <= end:
        state = rotated(state ^ _round(np.uint64(0), _word(data, at, 8)), 27) * P1 + P4
        at += 8
    if at + 4 <= end:
        state = rotated(state ^ _word(data, at, 4) * P1, 23) * P2 + P3
        at += 4
    while at < end:
        state = rotated(state ^ np.uint64(data[at]) * P5, 11) * P1
        at += 1
    return state


@kernel
def _hash(data: Bytes, at: int, end: int) -> np.uint64:
    size = end - at
    state = _stripes(data, at, end) if size >= 32 else P5
    state = _tail(state + np.uint64(size), data, at + size // 32 * 32, end)
    state = (state ^ (state >> np.uint64(33))) * P2
    state = (state ^ (state >> np.uint64(29))) * P3
    return state ^ (state >> np.uint64(32))


def hash_values(source: Bytes, bounds: npt.NDArray[np.int64]) -> Hashes:
    """xxHash64 of each value: the bytes from bounds[i] to bounds[i + 1], which must ascend inside of the source."""
    hashes = np.empty(bounds.size - 1, np.uint64)
    hash_each(source, bounds, hashes)
    return hashes


@kernel
def hash_each(source: Bytes, bounds: npt.NDArray[np.int64], hashes: Hashes) -> None:
    """The same, into an array."""
    for index in range(hashes.size):
        hashes[index] = _hash(source, bounds[index], bounds[index + 1])


@kernel
def _block(value: np.uint64, count: int) -> np.uint64:
    """Which of `count` blocks a hash belongs to: its upper half, scaled."""
    return ((value >> np.uint64(32)) * np.uint64(count)) >> np.uint64(32)


@kernel
def _bit(value: np.uint64, word: int) -> np.uint32:
    """The bit that a hash sets in a word of its block."""
    product = np.uint32(np.uint32(value) * SALT[word])  # compiled, the product of two such has 64 bits
    return np.uint32(np.uint32(1) << (product >> np.uint32(27)))


@kernel
def insert(blocks: Blocks, hashes: Hashes) -> None:
    """Set the bits of all hashes in the blocks (n rows of eight words, n at least 1)."""
    for value in hashes:
        block = _block(value, len(blocks))
        for word in range(8):
            blocks[block, word] |= _bit(value, word)


def contains(blocks: Blocks, hashes: Hashes) -> Truths:
    """For each hash whether all of its bits are set: False means that the value was never inserted."""
    found = np.empty(hashes.size, np.bool_)
    look_up(blocks, hashes, found)
    return found


@kernel
def look_up(blocks: Blocks, hashes: Hashes, found: Truths) -> None:
    """The same, into an array."""
    for index in range(hashes.size):
        value = hashes[index]
        block = _block(value, len(blocks))
        hit = True
        for word in range(8):
            bit = _bit(value, word)
            hit = hit and blocks[block, word] & bit == bit
        found[index] = hit
