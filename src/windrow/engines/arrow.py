"""Rows as a stream of Arrow batches: DuckDB decodes and filters, and no more is held than is on its way."""

from __future__ import annotations

import atexit
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import TypeVar

import duckdb
import numpy as np
import pyarrow as pa

from windrow import forking, immortal
from windrow.engines.duckdb.filesystem import PROTOCOL, VirtualFileSystem, new_database
from windrow.engines.duckdb.interrupting import Worker, heeding_ctrl_c
from windrow.engines.selection import Selection
from windrow.errors import Closed, InvalidInput, NotFound, StorageError, WindrowError
from windrow.model.limits import NO_LIMITS, Limits
from windrow.planning.scan_plan import ScanPlan
from windrow.reading.read_context import ReadContext
from windrow.reading.virtual_reader import VirtualReader

__all__ = ["RowStream", "count_rows", "scanning_cursor", "scanning_files", "use_threads"]

T = TypeVar("T")

_BATCH_ROWS = 2**15
_WIDE_BYTES = 32
_worker = Worker()
"""For scans of the main thread, one batch after the other."""


class _Database:
    """DuckDB as scans use it: a cursor costs little, a database for each scan would cost more than a small one."""

    def __init__(self, limits: Limits) -> None:
        self.files = VirtualFileSystem()
        self.connection = new_database(limits)
        self.connection.register_filesystem(self.files)
        # Conditions are text that somebody wrote, and scans read virtual files alone.
        self.connection.execute(f"SET allowed_directories = ['{PROTOCOL}://']")
        self.connection.execute("SET enable_external_access = false")


class _Shared:
    """The database that all scans of this process share whose limits are the same.

    A forked child has no threads of it, and makes another.
    """

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._databases: dict[Limits, _Database] = {}
        forking.register(self)

    def get(self, limits: Limits) -> _Database:
        with self._guard:
            if limits not in self._databases:
                self._databases[limits] = _Database(limits)
            return self._databases[limits]

    def close(self) -> None:
        for database in self._databases.values():
            database.connection.close()
        self._databases = {}

    def after_fork(self) -> None:
        immortal.abandon(*self._databases.values())
        self._databases, self._guard = {}, threading.Lock()


_shared = _Shared()
# The database is closed before Python takes away what it needs for that.
atexit.register(_shared.close)


def _database(limits: Limits = NO_LIMITS) -> _Database:
    return _shared.get(limits)


@contextmanager
def scanning_cursor() -> Iterator[duckdb.DuckDBPyConnection]:
    """A cursor whose time zone is UTC, while the block lasts."""
    with heeding_ctrl_c(), forking.working(), _database().connection.cursor() as cursor:
        yield cursor


def scanning_files() -> VirtualFileSystem:
    """The virtual files of the scans that are running in this process."""
    return _database().files


def use_threads(count: int) -> None:
    """Let scans of this process decode on so many threads, from now on."""
    _database().connection.execute(f"SET GLOBAL threads = {int(count)}")


class RowStream:
    """The rows of a selection. Iterate over it once, or close it; the version is held until then."""

    def __init__(self, selection: Selection, context: ReadContext) -> None:
        with heeding_ctrl_c():
            self._opened = opened = _Opened(selection, context)
            try:
                with opened.errors_told(), forking.working():
                    query = opened.cursor.sql(opened.sql())
                    self._batches = opened.run(lambda: query.to_arrow_reader(_BATCH_ROWS))
            except BaseException:
                opened.close()
                raise
        found = self._batches.schema
        self.schema = pa.schema(
            [(each.name, _reachable(has.type, each.type)) for has, each in zip(found, selection.schema, strict=True)]
        )

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        try:
            while (batch := self._next()) is not None:
                if batch.num_rows:
                    yield batch if batch.schema == self.schema else _conformed(batch, self.schema)
        finally:
            self.close()

    def _next(self) -> pa.RecordBatch | None:
        """The next batch; None at the end, once it is certain that what was read is what was planned with."""
        with self._opened.errors_told():
            batch: pa.RecordBatch | None = self._opened.run(lambda: next(self._batches, None))
            if batch is None:
                self._opened.finish()
            return batch

    def reader(self) -> pa.RecordBatchReader:
        """Return the stream as a reader, which others can take over by Arrow's C interface."""
        return pa.RecordBatchReader.from_batches(self.schema, iter(self))

    def close(self) -> None:
        """Let go of files and of the version."""
        self._opened.close()


