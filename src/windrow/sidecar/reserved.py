"""What a sidecar must leave 0, and what its designated timestamp must be.

Readers do not look at reserved fields. A later version of the format may, so a stray bit today is a wrong answer then.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from windrow.parquet.schema import PhysicalType
from windrow.sidecar import layout
from windrow.sidecar.layout import ColumnFlag, PageFlag, Side, SnapshotCode
from windrow.sidecar.reader import Sidecar
from windrow.sidecar.types import TAG_MASK, Tag

__all__ = ["Flaw", "check_header", "check_page_records", "check_timestamp_nulls", "stray_bits", "stray_sizes"]

_COLUMN_FLAGS = sum(ColumnFlag) | layout.REPETITION_MASK
_PAGE_FLAGS = sum(PageFlag)
_TIMES = (Tag.TIMESTAMP, Tag.DATE)
"""A Parquet timestamp in milliseconds is of the type DATE."""


class Flaw(NamedTuple):
    """Something wrong with a sidecar."""

    where: str
    problem: str


def check_header(sidecar: Sidecar) -> Iterator[Flaw]:
    """What is wrong with the header and the column descriptors, which all snapshots share."""
    if sidecar.header.reserved:
        yield Flaw("header", f"RESERVED is {sidecar.header.reserved}, it must be 0")
    descriptors = sidecar.descriptors
    physical, lengths = descriptors["physical_type"], descriptors["fixed_byte_len"]
    stray = descriptors["flags"] & ~np.int32(_COLUMN_FLAGS)
    problems = {
        "PHYSICAL_TYPE is {physical_type}, no Parquet type": physical > max(PhysicalType),
        "RESERVED is {reserved}, it must be 0": descriptors["reserved"] != 0,
        "FLAGS are {flags:#x}, bits 5 to 31 must be 0": stray != 0,
        "FIXED_BYTE_LEN is {fixed_byte_len} in a column of another physical type": (
            (lengths != 0) & (physical != PhysicalType.FIXED_LEN_BYTE_ARRAY)
        ),
    }
    for problem, wrong in problems.items():
        for position in np.flatnonzero(wrong).tolist():
            record = dict(zip(layout.DESCRIPTOR.names or (), descriptors[position].tolist(), strict=True))
            yield Flaw(f"header, column {position}", problem.format(**record))
    yield from _check_timestamp_type(sidecar)


def _check_timestamp_type(sidecar: Sidecar) -> Iterator[Flaw]:
    position = sidecar.designated_timestamp
    if position is None:
        return
    record = sidecar.descriptors[position]
    tag, physical = int(record["type"]) & TAG_MASK, int(record["physical_type"])
    if tag not in _TIMES or physical != PhysicalType.INT64:
        problem = f"the designated timestamp has type {int(record['type'])} and physical type {physical}"
        yield Flaw(f"header, column {position}", f"{problem}; it must be a timestamp of 64 bits")


def check_timestamp_nulls(sidecar: Sidecar, where: str) -> Iterator[Flaw]:
    """The first row group in which the designated timestamp is null."""
    position = sidecar.designated_timestamp
    if position is None:
        return
    nulls, counted = sidecar.column(position).null_count
    for group in np.flatnonzero(counted & (nulls > 0))[:1].tolist():
        yield Flaw(
            f"{where}, row group {group}, column {position}", f"the designated timestamp is null in {nulls[group]} rows"
        )


def stray_sizes(chunks: NDArray[np.void]) -> NDArray[np.bool_]:
    """Chunks that have the size of an inlined bound and no such bound."""
    stray = np.zeros(chunks.shape, bool)
    for side in layout.SIDES:
        size = chunks["stat_sizes"] >> np.uint8(side.size_shift) & np.uint8(0xF)
        stray |= (size != 0) & ~_inlined(chunks, side)
    return stray


def stray_bits(chunks: NDArray[np.void], side: Side) -> NDArray[np.bool_]:
    """Chunks whose inlined bound has a size that cannot be, or bits beyond its size."""
    slots = chunks[side.slot]
    size = chunks["stat_sizes"] >> np.uint8(side.size_shift) & np.uint8(0xF)
    impossible = (size == 0) | (size > layout.LONGEST_INLINE)
    shifts = np.minimum(size, layout.LONGEST_INLINE - 1).astype(np.uint64) * np.uint64(8)
    beyond = (size < layout.LONGEST_INLINE) & (slots >> shifts != 0)
    stray: NDArray[np.bool_] = _inlined(chunks, side) & (impossible | beyond)
    return stray


def _inlined(chunks: NDArray[np.void], side: Side) -> NDArray[np.bool_]:
    form = side.present | side.inlined
    inlined: NDArray[np.bool_] = (chunks["stat_flags"] & form) == form
    return inlined


def check_page_records(sidecar: Sidecar, where: str) -> Iterator[Flaw]:
    """The first reserved part of our own records that is not 0."""
    table = sidecar.extensions.tables[SnapshotCode.PAGES]
    if table is None or not sidecar.column_count:
        return
    for group in np.flatnonzero(table > 0).tolist():
        records = sidecar.extensions.page_records(group)
        if records is None:
            continue
        flags = records["flags"] & ~np.uint32(_PAGE_FLAGS)
        for field, wrong in {"RESERVED": records["reserved"], "FLAGS": flags}.items():
            for column in np.flatnonzero(wrong)[:1].tolist():
                place = f"{where}, row group {group}, column {column}"
                yield Flaw(place, f"{field} of the page record has bits {int(wrong[column]):#x} that must be 0")
                return
