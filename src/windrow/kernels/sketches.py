"""Values become coupons, and coupons become registers: the two halves of a HyperLogLog sketch.

A coupon is what a sketch knows of a value: the low 26 bits of the first half of its hash, and above them how many
zeros the second half begins with, plus one. Hashes are MurmurHash3 (x64, 128 bits, seed 9001), as Apache DataSketches
takes them.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from windrow.kernels.compiled import kernel
from windrow.kernels.hashes import rotated
from windrow.kernels.native import leading_zeros, load

__all__ = ["coupons_of_numbers", "coupons_of_texts", "gather_coupons", "raise_registers", "word_at"]

Bytes = npt.NDArray[np.uint8]
Words = npt.NDArray[np.uint64]
Coupons = npt.NDArray[np.uint32]
Longs = npt.NDArray[np.int64]

C1 = np.uint64(0x87C37B91114253D5)
C2 = np.uint64(0x4CF5AD432745937F)
SEED = np.uint64(9001)
KEY_BITS = 26
KEY_MASK = np.uint64((1 << KEY_BITS) - 1)
MOST_ZEROS = 62
"""No coupon has more; six bits hold its number."""


@kernel
def _finished(value: np.uint64) -> np.uint64:
    value = (value ^ (value >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
    value = (value ^ (value >> np.uint64(33))) * np.uint64(0xC4CEB9FE1A85EC53)
    return value ^ (value >> np.uint64(33))


@kernel
def _first(word: np.uint64) -> np.uint64:
    return rotated(word * C1, 31) * C2


@kernel
def _second(word: np.uint64) -> np.uint64:
    return rotated(word * C2, 33) * C1


@kernel
def _signed(value: int) -> int:
    """The number that kernels calculate with."""
    return np.int64(value)  # type: ignore[return-value]


@kernel
def _coupon(one: np.uint64, other: np.uint64, length: int) -> np.uint32:
    """The coupon of a value, from the state of its hash after all of its bytes."""
    one ^= np.uint64(length)
    other ^= np.uint64(length)
    one += other
    other += one
    one, other = _finished(one), _finished(other)
    one += other
    other += one
    zeros = min(_signed(leading_zeros(other)), MOST_ZEROS)
    return np.uint32((np.uint64(zeros + 1) << np.uint64(KEY_BITS)) | (one & KEY_MASK))


@kernel
def coupons_of_numbers(words: Words, coupons: Coupons) -> None:
    """The coupons of values of eight bytes each."""
    for place in range(words.size):
        coupons[place] = _coupon(SEED ^ _first(words[place]), SEED, 8)


@kernel
def word_at(data: Bytes, words: Words, at: int, size: int, room: int) -> np.uint64:
    """Up to eight bytes as a number; `room` is where a word that would begin reaches beyond those there are."""
    if at < room:
        value = load(words, at)
        return value if size >= 8 else value & ((np.uint64(1) << np.uint64(8 * size)) - np.uint64(1))
    value = np.uint64(0)
    for byte in range(min(size, 8)):
        value |= np.uint64(data[at + byte]) << np.uint64(8 * byte)
    return value


@kernel
def coupons_of_texts(data: Bytes, words: Words, bounds: Longs, coupons: Coupons) -> None:
    """The coupons of texts: the bytes from bounds[i] to bounds[i + 1], which ascend inside of the data.

    `words` are the same bytes, as many as there are whole words of.
    """
    room = 8 * words.size - 15
    for place in range(coupons.size):
        at, end = bounds[place], bounds[place + 1]
        size = end - at
        one, other = SEED, SEED
        while at + 16 <= end:
            one = rotated(one ^ _first(word_at(data, words, at, 8, room)), 27) + other
            one = one * np.uint64(5) + np.uint64(0x52DCE729)
            other = rotated(other ^ _second(word_at(data, words, at + 8, 8, room)), 31) + one
            other = other * np.uint64(5) + np.uint64(0x38495AB5)
            at += 16
        if end - at > 8:
            other ^= _second(word_at(data, words, at + 8, end - at - 8, room))
        if end > at:
            one ^= _first(word_at(data, words, at, end - at, room))
        coupons[place] = _coupon(one, other, size)


@kernel
def gather_coupons(coupons: Coupons, start: int, table: Coupons, count: int, most: int) -> tuple[int, int]:
    """Put coupons into a hash table until it holds more than `most`: the first that was not put, and how many it holds.

    The table has a power of two of places, more than `most` + 1; a free place is 0.
    """
    mask = table.size - 1
    for place in range(start, coupons.size):
        coupon = coupons[place]
        slot = np.int64((np.uint64(coupon) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(40)) & mask
        while table[slot] and table[slot] != coupon:
            slot = (slot + 1) & mask
        if not table[slot]:
            if count == most:
                return place, count
            table[slot] = coupon
            count += 1
    return coupons.size, count


@kernel
def raise_registers(coupons: Coupons, start: int, registers: Bytes, hip: float, inverse: float) -> tuple[float, float]:
    """Raise registers (a power of two of them) to coupons, and go on with two sums.

    `inverse` is the sum of 2 ** -register over all; `hip` the estimate that grows, before each register is raised, by
    the number of registers over that sum.
    """
    mask, size = registers.size - 1, float(registers.size)
    for place in range(start, coupons.size):
        coupon = np.int64(coupons[place])
        slot, value = coupon & mask, coupon >> KEY_BITS
        before = np.int64(registers[slot])
        if value > before:
            hip += size / inverse
            inverse += 2.0**-value - 2.0**-before
            registers[slot] = value
    return hip, inverse
