"""Checking a sidecar: is it whole, does every snapshot verify, and does it agree with its Parquet file?"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from windrow.errors import WindrowError
from windrow.parquet.codecs import Codec
from windrow.parquet.footer import ParquetFooter
from windrow.sidecar import layout
from windrow.sidecar.columns import Bound, ColumnChunks
from windrow.sidecar.convert import Source, convert
from windrow.sidecar.layout import Side
from windrow.sidecar.reader import Sidecar
from windrow.sidecar.reserved import (
    Flaw,
    check_header,
    check_page_records,
    check_timestamp_nulls,
    stray_bits,
    stray_sizes,
)
from windrow.sidecar.stored_bounds import far_places

__all__ = ["Flaw", "check_against", "check_bytes"]

MOST_SNAPSHOTS = 1_000
"""Older snapshots are not looked at: each has a CRC over the whole file before it."""


def check_bytes(data: bytes, *, name: str = "sidecar") -> list[Flaw]:
    """All that is wrong with the bytes of a sidecar, as far as they can be read."""
    try:
        sidecar = Sidecar.of(data, name=name, verify=False)
        newest = islice(sidecar.snapshots(), MOST_SNAPSHOTS)
        in_snapshots = [flaw for snapshot in newest for flaw in _check_snapshot(snapshot)]
        return [*check_header(sidecar), *in_snapshots]
    except WindrowError as error:
        return [Flaw("structure", str(error))]


def check_against(sidecar: Sidecar, footer: ParquetFooter, parquet_size: int) -> list[Flaw]:
    """All in which a snapshot differs from the Parquet file that it should describe.

    A sidecar may know less than the footer, or more: only what both state must be the same.
    """
    if sidecar.parquet_size != parquet_size:
        problem = f"describes a Parquet file of {sidecar.parquet_size} bytes, this one has {parquet_size}"
        return [Flaw("PARQUET_FOOTER_OFFSET", problem)]
    source = Source(footer, parquet_size, sidecar.name)
    expected = Sidecar.of(convert(source, extensions=False), name=sidecar.name, verify=False)
    if sidecar.column_count != expected.column_count:
        problem = f"is {sidecar.column_count}, the Parquet file has {expected.column_count}"
        return [Flaw("COLUMN_COUNT", problem)]
    flaws = [*_compare_schema(sidecar, footer), *_compare_columns(sidecar, expected)]
    if sidecar.row_group_count != expected.row_group_count:
        problem = f"is {sidecar.row_group_count}, the Parquet file has {expected.row_group_count}"
        return [*flaws, Flaw("ROW_GROUP_COUNT", problem)]
    return [*flaws, *_compare_row_groups(sidecar, expected)]


def _check_snapshot(sidecar: Sidecar) -> Iterator[Flaw]:
    where = f"snapshot of {sidecar.footer.size} bytes"
    try:
        sidecar.verify()
        _look_at_contents(sidecar)
    except WindrowError as error:
        yield Flaw(where, str(error))
        return
    chunks = sidecar.chunks
    doubtful = {
        "CODEC": chunks["codec"] > max(Codec),
        "ENCODINGS": (chunks["encodings"] & ~np.uint8(sum(layout.EncodingBit))) != 0,
        "STAT_SIZES": stray_sizes(chunks),
        "RESERVED": chunks["reserved"] != 0,
        "NULL_COUNT": _nulls_beyond_values(chunks),
        "MIN_STAT": _unreadable(sidecar, layout.MINIMUM) | stray_bits(chunks, layout.MINIMUM),
        "MAX_STAT": _unreadable(sidecar, layout.MAXIMUM) | stray_bits(chunks, layout.MAXIMUM),
    }
    for field, wrong in doubtful.items():
        for group, column in np.argwhere(wrong)[:1].tolist():
            value = int(chunks[field.lower()][group, column])
            yield Flaw(f"{where}, row group {group}, column {column}", f"{field} is {value}")
    yield from check_timestamp_nulls(sidecar, where)
    yield from check_page_records(sidecar, where)
    yield from _lost_blooms(sidecar, where)
    yield from _stray_bounds(sidecar, where)


def _look_at_contents(sidecar: Sidecar) -> None:
    """Look at all that is otherwise looked at when it is used."""
    extensions = sidecar.extensions
    _ = sidecar.names, extensions.schema, extensions.version, extensions.key_value
    for group in range(sidecar.row_group_count):
        extensions.granules(group)


def _nulls_beyond_values(chunks: NDArray[np.void]) -> NDArray[np.bool_]:
    counted = (chunks["stat_flags"] & layout.StatFlag.NULL_COUNT_PRESENT) != 0
    beyond: NDArray[np.bool_] = counted & (chunks["null_count"] > chunks["num_values"])
    return beyond


def _unreadable(sidecar: Sidecar, side: Side) -> NDArray[np.bool_]:
    """Bounds that refer to bytes outside of the file."""
    chunks = sidecar.chunks
    out_of_line = (chunks["stat_flags"] & (side.present | side.inlined)) == side.present
    starts, lengths = far_places(chunks, side, sidecar.regions)
    unreadable: NDArray[np.bool_] = out_of_line & (starts + lengths > sidecar.footer.offset)
    return unreadable


def _lost_blooms(sidecar: Sidecar, where: str) -> Iterator[Flaw]:
    slots = sidecar.bloom_slots
    if sidecar.header.bloom_external:
        size = np.uint64(sidecar.parquet_size)
        lost = (slots["offset"] > size) | (slots["length"] > size - np.minimum(slots["offset"], size))
        for group, position in np.argwhere(lost).tolist():
            place = f"{where}, row group {group}, column {int(sidecar.bloom_columns[position])}"
            yield Flaw(place, "the bloom filter is not inside of the Parquet file")
        return
    for group, position in np.argwhere(slots != 0).tolist():
        column = int(sidecar.bloom_columns[position])
        if sidecar.bloom(group, column) is None:
            yield Flaw(f"{where}, row group {group}, column {column}", "the bloom filter is not inside of the file")


def _stray_bounds(sidecar: Sidecar, where: str) -> Iterator[Flaw]:
    by_column = sidecar.bounds_by_column
    if by_column is None:
        return
    for column, bounds in enumerate(by_column):
        words = sidecar.column(column).records.copy().view("<u8").reshape(-1, layout.CHUNK_WORDS)
        if (bounds != words[:, layout.BOUND_WORDS]).any():
            yield Flaw(f"{where}, column {column}", "the bounds by column are not those of the chunks")


def _compare_schema(sidecar: Sidecar, footer: ParquetFooter) -> Iterator[Flaw]:
    extensions = sidecar.extensions
    if extensions.schema_bytes not in (None, footer.schema_bytes):
        yield Flaw("SCHEMA", "is not the one of the Parquet file")
    if extensions.created_by not in (None, footer.created_by):
        yield Flaw("CREATED_BY", f"is {extensions.created_by!r}, in the Parquet file {footer.created_by!r}")


def _compare_columns(sidecar: Sidecar, expected: Sidecar) -> Iterator[Flaw]:
    for position, (name, expected_name) in enumerate(zip(sidecar.names, expected.names, strict=True)):
        if name != expected_name:
            yield Flaw(f"column {position}", f"is named {name!r}, in the Parquet file {expected_name!r}")
    for field in ("physical_type", "fixed_byte_len", "max_rep_level", "max_def_level"):
        ours, theirs = sidecar.descriptors[field], expected.descriptors[field]
        for position in np.flatnonzero(ours != theirs).tolist():
            problem = f"{field} is {ours[position]}, in the Parquet file {theirs[position]}"
            yield Flaw(f"column {position}", problem)


def _compare_row_groups(sidecar: Sidecar, expected: Sidecar) -> Iterator[Flaw]:
    rows, expected_rows = sidecar.row_counts, expected.row_counts
    for group in np.flatnonzero(rows != expected_rows).tolist():
        yield Flaw(f"row group {group}", f"NUM_ROWS is {rows[group]}, in the Parquet file {expected_rows[group]}")
    for field in ("codec", "num_values", "byte_range_start", "total_compressed"):
        ours, theirs = sidecar.chunks[field], expected.chunks[field]
        for group, column in np.argwhere(ours != theirs).tolist():
            problem = f"{field} is {ours[group, column]}, in the Parquet file {theirs[group, column]}"
            yield Flaw(f"row group {group}, column {column}", problem)
    for position in range(sidecar.column_count):
        yield from _compare_statistics(sidecar.column(position), expected.column(position))


def _compare_statistics(ours: ColumnChunks, theirs: ColumnChunks) -> Iterator[Flaw]:
    statistics = {
        "min": (_stated(ours.stored_minimum), _stated(theirs.stored_minimum)),
        "max": (_stated(ours.stored_maximum), _stated(theirs.stored_maximum)),
        "null_count": (ours.null_count, theirs.null_count),
        "distinct_count": (ours.distinct_count, theirs.distinct_count),
    }
    for field, ((values, present), (expected, expected_present)) in statistics.items():
        for group in np.flatnonzero(present & expected_present & (values != expected)).tolist():
            problem = f"{field} is {values[group]!r}, in the Parquet file {expected[group]!r}"
            yield Flaw(f"row group {group}, column {ours.position}", problem)


def _stated(bound: Bound) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """The bits of a bound, which compare where its values, as NaN, do not."""
    values = bound.values
    bits = values if values.dtype == object else values.view(f"<u{values.itemsize}")
    return bits, bound.present
