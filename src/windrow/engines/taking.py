"""How the rows of an answer are taken from DuckDB: all at once, or batch by batch as they are worked out."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Generic, Protocol, TypeVar

import duckdb
import pyarrow as pa

__all__ = ["Collecting", "Run", "Streaming", "Taking"]

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

_BATCH_ROWS = 64 * 1024


class Run(Protocol):
    """Does a piece of work, such that Ctrl-C ends it."""

    def __call__(self, work: Callable[[], T]) -> T:
        """Return what the work gives."""


class Taking(Protocol[T_co]):
    """Takes the rows of a result."""

    begun: bool
    """Whether somebody has got rows, so that the query cannot be run again unnoticed."""

    def __call__(self, result: duckdb.DuckDBPyRelation, run: Run) -> T_co:
        """Take the rows, and return what became of them; DuckDB's own part of it is done by `run`."""


class Collecting:
    """All rows, as one Arrow table."""

    begun = False

    def __call__(self, result: duckdb.DuckDBPyRelation, run: Run) -> pa.Table:
        """Return the rows."""
        table = run(result.to_arrow_table)
        return table.rename_columns(_apart(table.column_names))


class Streaming(Generic[T]):
    """Batches, handed over while the query runs; what takes them is called when the first one is there."""

    def __init__(self, into: Callable[[pa.RecordBatchReader], T]) -> None:
        self._into = into
        self.begun = False

    def __call__(self, result: duckdb.DuckDBPyRelation, run: Run) -> T:
        """Hand the rows over."""

        def batch() -> pa.RecordBatch | None:
            with _errors_named():
                return run(lambda: next(reader, None))

        with _errors_named():
            reader = run(lambda: result.to_arrow_reader(_BATCH_ROWS))
        first = batch()
        fields = zip(reader.schema, _apart(reader.schema.names), strict=True)
        schema = pa.schema([each.with_name(name) for each, name in fields])
        self.begun = True
        return self._into(pa.RecordBatchReader.from_batches(schema, _renamed(first, batch, schema)))


def _renamed(
    batch: pa.RecordBatch | None, following: Callable[[], pa.RecordBatch | None], schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    while batch is not None:
        yield pa.RecordBatch.from_arrays(batch.columns, schema=schema)
        batch = following()


@contextmanager
def _errors_named() -> Iterator[None]:
    """Errors that DuckDB sends through Arrow get the kinds that they have without it."""
    try:
        yield
    except duckdb.Error:
        raise
    except (OSError, pa.ArrowException) as error:
        raise duckdb.Error(str(error)) from error


def _apart(names: Sequence[str]) -> list[str]:
    """Columns of one name would be one in a dictionary; the second becomes name_1, and so on."""
    apart: list[str] = []
    for name in names:
        others = (f"{name}_{number}" for number in itertools.count(1))
        apart.append(name if name not in apart else next(other for other in others if other not in apart))
    return apart
