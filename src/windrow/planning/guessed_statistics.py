"""What footers and dictionaries tell of columns that nothing was learnt of: vague, and for explanations alone.

The entries of a dictionary stand for the distinct values of its row group; a writer may have gone on without it. Where
there is none, whole numbers are taken to fill the range between their bounds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress

import numpy as np
import pyarrow as pa

from windrow.errors import WindrowError
from windrow.parquet.page_headers import DICTIONARY_PAGE, read_page_header
from windrow.planning.answers import counted_nulls, extremes
from windrow.planning.data_files import DataFile
from windrow.planning.listed_files import ListedFiles
from windrow.planning.scan_context import ScanContext
from windrow.planning.units import Unit
from windrow.statistics.table_statistics import ColumnStatistics, DistinctCount

__all__ = ["guessed_columns"]

_MOST_HEADERS = 16
"""Dictionaries of a column that are looked at, of row groups that lie evenly in all files."""
_HEADER_BYTES = 256


def guessed_columns(
    context: ScanContext, listings: Sequence[ListedFiles], columns: Sequence[str], schema: pa.Schema
) -> dict[str, ColumnStatistics]:
    """Return guesses for columns; those that nothing is said of are missing. Remote files are not read for it."""
    guesses = {}
    for listed in listings:
        listed.open(context, listed.places)
    units = [(unit, listed.files) for listed in listings for unit in listed.units(context, listed.places)]
    for name in columns:
        guess = _guessed(units, name, schema)
        if guess != ColumnStatistics():
            guesses[name] = guess
    return guesses


def _guessed(units: Sequence[tuple[Unit, Sequence[DataFile]]], name: str, schema: pa.Schema) -> ColumnStatistics:
    only = [unit for unit, _ in units]
    rows = sum(int(unit.sidecar.row_counts.sum()) for unit in only)
    low, high = extremes(only, name, schema)
    distinct = _by_dictionaries(list(_entries(units, name)), rows)
    span = high - low + 1 if isinstance(low, int) and isinstance(high, int) else None
    bounds = [float(each) for each in (distinct, span, rows) if each is not None]
    is_told = distinct is not None or span is not None
    count = DistinctCount(max(1.0, min(bounds)), is_vague=True) if is_told and rows else None
    return ColumnStatistics(count, counted_nulls(only, name), low, high)


def _by_dictionaries(entries: Sequence[tuple[int, int]], rows: int) -> float | None:
    """The distinct values of all rows, as if row groups went on like those whose dictionaries were looked at."""
    counted = sum(count for _, count in entries)
    if not counted or any(not found for found, _ in entries):
        return None
    each, size = sum(found for found, _ in entries) / len(entries), counted / len(entries)
    return float(each * max(1.0, rows / size) ** min(each / size, 1.0))


def _entries(units: Sequence[tuple[Unit, Sequence[DataFile]]], name: str) -> Iterator[tuple[int, int]]:
    """Yield the dictionary entries and the rows of row groups; no entries where a chunk has no dictionary."""
    places = [(unit, files, at) for unit, files in units for at in np.flatnonzero(unit.filled).tolist()]
    for number in sorted({*np.linspace(0, len(places) - 1, _MOST_HEADERS).astype(int).tolist()} if places else ()):
        unit, files, at = places[number]
        positions, file = unit.sidecar.column_positions(name), files[int(unit.files[at])]
        if len(positions) == 1 and not file.store.is_remote:
            record = unit.sidecar.column(positions[0], np.array([at])).records[0]
            rows = int(unit.sidecar.row_counts[at])
            yield _dictionary_entries(file, int(record["byte_range_start"]), int(record["total_compressed"])), rows


def _dictionary_entries(file: DataFile, start: int, length: int) -> int:
    """How many values the dictionary has that a chunk begins with; 0 where it has none."""
    with suppress(WindrowError):
        header = read_page_header(file.read(start, min(_HEADER_BYTES, length)), name=file.uri)
        return header.num_values if header.type == DICTIONARY_PAGE else 0
    return 0
