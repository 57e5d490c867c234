"""Texts of many dictionaries become numbers: equal texts share one.

Texts lie in 64-bit words, at byte offsets, with at least two words of padding behind the last.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from windrow.kernels.compiled import kernel
from windrow.kernels.native import load

__all__ = ["copy_texts", "hash_texts", "unify_each", "unify_texts"]

Bytes = npt.NDArray[np.uint8]
Words = npt.NDArray[np.uint64]
Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]

FIRST_TABLE = 1 << 12
FREE = -1
GUESSES = 3
"""So many texts are tried in the order of an earlier dictionary before a text is looked up."""


@kernel
def _signed(value: np.uint64 | np.int32) -> int:
    """The number that kernels calculate with; signed and unsigned together would become floating point."""
    return np.int64(value)  # type: ignore[return-value]


@kernel
def _word(words: Words, at: int, size: int) -> np.uint64:
    """Up to eight bytes from a byte on, as a number."""
    value = load(words, at)
    if size < 8:
        value &= (np.uint64(1) << np.uint64(size * 8)) - np.uint64(1)
    return value


@kernel
def _hash(words: Words, at: int, length: int) -> np.uint64:
    """Spread texts over 64 bits, a word at a time."""
    mixed = np.uint64(length) * np.uint64(0x9E3779B97F4A7C15)
    for done in range(0, length, 8):
        mixed = (mixed ^ _word(words, at + done, length - done)) * np.uint64(0xD6E8FEB86659FD93)
        mixed ^= mixed >> np.uint64(32)
    return mixed


@kernel
def _equal(words: Words, one: int, other: int, length: int) -> bool:
    if length < 8:
        return bool(_word(words, one, length) == _word(words, other, length))
    for done in range(0, length - 8, 8):
        if load(words, one + done) != load(words, other + done):
            return False
    # the last eight bytes, some of which were compared before
    return bool(load(words, one + length - 8) == load(words, other + length - 8))


@kernel
def _grown(hashes: Words, distinct: int, size: int) -> Ints:
    """A larger table of the texts found so far."""
    table = np.full(size, FREE, np.int32)
    for number in range(distinct):
        slot = _signed(hashes[number] & np.uint64(size - 1))
        while table[slot] != FREE:
            slot = (slot + 1) & (size - 1)
        table[slot] = number
    return table


@kernel
def _find(
    words: Words,
    table: Ints,
    mask: int,
    hashes: Words,
    mixed: np.uint64,
    known: tuple[Longs, Longs],
    at: int,
    size: int,
) -> int:
    """The slot of the table that a text of so many bytes has, or would have, by its hash."""
    slot = _signed(mixed & np.uint64(mask))
    while table[slot] != FREE:
        number = table[slot]
        if hashes[number] == mixed and size == known[1][number] and _equal(words, known[0][number], at, size):
            break
        slot = (slot + 1) & mask
    return slot


@kernel
def _guessed(words: Words, followers: Ints, known: tuple[Longs, Longs], last: int, at: int, size: int) -> int:
    """The number of a text, if it is one of those that came behind another the last time; else FREE."""
    guess = last
    for _ in range(GUESSES):
        guess = _signed(followers[guess])
        if size == known[1][guess] and _equal(words, known[0][guess], at, size):
            return guess
    return FREE


def unify_texts(words: Words, offsets: Longs, lengths: Longs) -> tuple[Ints, Longs]:
    """Number the texts by their first appearance: the number of each, and where each distinct one was first."""
    numbers, firsts = np.empty(offsets.size, np.int32), np.empty(offsets.size, np.int64)
    distinct = unify_each(words, offsets, lengths, numbers, firsts)
    return numbers, firsts[:distinct].copy()


@kernel
def unify_each(words: Words, offsets: Longs, lengths: Longs, numbers: Ints, firsts: Longs) -> int:
    """The same, into two arrays; how many are distinct.

    Dictionaries of like files hold the same texts in nearly the same order, and lack some; sorted columns that are
    written out repeat the last text. So those that came next the last time are tried before any other.
    """
    most = offsets.size
    hashes, followers = np.empty(most, np.uint64), np.empty(most, np.int32)
    starts, sizes = np.empty(most, np.int64), np.empty(most, np.int64)
    known = starts, sizes
    table, distinct, last = np.full(FIRST_TABLE, FREE, np.int32), 0, 0
    for place in range(most):
        at, size = offsets[place], lengths[place]
        guess = _guessed(words, followers, known, last, at, size) if place else FREE
        if guess != FREE:
            numbers[place] = last = guess
            continue
        mixed = _hash(words, at, size)
        slot = _find(words, table, table.size - 1, hashes, mixed, known, at, size)
        number = _signed(table[slot])
        if number == FREE:
            number = distinct
            table[slot], firsts[number], hashes[number] = number, place, mixed
            starts[number], sizes[number], followers[number] = at, size, number
            distinct += 1
            if 2 * distinct > table.size:
                table = _grown(hashes, distinct, 4 * table.size)
        followers[last] = number
        numbers[place] = last = number
    return distinct


@kernel
def copy_texts(source: Bytes, offsets: Longs, lengths: Longs, prefix: int, out: Bytes, ends: Longs) -> int:
    """Copy texts behind each other, each behind `prefix` (0 or 4) bytes of its length; where each ends, and all."""
    at = 0
    for place in range(offsets.size):
        length = lengths[place]
        for byte in range(prefix):
            out[at + byte] = (length >> (8 * byte)) & 0xFF
        at += prefix
        for byte in range(length):
            out[at + byte] = source[offsets[place] + byte]
        at += length
        ends[place] = at
    return at


@kernel
def hash_texts(words: Words, offsets: Longs, lengths: Longs, out: Words) -> None:
    """Hash each text to 64 bits."""
    for place in range(offsets.size):
        out[place] = _hash(words, offsets[place], lengths[place])