def count_rows(selection: Selection, context: ReadContext) -> int:
    """Count the rows of a selection; without a condition that is known before anything is read."""
    with heeding_ctrl_c():
        opened = _Opened(selection.counting(), context)
        try:
            with opened.errors_told():
                if selection.where is None and selection.pruned_by is None:
                    return opened.plan.rows
                query = opened.sql(count=True)
                found: int = opened.run(lambda: opened.cursor.execute(query).fetchall()[0][0])
                opened.finish()
                return found
        finally:
            opened.close()


class _Opened:
    """A selection that is planned, and whose virtual files are served, until it is closed."""

    def __init__(self, selection: Selection, context: ReadContext) -> None:
        self._selection = selection
        self._stack = ExitStack()
        self._readers: list[VirtualReader] = []
        self._is_forked = False
        forking.register(self)
        try:
            self._open(selection, context)
        except BaseException:
            self.close()
            raise

    def _open(self, selection: Selection, context: ReadContext) -> None:
        database, enter = _database(context.limits), self._stack.enter_context
        hold = selection.relation.hold
        self._hold = None if hold is None else enter(hold())
        self.cursor: duckdb.DuckDBPyConnection = enter(database.connection.cursor())
        if self._hold is not None:
            self._hold.on_close(self.cursor.interrupt)
        with self.errors_told(), forking.working():
            self.plan: ScanPlan = selection.relation.plan(selection.question(self.cursor))
        self._readers = [enter(VirtualReader(each, context)) for each in self.plan.virtual]
        self._paths = [enter(database.files.serving(reader)) for reader in self._readers]
        # The query ends before its files do.
        self._stack.callback(self.cursor.close)

    def run(self, work: Callable[[], T]) -> T:
        """Do some work of the cursor; Ctrl-C ends it, and so does closing the lake."""
        if self._is_forked:
            raise Closed(
                f"scan of {self._selection.name!r}: it was begun by the process that forked this one; scan again"
            )
        if self._hold is not None:
            self._hold.check_open()
        with forking.working():
            return _worker.run(self.cursor, work)

    def after_fork(self) -> None:
        """Leave the query to the parent, in a forked child."""
        self._is_forked = True
        immortal.abandon(self._stack.pop_all())

    def sql(self, *, count: bool = False) -> str:
        """The query, of the rows or of their number."""
        return self._selection.sql(self.cursor, self.plan, self._paths, count=count)

    def finish(self) -> None:
        """Make sure that what was read is what was planned with."""
        for reader in self._readers:
            reader.finish()

    @contextmanager
    def errors_told(self) -> Iterator[None]:
        """For a block in which DuckDB works: what goes wrong there is said in our own words."""
        try:
            yield
        except Exception as error:
            told = self.told(error)
            if told is None:
                raise
            raise told from error

    def told(self, error: Exception) -> WindrowError | None:
        """Return what an error really is; None where it is that already."""
        if isinstance(error, Closed):
            return None
        if self._hold is not None:
            # Whatever a scan met whose lake was closed, this is why.
            self._hold.check_open()
        failure = next((each.failure for each in self._readers if each.failure is not None), None)
        found = error if isinstance(error, WindrowError) else failure
        if isinstance(found, NotFound | StorageError) and self._hold is not None:
            # What is missing is no damage when its version is not kept any more.
            self._hold.check()
        if found is None and isinstance(error, duckdb.Error | pa.ArrowException | OSError):
            problem = str(error).partition("\n\nLINE")[0]
            found = InvalidInput(f"scan of {self._selection.name!r} failed: {problem}")
        return None if found is error else found

    def close(self) -> None:
        """Let go of everything; doing it twice is fine."""
        self._stack.close()

    def __del__(self) -> None:
        # A stream that nobody read to its end; the database may be gone with the process.
        with suppress(Exception):
            self.close()


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
