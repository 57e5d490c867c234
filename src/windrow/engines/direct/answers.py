"""Answers without the engine: files that SQLite lists are read by DuckDB as they are.

What it buys: the first answer of a process. The engine of a lake plans by sidecars and reads through virtual files,
which takes numpy, pyarrow, sqlglot and some hundred modules; to load them costs more CPU than a small answer. So the
first queries of a process go this way, if they are plain and their table is: one SELECT from one local table, whose
rows are in files of Windrow's own and of one schema. `Unusual` is the way out at every step, and the engine
answers then; it is what tests compare with.

DuckDB leaves out rows by the bounds in Parquet footers, where bounds of floats pass over NaN. So no such bound may
matter: the optimizer that draws conclusions from them is off, and no row may be left out by a float.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb

from windrow import forking
from windrow.engines.direct.catalog import Catalog, File, Table, Unusual
from windrow.engines.direct.rows import DirectRows
from windrow.engines.direct.words import Words, parse_words
from windrow.engines.duckdb.database import spilling_database
from windrow.engines.duckdb.interrupting import Worker, heeding_ctrl_c
from windrow.model.limits import NO_LIMITS, Limits

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["DirectAnswers"]

_MOST_ANSWERS = 4
"""Of one lake: for more of them loading the engine pays."""
_MOST_FILES = 2_000
_MOST_ROWS = 5_000_000
"""Of a table, where its rows themselves are the answer."""
_FEW_ROWS = 1_000
_TYPES = {
    **{f"{sign}int{bits}": f"{sign}{name}" for sign in ("", "u") for bits, name in ((8, "tinyint"), (16, "smallint"))},
    **{f"{sign}int{bits}": f"{sign}{name}" for sign in ("", "u") for bits, name in ((32, "integer"), (64, "bigint"))},
    "float": "float",
    "double": "double",
    "string": "varchar",
    "bool": "boolean",
    "date32[day]": "date",
    "timestamp[us]": "timestamp",
    "timestamp[us, tz=UTC]": "timestamptz",
}
"""Types of columns that DuckDB reads as the engine does."""
_FLOATS = ("float", "double")
_TIMES = ("timestamp", "timestamptz")
_ARROW = {
    "TINYINT": "int8",
    "SMALLINT": "int16",
    "INTEGER": "int32",
    "BIGINT": "int64",
    "UTINYINT": "uint8",
    "USMALLINT": "uint16",
    "UINTEGER": "uint32",
    "UBIGINT": "uint64",
    "FLOAT": "float32",
    "DOUBLE": "float64",
    "VARCHAR": "string",
    "BOOLEAN": "bool_",
}
"""Types of answers whose values are the same in Python, whether they come by way of Arrow or not."""


class DirectAnswers:
    """The first answers of a local lake; None is one that the engine has to give."""

    def __init__(self, catalog: Catalog, limits: Limits) -> None:
        self._catalog = catalog
        self._limits = limits
        self._left = _MOST_ANSWERS
        self._lock = threading.Lock()
        self._running: duckdb.DuckDBPyConnection | None = None
        self._is_closed = False
        forking.register(self)

    @classmethod
    def of(cls, folder: Path, limits: Limits = NO_LIMITS) -> DirectAnswers | None:
        """The answers of the lake in a folder; None where it is not whole, or not a plain one."""
        try:
            catalog = Catalog(folder)
            with catalog.opened():
                return cls(catalog, limits)
        except Unusual:
            return None

    def after_fork(self) -> None:
        """Leave everything to the engine, in a forked child."""
        self._left, self._running, self._lock = 0, None, threading.Lock()

    def answer(self, query: str) -> DirectRows | pa.Table | None:
        """Answer a query; whatever is wrong with it, the engine says so."""
        if not self._lock.acquire(blocking=False):
            return None
        try:
            if self._is_closed or self._left <= 0:
                return None
            self._left -= 1
            with heeding_ctrl_c(), forking.working(), spilling_database(self._limits) as connection:
                self._running = connection
                return self._answered(connection, query)
        except (Unusual, duckdb.Error):
            self._left = 0
            return None
        finally:
            self._running = None
            self._lock.release()

    def close(self) -> None:
        """End a query that is running."""
        self._is_closed = True
        running = self._running
        if running is not None:
            try:
                running.interrupt()
            except duckdb.Error:
                return

    def _answered(self, connection: duckdb.DuckDBPyConnection, query: str) -> DirectRows | pa.Table | None:
        serialized = connection.execute("select json_serialize_sql(?::varchar)", [query]).fetchall()[0][0]
        words = parse_words(serialized)
        if words is None:
            raise Unusual
        with self._catalog.opened() as catalog, catalog.pinned(words.table) as table:
            types = _types(table, words)
            files = catalog.files(table, _span(connection, table, types, words), _MOST_FILES)
            if not files or (not words.makes_few and sum(file.rows for file in files) > _MOST_ROWS):
                raise Unusual
            connection.execute("SET GLOBAL disabled_optimizers = 'statistics_propagation'")
            connection.execute(_view(table, types, "WHERE false"))
            described = connection.sql(query)
            names, kinds = described.columns, [_ARROW.get(str(each), "") for each in described.types]
            _read(connection, table, types, files)
            worker = Worker()
            try:
                answer = worker.run(connection, lambda: _fetched(connection, query, names, kinds))
            finally:
                worker.close()
            catalog.count_query(table, {file.window for file in files if file.window is not None})
        return answer


def _types(table: Table, words: Words) -> dict[str, str]:
    """The columns as DuckDB has them, if the query means them and nothing else."""
    types = {name: _TYPES.get(kind, "") for name, kind in table.columns.items()}
    names = {name.lower() for name in types}
    floats = frozenset(name.lower() for name, kind in types.items() if kind in _FLOATS)
    is_clear = words.filters <= names and not words.filters & words.aliases and len(names) == len(types)
    if not types or "" in types.values() or not is_clear or words.may_use_bounds_of(floats):
        raise Unusual
    return types


def _span(
    connection: duckdb.DuckDBPyConnection, table: Table, types: dict[str, str], words: Words
) -> tuple[int | None, int | None]:
    """The microseconds that rows must lie in."""
    own = types.get(table.timestamp)
    if own not in _TIMES:
        return None, None

    def moment(text: str, kind: str) -> int | None:
        sql = f"SELECT epoch_us(CAST(CAST(? AS {kind or own}) AS TIMESTAMPTZ))"
        at: int | None = connection.execute(sql, [text]).fetchall()[0][0]
        return at

    return words.span(table.timestamp, moment)


def _read(connection: duckdb.DuckDBPyConnection, table: Table, types: dict[str, str], files: Sequence[File]) -> None:
    """Let the name of a table stand for its rows in some files."""
    paths = ", ".join(_quoted(file.path, "'") for file in files)
    source = f"FROM system.main.read_parquet([{paths}], union_by_name = {len(files) > 1}, hive_partitioning = false)"
    try:
        connection.execute(_view(table, types, source))
    except duckdb.BinderException:
        # A column is in none of these files.
        nothing = _selected(types, "WHERE false")
        connection.execute(_view(table, types, f"FROM (SELECT * {source} UNION ALL BY NAME {nothing})"))


def _view(table: Table, types: dict[str, str], source: str) -> str:
    return f"CREATE OR REPLACE TEMP VIEW {_quoted(table.name)} AS {_selected(types, source)}"


def _selected(types: dict[str, str], source: str) -> str:
    """All columns with their types, empty ones where there is no source."""
    has_rows = source.startswith("FROM")
    columns = [
        f"CAST({_quoted(name) if has_rows else 'NULL'} AS {kind}) AS {_quoted(name)}" for name, kind in types.items()
    ]
    return f"SELECT {', '.join(columns)} {source}"


def _quoted(text: str, mark: str = '"') -> str:
    return f"{mark}{text.replace(mark, mark * 2)}{mark}"


def _fetched(
    connection: duckdb.DuckDBPyConnection, query: str, names: Sequence[str], kinds: Sequence[str]
) -> DirectRows | pa.Table:
    """All rows: as they are where they are few and plain, else as Arrow."""
    if len(set(names)) < len(names):
        raise Unusual
    rows = connection.execute(query).fetchmany(_FEW_ROWS + 1) if all(kinds) else []
    if all(kinds) and len(rows) <= _FEW_ROWS:
        return DirectRows(names, kinds, rows)
    return connection.sql(query).to_arrow_table()
