"""SQL on DuckDB: every table of the lake that a query names becomes a view over its visible splits."""

from __future__ import annotations

import itertools
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from windrow.errors import InvalidInput, NotFound
from windrow.storage import LocalStore, Store, is_foreign, local_path, reach

__all__ = ["Answer", "DuckDBEngine", "Relation"]


@dataclass(frozen=True, slots=True)
class Relation:
    """What a name in a query stands for: the columns of a table and the keys of its visible splits."""

    columns: pa.Schema
    keys: Sequence[str]
    attributes: Mapping[str, str] = field(default_factory=dict)
    """Names that rows may keep in a column of maps instead of one of their own, and the name of that column."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a query, held as Arrow."""

    table: pa.Table

    def arrow(self) -> pa.Table:
        """Return the answer as an Arrow table."""
        return self.table

    def to_dict(self) -> list[dict[str, Any]]:
        """Return one dictionary for each row."""
        rows: list[dict[str, Any]] = self.table.to_pylist()
        return rows

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.table.__arrow_c_stream__(requested_schema)

    def __len__(self) -> int:
        return int(self.table.num_rows)


class DuckDBEngine:
    """A kept connection; queries run one at a time. `options` open the stores of files outside of the lake."""

    def __init__(self, store: Store, options: Mapping[str, str] | None = None) -> None:
        self._store = store
        self._options = options
        self._lock = threading.Lock()
        self._connection = duckdb.connect(":memory:")
        self._connection.execute("SET TimeZone = 'UTC'")

    def sql(self, query: str, tables: Mapping[str, Callable[[], Relation]]) -> Answer:
        """Answer one query; every table of which the name is a word of the query can be named in it."""
        words = {word.lower() for word in re.findall(r"\w+", query)}
        with self._lock, self._connection.cursor() as cursor:
            for name, relation in tables.items():
                if name.lower() in words:
                    self._bind(cursor, name, relation())
            try:
                result = cursor.sql(query)
                if result is None:
                    raise InvalidInput("the query is empty; write a select")
                return Answer(_named_apart(result.to_arrow_table()))
            except duckdb.CatalogException as error:
                known = ", ".join(tables) or "none yet"
                raise NotFound(f"the query names what is not there: {error} Tables of the lake: {known}") from error
            except duckdb.Error as error:
                raise InvalidInput(f"the query failed: {error}") from error

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def _bind(self, cursor: duckdb.DuckDBPyConnection, name: str, relation: Relation) -> None:
        paths = [self._path(key) for key in relation.keys]
        if paths and None not in paths:
            files = ", ".join(_quoted(str(path)) for path in paths)
            rows = f"read_parquet([{files}], union_by_name = true, hive_partitioning = false)"
        else:
            rows = f"windrow_{name}"
            cursor.register(rows, self._fetched(relation))
        columns = ", ".join(_expressions(relation))
        cursor.execute(f'CREATE OR REPLACE TEMP VIEW "{name}" AS SELECT {columns} FROM {rows}')

    def _path(self, key: str) -> Path | None:
        """Return where DuckDB finds a file by itself."""
        if is_foreign(key):
            return local_path(key)
        return self._store.path(key) if isinstance(self._store, LocalStore) else None

    def _fetched(self, relation: Relation) -> pa.Table:
        """Read splits that DuckDB cannot reach by a path, if there are any."""
        places = [reach(self._store, key, self._options) for key in relation.keys]
        parts = [pq.read_table(pa.BufferReader(store.get(key))) for store, key in places]
        schema = relation.columns
        return pa.concat_tables([schema.empty_table(), *(_with_columns(part, schema) for part in parts)])


def _with_columns(part: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return the rows of a file with the columns and types of the table, which may be wider."""
    nulls = pa.nulls(part.num_rows)
    columns = [part[each.name] if each.name in part.column_names else nulls for each in schema]
    return pa.table([column.cast(each.type) for column, each in zip(columns, schema, strict=True)], schema=schema)


def _expressions(relation: Relation) -> Iterator[str]:
    """Yield what each column of the view is; one that rows may keep in a map too is looked up in both places."""
    rest = dict(relation.attributes)
    for column in relation.columns.names:
        place = rest.pop(column, None)
        yield (
            _name(column) if place is None else f"coalesce({_name(column)}, {_entry(place, column)}) AS {_name(column)}"
        )
    # Names are the same to DuckDB when they differ by case alone.
    taken = {column.lower() for column in relation.columns.names}
    for name, place in sorted(rest.items()):
        if name.lower() not in taken:
            taken.add(name.lower())
            yield f"{_entry(place, name)} AS {_name(name)}"


def _entry(column: str, key: str) -> str:
    return f"{_name(column)}[{_quoted(key)}]"


def _name(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def _named_apart(table: pa.Table) -> pa.Table:
    """Columns of one name would be one in a dictionary; the second becomes name_1, and so on."""
    names: list[str] = []
    for name in table.column_names:
        others = (f"{name}_{number}" for number in itertools.count(1))
        names.append(name if name not in names else next(other for other in others if other not in names))
    return table.rename_columns(names)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
