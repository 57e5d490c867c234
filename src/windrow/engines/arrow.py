"""Rows of a selection as a stream of Arrow batches: no more is held than is on its way."""

from __future__ import annotations

import atexit
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import duckdb
import numpy as np
import pyarrow as pa

from windrow import forking, immortal
from windrow.engines.duckdb.engine import DuckDBEngine
from windrow.engines.duckdb.views import Bound
from windrow.engines.selection import Selection
from windrow.model.limits import NO_LIMITS, Limits
from windrow.model.sources import SourceKind
from windrow.planning.scan_plan import ScanPlan
from windrow.reading.read_context import ReadContext

__all__ = ["RowStream", "count_rows", "plan_of", "scanning_cursor", "scanning_engine", "virtual_files"]

_WIDE_BYTES = 32


class _Engines:
    """The engines that all scans of this process share, one for each set of limits: a database costs more than a scan.

    Conditions are text that somebody wrote, so these open virtual files alone. A forked child makes engines of its own.
    """

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._engines: dict[Limits, DuckDBEngine] = {}
        forking.register(self)

    def get(self, limits: Limits) -> DuckDBEngine:
        with self._guard:
            if limits not in self._engines:
                self._engines[limits] = DuckDBEngine(None, limits=limits, confined=True)
            return self._engines[limits]

    def close(self) -> None:
        for engine in self._engines.values():
            engine.close()
        self._engines = {}

    def after_fork(self) -> None:
        immortal.abandon(*self._engines.values())
        self._engines, self._guard = {}, threading.Lock()


_engines = _Engines()
# Databases are closed before Python takes away what they need for that.
atexit.register(_engines.close)


def scanning_engine(limits: Limits = NO_LIMITS) -> DuckDBEngine:
    """The engine of the scans of this process."""
    return _engines.get(limits)


@contextmanager
def scanning_cursor() -> Iterator[duckdb.DuckDBPyConnection]:
    """A cursor whose time zone is UTC, while the block lasts."""
    with scanning_engine().cursor() as cursor:
        yield cursor


def plan_of(selection: Selection, context: ReadContext) -> ScanPlan:
    """What would be read of a selection, and from which source; it is counted too how much there was to begin with."""
    return scanning_engine(context.limits).plans(selection.request(context))[selection.name]


def virtual_files(selection: Selection, context: ReadContext) -> Bound:
    """A selection whose rows somebody else reads, now or later: from virtual files, which last."""
    request = selection.request(context, frozenset({SourceKind.VIRTUAL}))
    [bound] = scanning_engine(context.limits).sources(request)
    return bound


class RowStream:
    """The rows of a selection. Iterate over it once, or close it; the version is held until then."""

    def __init__(self, selection: Selection, context: ReadContext) -> None:
        self._stream = scanning_engine(context.limits).open(selection.request(context))
        fields = zip(self._stream.schema, selection.schema, strict=True)
        self.schema = pa.schema([(each.name, _reachable(has.type, each.type)) for has, each in fields])

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        try:
            while (batch := self._stream.next()) is not None:
                if batch.num_rows:
                    yield batch if batch.schema == self.schema else _conformed(batch, self.schema)
        finally:
            self.close()

    def reader(self) -> pa.RecordBatchReader:
        """Return the stream as a reader, which others can take over by Arrow's C interface."""
        return pa.RecordBatchReader.from_batches(self.schema, iter(self))

    def close(self) -> None:
        """Let go of files and of the version."""
        self._stream.close()


def count_rows(selection: Selection, context: ReadContext) -> int:
    """Count the rows of a selection."""
    stream = scanning_engine(context.limits).open(selection.request(context, count=True))
    try:
        count = 0
        while (batch := stream.next()) is not None:
            count += sum(batch.column(0).to_pylist())
        return count
    finally:
        stream.close()


def _reachable(found: pa.DataType, wanted: pa.DataType) -> pa.DataType:
    """The type of the table, unless DuckDB has no such type and what it gives is another."""
    if pa.types.is_decimal256(wanted) and pa.types.is_binary(found):
        return wanted
    if pa.types.is_floating(found) != pa.types.is_floating(wanted):
        return found
    try:
        pa.nulls(0, found).cast(wanted)
    except pa.ArrowNotImplementedError:
        return found
    return wanted


def _conformed(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    columns = [
        column if column.type == each.type else _cast(column, each.type)
        for column, each in zip(batch.columns, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _cast(column: pa.Array, kind: pa.DataType) -> pa.Array:
    if pa.types.is_decimal256(kind) and pa.types.is_binary(column.type):
        return _wide_decimals(column, kind)
    return column.cast(kind)


def _wide_decimals(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """Decimals of 32 bytes, highest first: Arrow has the lowest first."""
    is_valid = column.is_valid()
    held = column.fill_null(bytes(_WIDE_BYTES)).cast(pa.binary(_WIDE_BYTES))
    words = np.frombuffer(held.buffers()[1], np.uint8, len(held) * _WIDE_BYTES, held.offset * _WIDE_BYTES)
    turned = np.ascontiguousarray(words.reshape(-1, _WIDE_BYTES)[:, ::-1])
    bitmap = pa.py_buffer(np.packbits(is_valid.to_numpy(zero_copy_only=False), bitorder="little"))
    return pa.Array.from_buffers(kind, len(held), [bitmap, pa.py_buffer(turned)])
