"""Kernels that are translated, one for each thing that the language of kernels has. They run as plain Python too."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]
Integers = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]
Floats = npt.NDArray[np.float64]
Whole = TypeVar("Whole", npt.NDArray[np.int32], npt.NDArray[np.int64], npt.NDArray[np.uint64])

STEPS = np.array([1, 10, 100])
LIMIT = 50


def divided(one: int, other: int) -> tuple[int, int]:
    return one // other, one % other


def divided_words(one: np.uint64, other: np.uint64) -> tuple[np.uint64, np.uint64]:
    return one // other, one % other


def quotient(one: int, other: int) -> float:
    return one / other


def arithmetic(one: int, other: int) -> int:
    return (one + other) * 3 - (one & other) + (one | other) - (one ^ other) - -one + ~other


def of_words(one: np.uint64, other: np.uint64) -> np.uint64:
    return (one * other + one - other) ^ (one >> np.uint64(7)) ^ (other << np.uint64(9))


def shifted(value: int, by: int) -> int:
    return (value >> by) + (1 << by)


def cut(value: int) -> tuple[int, int, int]:
    return int(np.uint8(value)), int(np.int32(value)), int(np.int8(value))


def from_float(value: float) -> int:
    return int(value)


def compared(value: int) -> tuple[bool, bool, bool, bool]:
    return 0 < value <= 9, value in (3, 5), value not in (3, 5), not value or value == 7


def chosen(one: int, other: int) -> int:
    return max(one, 5) if one > other else min(one, other, 9)


def swapped(one: int, other: int) -> tuple[int, tuple[int, int]]:
    one, other = other, one
    both = (one, other)
    first, second = both
    return first, (second, both[0])


def walked(values: Integers) -> int:
    """All kinds of loops, and ways out of them."""
    total = 0
    for at in range(values.size - 1, -1, -2):
        total += values[at]
    for at in range(1, len(values)):
        if values[at] == 0:
            continue
        if values[at] > LIMIT:
            break
        total += at
    for value in values:
        total ^= value
    for step in (1, 20):
        total += step
    at = 0
    while at < STEPS.size:
        total -= STEPS[at]
        at += 1
    return total


def parts(values: Integers, out: Integers) -> None:
    """Parts of arrays are the same memory, copies are not."""
    middle = values[1 : values.size - 1]
    copied = middle.copy()
    out[: copied.size] = copied
    out[copied.size :] = 7
    middle[0] = -1
    out[0] += copied[0]


def made(count: int) -> int:
    """Memory of a kernel's own."""
    table = np.zeros((count, 3), np.int64)
    ones = np.full(count, 1, np.int32)
    raw = np.empty(count, np.uint8)
    for at in range(count):
        raw[at] = np.uint8(at)
        table[at, 2] = raw[at] + ones[at]
    row = table[count - 1]
    return int(row[2]) + table.shape[1] + int(table.reshape(-1)[5])


def total_of(values: Whole) -> int:
    """One function for arrays of several types."""
    total = 0
    for at in range(values.size):
        total += int(values[at])
    return total


def total_of_parts(pair: tuple[Integers, Integers]) -> int:
    return total_of(pair[0]) - total_of(pair[1])


def at(values: Integers, place: int) -> int:
    return values[place]


def in_table(table: npt.NDArray[np.int64], row: int, column: int) -> int:
    return _cell(table.copy(), row, column)


def _cell(values: Integers, row: int, column: int) -> int:
    table = np.zeros((2, 3), np.int64)
    for place in range(values.size):
        table[place // 3, place % 3] = values[place]
    return table[row, column]


def put(values: Integers, place: int) -> None:
    values[place] = 1


def part(values: Integers, low: int, high: int) -> int:
    return values[low:high].size


def spin(values: Integers, turns: int) -> int:
    """A long time without Python."""
    total = 0
    for turn in range(turns):
        for place in range(values.size):
            total = (total ^ values[place]) * 3 + turn
    return total


FUNCTIONS = [
    each for each in list(globals().values()) if callable(each) and getattr(each, "__module__", None) == __name__
]
