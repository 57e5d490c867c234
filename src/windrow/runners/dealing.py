"""Deals work out to tasks."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable
from typing import TypeVar

__all__ = ["dealt"]

T = TypeVar("T")


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
