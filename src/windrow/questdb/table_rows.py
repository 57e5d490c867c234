"""Rows of a table: its columns and types, in order of time, by partition and by row group."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from windrow.errors import InvalidInput
from windrow.questdb.meta import Meta, PartitionUnit
from windrow.questdb.meta_writer import arrow_schema

__all__ = ["TableRows", "cut", "recut"]

_UNITS = {PartitionUnit.HOUR: "h", PartitionUnit.DAY: "D", PartitionUnit.MONTH: "M", PartitionUnit.YEAR: "Y"}
_DAY, _DAYS_BEFORE_MONDAY = 86_400, 3


class TableRows:
    """What all rows of a table have in common."""

    def __init__(self, meta: Meta, name: str) -> None:
        self._meta, self._name = meta, name
        self.schema = arrow_schema(meta)
        if meta.timestamp is None or meta.unit is PartitionUnit.NONE:
            raise InvalidInput(f"{name}: the table has no designated timestamp or no partitions; create another one")
        self.timestamp = meta.columns.index(meta.timestamp)
        """The position of the designated timestamp."""

    def conform(self, rows: pa.Table) -> pa.Table:
        """The rows with the table's columns and types, in order of time."""
        if sorted(rows.column_names) != sorted(self.schema.names):
            problem = f"rows have the columns {sorted(rows.column_names)}, the table {sorted(self.schema.names)}"
            raise InvalidInput(f"{self._name}: {problem}; give all of them")
        rows = rows.select(self.schema.names)
        if rows.column(self.timestamp).null_count:
            raise InvalidInput(f"{self._name}: {self.schema.names[self.timestamp]!r} has nulls; drop such rows")
        try:
            rows = rows.cast(self.schema)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise InvalidInput(f"{self._name}: rows do not fit the table: {error}; cast them first") from error
        times = self.times(rows)
        if (times[1:] < times[:-1]).any():
            rows = rows.take(pa.array(np.argsort(times, kind="stable")))
        return rows.combine_chunks()

    def times(self, rows: pa.Table) -> NDArray[np.int64]:
        """The time of every row."""
        times: NDArray[np.int64] = rows.column(self.timestamp).cast(pa.int64()).to_numpy()
        return times

    def merge(self, old: pa.Table, late: pa.Table) -> pa.Table:
        """Both in order of time; of rows of one time the old ones come first."""
        rows = pa.concat_tables([old.cast(self.schema), late])
        return rows.take(pa.array(np.argsort(self.times(rows), kind="stable"))).combine_chunks()

    def by_partition(self, rows: pa.Table) -> Iterator[tuple[int, pa.Table]]:
        """The low bound of each partition, and its rows."""
        starts = self._starts(self.times(rows))
        return ((int(starts[low]), rows.slice(low, high - low)) for low, high in cut(starts))

    def _starts(self, times: NDArray[np.int64]) -> NDArray[np.int64]:
        """The low bound of the partition of every row."""
        ticks = self._meta.ticks_per_second
        seconds = (times // ticks).astype("M8[s]")
        if self._meta.unit is PartitionUnit.WEEK:
            days = seconds.astype("M8[D]").astype(np.int64) + _DAYS_BEFORE_MONDAY
            return (days // 7 * 7 - _DAYS_BEFORE_MONDAY) * (_DAY * ticks)
        starts: NDArray[np.int64] = seconds.astype(f"M8[{_UNITS[self._meta.unit]}]").astype("M8[s]").astype(np.int64)
        return starts * ticks


def cut(keys: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """The first row of each run of equal keys, and the row after its last."""
    return pairwise([0, *(np.flatnonzero(np.diff(keys)) + 1).tolist(), len(keys)])


def recut(batches: Iterable[pa.Table], rows: int) -> Iterator[pa.Table]:
    """The same rows in tables of so many each; the last one has the rest."""
    held: list[pa.Table] = []
    count = 0
    for batch in batches:
        held.append(batch)
        count += batch.num_rows
        if count >= rows:
            joined, whole = pa.concat_tables(held), count - count % rows
            yield from (joined.slice(start, rows) for start in range(0, whole, rows))
            held, count = [joined.slice(whole)], count - whole
    if count:
        yield pa.concat_tables(held)
