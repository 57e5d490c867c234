"""Deals work out to tasks."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

__all__ = ["cut", "dealt"]

T = TypeVar("T")


def cut(sizes: Sequence[int], tasks: int) -> list[range]:
    """Cut items that follow each other into at most so many stretches of about the same size, none of them empty.

    >>> cut([1, 1, 4, 1, 1], 2)
    [range(0, 3), range(3, 5)]
    """
    stretches: list[range] = []
    first, done, left = 0, 0, sum(sizes)
    for number, size in enumerate(sizes):
        done += size
        # what is left is shared by the tasks that are left; an item goes to where the larger half of it lies
        following = sizes[number + 1] if number + 1 < len(sizes) else 0
        if (done + following / 2) * (tasks - len(stretches)) >= left and len(stretches) < tasks - 1:
            stretches.append(range(first, number + 1))
            first, left, done = number + 1, left - done, 0
    return [*stretches, range(first, len(sizes))] if first < len(sizes) else stretches


def dealt(items: Iterable[T], tasks: int, size: Callable[[T], int]) -> list[list[T]]:
    """Deal items out to at most so many tasks, evenly by their sizes; the large ones come first and alone."""
    largest_first = sorted(items, key=size, reverse=True)
    shares: list[list[T]] = [[] for _ in range(min(tasks, len(largest_first)))]
    load = [(0, number) for number in range(len(shares))]
    for item in largest_first:
        taken, number = load[0]
        shares[number].append(item)
        heapq.heapreplace(load, (taken + size(item), number))
    return shares
