"""Fewer, larger reads: ranges that lie close together are fetched as one and cut apart again.

A request costs its latency whatever it carries, so it pays to read a gap of unwanted bytes whenever they come faster
than a further request would.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from windrow.errors import Damaged, InvalidInput, Replaced, StorageError
from windrow.storage.protocol import ByteRange, Identity, ObjectInfo

__all__ = ["Fetch", "check_identity", "check_suffix", "coalesce", "gap_for", "read_ranges", "too_short"]


@dataclass(frozen=True, slots=True)
class Fetch:
    """One read that covers several wanted ranges; each with its place in the caller's order."""

    start: int
    length: int
    wanted: tuple[tuple[int, ByteRange], ...]

    def cut(self, data: Any) -> Iterator[tuple[int, bytes]]:
        """The wanted ranges out of the fetched bytes (any buffer), each with its place in the caller's order."""
        view = memoryview(data)
        for place, wanted in self.wanted:
            offset = wanted.start - self.start
            # Bytes that are wanted whole are handed on as they are, not copied.
            whole = wanted.length == self.length
            yield place, bytes(data if whole else view[offset : offset + wanted.length])


def gap_for(latency_seconds: float, bytes_per_second: float) -> int:
    """How many bytes a store delivers in the time in which it answers a request: larger gaps are worth leaving out."""
    gap = latency_seconds * bytes_per_second
    if not (latency_seconds >= 0 and bytes_per_second >= 0 and math.isfinite(gap)):
        raise InvalidInput(
            f"gap for latency {latency_seconds} s at {bytes_per_second} bytes/s: "
            "both are measured on a store; give finite numbers from 0 on"
        )
    return int(gap)


def coalesce(ranges: Iterable[ByteRange], gap: int) -> list[Fetch]:
    """The fewest fetches, ordered by offset, that cover the ranges and bridge no gap of more than `gap` bytes.

    Ranges may overlap, repeat, be empty and come in any order; empty ones need no fetch.
    """
    wanted = [(place, each) for place, each in enumerate(ranges) if each.length]
    wanted.sort(key=lambda item: item[1].start)
    fetches: list[Fetch] = []
    group: list[tuple[int, ByteRange]] = []
    end = 0
    for place, each in wanted:
        if group and each.start - end > gap:
            fetches.append(_fetch(group, end))
            group = []
        end = max(end, each.end)
        group.append((place, each))
    if group:
        fetches.append(_fetch(group, end))
    return fetches


def _fetch(group: list[tuple[int, ByteRange]], end: int) -> Fetch:
    start = group[0][1].start
    return Fetch(start, end - start, tuple(group))


def read_ranges(
    name: str, ranges: Sequence[ByteRange], gap: int, read: Callable[[list[Fetch]], Iterable[Any]]
) -> list[bytes]:
    """Read ranges of the object called `name` by coalesced fetches; `read` gives the buffers of the fetches in order.

    Short bytes are never handed on: they are a `StorageError`.
    """
    pieces = [b""] * len(ranges)
    fetches = coalesce(ranges, gap)
    if not fetches:
        return pieces
    for fetch, data in zip(fetches, read(fetches), strict=True):
        if len(data) != fetch.length:
            raise too_short(name, fetch, len(data))
        for place, piece in fetch.cut(data):
            pieces[place] = piece
    return pieces


def too_short(name: str, wanted: ByteRange | Fetch, came: int) -> StorageError:
    """The error for a read that ends before its range does."""
    return StorageError(
        f"{name}: {wanted.length} bytes were asked for at offset {wanted.start} and only {came} are there; "
        "the object is shorter than its metadata says, check or rebuild that"
    )


def check_identity(name: str, expect: Identity | None, info: ObjectInfo) -> None:
    """Refuse an object that is not the expected one.

    One that is identified by its size alone is never written again: another size is damage, not a newer object.
    """
    if expect is not None and not expect.fits(info):
        if expect.etag is None and expect.modified is None:
            problem = "was cut short" if info.size < expect.size else "is longer than what was written"
            raise Damaged(
                f"{name}: has {info.size} bytes and not {expect.size}, it {problem}; bring it back from a backup, and "
                "see with check what else is damaged"
            )
        raise Replaced(
            f"{name}: the object was replaced: expected {expect}, found {info.identity}; plan the query again"
        )


def check_suffix(length: int) -> int:
    """Give the length of a suffix back if it can be requested."""
    if length < 1:
        raise InvalidInput(f"suffix of {length} bytes: a suffix has at least one; ask for more, or for `head`")
    return length
