"""Kernels that are refused, each at the line that says so, and why."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]


def signed_and_unsigned(one: int, other: np.uint64) -> int:
    total = one
    return total + other  # why: puts Scalar(name='int') and Scalar(name='word') together


def float_as_integer(value: float) -> int:
    return value  # why: gives Scalar(name='float') where Scalar(name='int') is expected


def another_type_later(value: int) -> float:
    found = value
    found = 0.5  # why: gives Scalar(name='float') where Scalar(name='int') is expected
    return found + value


def another_type_in_place(values: Words, value: int) -> None:
    words = values[0]
    words += value  # why: together


def text(value: int) -> int:
    name = "a text"  # why: is str, which is not translated
    return value + len(name)


def listed(value: int) -> int:
    values = [value]  # why: is not translated
    return values[0]


def with_block(value: int) -> int:
    with np.errstate():  # why: is not translated
        return value


def raising(value: int) -> int:
    if value > 1:
        raise ValueError("no")  # why: is not translated
    return value


def loop_over_pairs(values: Integers) -> int:
    total = 0
    for at, value in enumerate(values):  # why: is not translated
        total += at * value
    return total


def loop_with_else(values: Integers) -> int:
    for value in values:  # why: is not translated
        if value:
            break
    else:
        return 1
    return 0


def strided(values: Integers) -> int:
    return values[::2].size  # why: is not translated


def negative_word(value: np.uint64) -> np.uint64:
    return -value  # why: is not translated


def shifted_float(value: float) -> int:
    return int(value << 2)  # why: is not translated


def library(values: Integers) -> int:
    return int(np.cumsum(values)[0])  # why: is not translated


def method(values: Integers) -> int:
    return values.mean()  # why: is not translated


def no_kernel(value: int) -> int:
    return not_listed(value)  # why: is no kernel


def not_listed(value: int) -> int:
    return value


def too_many(value: int) -> int:
    return called(value, 1)  # why: called takes 1 arguments


def by_name(value: int) -> int:
    return called(value=value)  # why: is not translated


def called(value: int) -> int:
    return value


def through_another(value: int) -> int:
    return inner(value)


def inner(value: int) -> int:
    return value ** "2"  # why: is str, which is not translated


def array_as_number(values: Integers) -> int:
    return 1 + values  # why: must be a number


FUNCTIONS = [
    each
    for each in list(globals().values())
    if callable(each) and getattr(each, "__module__", None) == __name__ and each is not not_listed
]
