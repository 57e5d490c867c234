"""What is known of a table, put together from what is known of the columns of its files."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
from pyarrow import types

from windrow.pruning.types import Family
from windrow.statistics.column_summary import ColumnSummary
from windrow.statistics.hashing import domain_of
from windrow.statistics.sample import ColumnSample, joined_sample, redrawn
from windrow.statistics.sketch import united
from windrow.statistics.synopsis import Facts
from windrow.statistics.table_statistics import ColumnStatistics, DistinctCount, TableStatistics
from windrow.statistics.values import column_type_of

__all__ = ["table_statistics"]


def table_statistics(
    files: Mapping[str, int], known: Mapping[str, Mapping[str, ColumnSummary]], columns: Collection[str]
) -> TableStatistics:
    """The statistics of a table of files, given by their keys with their rows, from what is known of their columns."""
    rows = sum(files.values())
    by_column = {name: _of_column(files, known, name) for name in columns}
    found = {name: _column(parts, rows) for name, parts in by_column.items() if any(part.known_rows for part in parts)}
    return TableStatistics(rows, found, _sample(files, known, list(found)))


def _of_column(
    files: Mapping[str, int], known: Mapping[str, Mapping[str, ColumnSummary]], name: str
) -> list[ColumnSummary]:
    return [known[key][name] for key in files if name in known.get(key, {})]


def _column(parts: Sequence[ColumnSummary], rows: int) -> ColumnStatistics:
    """The statistics of a column; in a table where it has several types, of those parts that are like the first."""
    first = next(part for part in parts if part.known_rows)
    like = [part for part in parts if domain_of(part.type) == domain_of(first.type)]
    known_rows = sum(part.known_rows for part in like)
    distinct = _distinct(like, known_rows, rows)
    if known_rows < rows or not all(part.is_complete and part.type == first.type for part in like):
        return ColumnStatistics(distinct)
    whole = Facts()
    for part in like:
        whole = whole.plus(part.synopses.whole)
    low, high = (_python_value(end, first.type) for end in (whole.minimum, whole.maximum))
    return ColumnStatistics(distinct, whole.null_count, low, high)


def _distinct(parts: Sequence[ColumnSummary], known_rows: int, rows: int) -> DistinctCount:
    """The distinct values of all rows; where some rows are not known, as if these went on like the others.

    Each new row is taken to bring a new value as often as the known rows did in the end: never in a column of few
    values, always in a key.
    """
    sketch = united(part.sketch for part in parts)
    estimate = min(sketch.estimate, float(known_rows))
    if known_rows < rows:
        estimate *= (rows / known_rows) ** min(estimate / known_rows, 1.0)
        return DistinctCount(min(estimate, float(rows)), sketch.error, is_vague=True)
    if sketch.is_exact:
        return DistinctCount(float(round(estimate)), is_exact=True)
    return DistinctCount(estimate, sketch.error)


def _python_value(stored: Any, kind: pa.DataType) -> Any:
    """A bound as a value of Python; None where it has none such."""
    family = column_type_of(kind).family
    if stored is None or family is Family.OPAQUE:
        return None
    if family is Family.TEXT:
        # a shortened bound may end inside of a character
        return stored.decode("utf-8", "ignore") or None
    if types.is_boolean(kind):
        return bool(stored)
    if types.is_decimal(kind):
        return Decimal((stored < 0, tuple(map(int, str(abs(stored)))), -kind.scale))
    if family is Family.TIME:
        width = pa.int32() if types.is_date32(kind) else pa.int64()
        return pa.array([stored], width).view(kind)[0].as_py()
    return stored


def _sample(
    files: Mapping[str, int], known: Mapping[str, Mapping[str, ColumnSummary]], columns: Sequence[str]
) -> pa.Table | None:
    """Rows drawn from the samples of all files that have one of all of these columns, each with the same rows."""
    parts: list[tuple[int, dict[str, ColumnSample]]] = []
    kinds: tuple[pa.DataType, ...] | None = None
    for key, rows in files.items():
        found = {name: known.get(key, {}).get(name) for name in columns}
        samples = {name: summary.sample for name, summary in found.items() if summary is not None and summary.sample}
        own = tuple(sample.values.type for sample in samples.values())
        if len(samples) == len(columns) and len({sample.draw for sample in samples.values()}) == 1:
            kinds = kinds or own
            parts += [(rows, samples)] if own == kinds else []
    if not parts or not columns:
        return None
    name = hashlib.blake2b("\0".join(files).encode(), digest_size=16).digest()
    return joined_sample({each: redrawn([(rows, part[each]) for rows, part in parts], name) for each in columns})
