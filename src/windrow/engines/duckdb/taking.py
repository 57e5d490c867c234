"""How the rows of an answer are taken from DuckDB: all at once, or batch by batch as they are worked out."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import duckdb
import pyarrow as pa

from windrow.engines.duckdb.submit import submitted
from windrow.engines.duckdb.views import Bound
from windrow.errors import InvalidInput

__all__ = ["Collecting", "Run", "Statement", "Streaming", "Taking"]

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

_BATCH_ROWS = 64 * 1024


@dataclass(frozen=True, slots=True)
class Statement:
    """A query that is ready to run."""

    connection: duckdb.DuckDBPyConnection
    query: str
    parameters: Any
    is_select: bool
    """Whether it is known to be one SELECT and nothing else."""
    bound: Sequence[Bound] = ()
    """What its names stand for, and what is read for them."""
    planning: float = 0.0
    """Seconds that went by before it could run."""
    known: pa.Table | None = None
    """The answer, where metadata has it."""
    is_profiled: bool = False
    """Whether the connection reports how queries go by itself."""

    def result(self) -> duckdb.DuckDBPyRelation:
        """The result, of which nothing is worked out yet."""
        if self.known is not None:
            return self.connection.from_arrow(self.known)
        result = self.connection.sql(self.query, params=self.parameters)
        if result is None:
            raise InvalidInput("the query is empty; write a select")
        return result

    def table(self, run: Run) -> pa.Table:
        """All rows. One SELECT is run at once, where DuckDB can: a result that is asked for first is bound twice."""
        if self.known is not None:
            return self.known
        work = submitted(self.connection, self.query, self.parameters) if self.is_select else None
        return run(self.result().to_arrow_table if work is None else work)


class Run(Protocol):
    """Does a piece of work, such that Ctrl-C ends it."""

    def __call__(self, work: Callable[[], T]) -> T:
        """Return what the work gives."""


class Taking(Protocol[T_co]):
    """Takes the rows of a result."""

    begun: bool
    """Whether somebody has got rows, so that the query cannot be run again unnoticed."""
    explains: bool
    """Whether plans should count how much there was to begin with."""
    runs: bool
    """Whether the query is run, so that rows are read."""

    def __call__(self, statement: Statement, run: Run) -> T_co:
        """Take the rows, and return what became of them; DuckDB's own part of it is done by `run`."""


class Collecting:
    """All rows, as one Arrow table."""

    begun = False
    explains = False
    runs = True

    def __call__(self, statement: Statement, run: Run) -> pa.Table:
        """Return the rows."""
        table = statement.table(run)
        names = table.column_names
        return table if len(set(names)) == len(names) else table.rename_columns(_apart(names))


class Streaming(Generic[T]):
    """Batches, handed over while the query runs; what takes them is called when the first one is there."""

    explains = False
    runs = True

    def __init__(self, into: Callable[[pa.RecordBatchReader], T]) -> None:
        self._into = into
        self.begun = False

    def __call__(self, statement: Statement, run: Run) -> T:
        """Hand the rows over."""
        result = statement.result()

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
    apart: dict[str, None] = {}
    for name in names:
        others = (f"{name}_{number}" for number in itertools.count(1))
        apart[name if name not in apart else next(other for other in others if other not in apart)] = None
    return list(apart)
