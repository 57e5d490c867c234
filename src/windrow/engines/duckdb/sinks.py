"""Where the rows of a query go: into one Arrow table, or out batch by batch while DuckDB works."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import duckdb
import pyarrow as pa

from windrow.engines.duckdb.join_estimates import EstimatedJoins
from windrow.engines.duckdb.submit import submitted
from windrow.engines.duckdb.views import Bound
from windrow.errors import InvalidInput

__all__ = ["Batches", "CollectSink", "Run", "Sink", "Statement", "StreamSink"]

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

_BATCH_ROWS = 16 * 1024
"""Rows of a batch of a stream. DuckDB builds one in each thread, beside those that wait for a reader."""


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
    answer: pa.Table | None = None
    """The answer, where metadata has it."""
    joins: Sequence[EstimatedJoins] = ()
    """Its groups of joins, where it is explained."""

    def result(self) -> duckdb.DuckDBPyRelation:
        """The result, of which nothing is worked out yet."""
        if self.answer is not None:
            return self.connection.from_arrow(self.answer)
        result = self.connection.sql(self.query, params=self.parameters)
        if result is None:
            raise InvalidInput("the query is empty; write a select")
        return result

    def table(self, run: Run) -> pa.Table:
        """All rows. One SELECT is run at once, where DuckDB can: a result that is asked for first is bound twice."""
        if self.answer is not None:
            return self.answer
        work = submitted(self.connection, self.query, self.parameters) if self.is_select else None
        return run(self.result().to_arrow_table if work is None else work)


class Run(Protocol):
    """Does a piece of work, such that Ctrl-C ends it."""

    def __call__(self, work: Callable[[], T]) -> T:
        """Return what the work gives."""


class Sink(Protocol[T_co]):
    """Takes the rows of a result."""

    explains: bool
    """Whether plans should count how much there was to begin with."""
    binds: bool
    """Whether DuckDB gets to see what is read."""
    streams: bool
    """Whether rows are read while the query runs."""

    def __call__(self, statement: Statement, run: Run) -> T_co:
        """Take the rows, and return what became of them; DuckDB's own part of it is done by `run`."""


class CollectSink:
    """All rows, as one Arrow table."""

    explains = False
    binds = True
    streams = False

    def __call__(self, statement: Statement, run: Run) -> pa.Table:
        """Return the rows."""
        table = statement.table(run)
        names = table.column_names
        return table if len(set(names)) == len(names) else table.rename_columns(_unique(names))


class Batches:
    """The rows of a query that is running; the first batch is there, the others are worked out when they are read."""

    def __init__(self, reader: pa.RecordBatchReader, run: Run) -> None:
        self._reader = reader
        self._run = run
        self._first = self._read()
        fields = zip(reader.schema, _unique(reader.schema.names), strict=True)
        self.schema = pa.schema([each.with_name(name) for each, name in fields])

    def next(self) -> pa.RecordBatch | None:
        """The next batch; None at the end."""
        batch, self._first = self._first, None
        batch = self._read() if batch is None else batch
        return None if batch is None else pa.RecordBatch.from_arrays(batch.columns, schema=self.schema)

    def _read(self) -> pa.RecordBatch | None:
        with _errors_named():
            return self._run(lambda: next(self._reader, None))

    def close(self) -> None:
        """Let go of the rows that nobody reads."""
        self._first = None
        self._reader.close()


class StreamSink:
    """Batches that are read while the query runs."""

    explains = False
    binds = True
    streams = True

    def __call__(self, statement: Statement, run: Run) -> Batches:
        """Return the batches, when the first one is there."""
        result = statement.result()
        with _errors_named():
            reader = run(lambda: result.to_arrow_reader(_BATCH_ROWS))
        return Batches(reader, run)


@contextmanager
def _errors_named() -> Iterator[None]:
    """Errors that DuckDB sends through Arrow get the kinds that they have without it."""
    try:
        yield
    except duckdb.Error:
        raise
    except (OSError, pa.ArrowException) as error:
        raise duckdb.Error(str(error)) from error


def _unique(names: Sequence[str]) -> list[str]:
    """Columns of one name would be one in a dictionary; the second becomes name_1, and so on."""
    unique: dict[str, None] = {}
    for name in names:
        others = (f"{name}_{number}" for number in itertools.count(1))
        unique[name if name not in unique else next(other for other in others if other not in unique)] = None
    return list(unique)
