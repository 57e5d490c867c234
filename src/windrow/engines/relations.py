"""What a name in a query stands for, and the SQL by which DuckDB reads it from virtual files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import duckdb
import pyarrow as pa

from windrow.model.predicate import Predicate
from windrow.scan.aggregates import Asked
from windrow.scan.naming import Naming, Question
from windrow.scan.pins import Hold
from windrow.scan.plan import ScanPlan
from windrow.scan.schema import arrow_of
from windrow.scan.spelling import sql_name, sql_text
from windrow.scan.virtual import VirtualFile

__all__ = ["Relation", "duckdb_types", "found_columns", "rows_sql", "source_sql"]


_READ_PARQUET = "system.main.read_parquet"
"""DuckDB's own function, whatever a macro of that name does."""


@dataclass(frozen=True, slots=True)
class Relation:
    """What a name in a query stands for: columns, and a plan of what has to be read for a question."""

    columns: pa.Schema
    plan: Callable[[Question], ScanPlan]
    attributes: Mapping[str, str] = field(default_factory=dict)
    """Names that rows may keep in a column of maps instead of one of their own, and the name of that column."""
    forget: Callable[[], None] = lambda: None
    """Called when a file turned out to be replaced, before everything is planned anew."""
    hold: Callable[[], Hold] | None = None
    """Holds the version that is read, for as long as it is; None where there are no versions."""
    answer: Callable[[Asked], list[pa.Scalar] | None] | None = None
    """Gives what is asked without reading data, where metadata is certain of it."""
    known: Callable[[str, Predicate | None], list[str]] | None = None
    """Gives values of a column of text that metadata is certain of, in rows that fulfil a predicate."""
    explain: Callable[[Question], ScanPlan] | None = None
    """As `plan`, and counts too how much there was to begin with."""

    def narrowed(self, naming: Naming) -> Relation:
        """The same with those columns alone that a query can mean."""
        attributes = {name: place for name, place in self.attributes.items() if naming.means(name)}
        named = [name for name in self.columns.names if naming.means(name) or name in attributes.values()]
        # Rows without any column could not be counted.
        chosen = named or self.columns.names[:1]
        return replace(self, columns=pa.schema([self.columns.field(name) for name in chosen]), attributes=attributes)

    @property
    def plain_columns(self) -> pa.Schema:
        """The columns that hold all there is under their names: nothing is known of names that may be in a map."""
        return pa.schema([column for column in self.columns if column.name not in self.attributes])

    @property
    def extra_names(self) -> list[str]:
        """Names that rows keep in a map only; to DuckDB they are the same when they differ by case alone."""
        taken = {column.lower() for column in self.columns.names}
        found = []
        for name in sorted(self.attributes):
            if name.lower() not in taken:
                taken.add(name.lower())
                found.append(name)
        return found


def rows_sql(
    cursor: duckdb.DuckDBPyConnection, relation: Relation, virtual: Sequence[VirtualFile], paths: Sequence[str]
) -> str:
    """The query that gives the rows of a relation out of virtual files, which are served under paths."""
    # Folders of a table are named after tenants and windows, which are no columns.
    options = f"union_by_name = {len(paths) > 1}, hive_partitioning = false"
    files = f"FROM {_READ_PARQUET}([{', '.join(map(sql_text, paths))}], {options})"
    return source_sql(cursor, relation, virtual, files if paths else "WHERE false")


def source_sql(
    cursor: duckdb.DuckDBPyConnection, relation: Relation, virtual: Sequence[VirtualFile], source: str
) -> str:
    """The query that gives the rows of a relation out of a source with the columns that virtual files have."""
    typed = _typed(cursor, relation.columns, found_columns(virtual))
    return f"SELECT {', '.join(_expressions(relation))} FROM (SELECT {typed} {source})"


def found_columns(virtual: Sequence[VirtualFile]) -> dict[str, set[pa.DataType]]:
    """The columns that virtual files have, and their types there."""
    found: dict[str, set[pa.DataType]] = {}
    for each in virtual:
        for column in arrow_of(each.schema):
            found.setdefault(column.name, set()).add(column.type)
    return found


def _typed(cursor: duckdb.DuckDBPyConnection, columns: pa.Schema, found: Mapping[str, set[pa.DataType]]) -> str:
    """Each column with the type that it has in the table; files may have a narrower one, or lack it."""
    if all(found.get(column.name) == {column.type} for column in columns):
        return ", ".join(sql_name(column.name) for column in columns)
    types = duckdb_types(cursor, columns)
    return ", ".join(
        sql_name(column.name)
        if found.get(column.name) == {column.type}
        else f"CAST({sql_name(column.name) if column.name in found else 'NULL'} AS {kind}) AS {sql_name(column.name)}"
        for column, kind in zip(columns, types, strict=True)
    )


def duckdb_types(cursor: duckdb.DuckDBPyConnection, columns: pa.Schema) -> list[str]:
    """The types of columns, by the names that DuckDB has for them."""
    return [str(kind) for kind in cursor.from_arrow(pa.schema(map(_declared, columns)).empty_table()).types]


def _declared(column: pa.Field) -> pa.Field:
    """A column as DuckDB can be told of it: durations are counts in Parquet, and floats of 16 bits are read wider."""
    if pa.types.is_duration(column.type):
        return column.with_type(pa.int64())
    return column.with_type(pa.float32()) if pa.types.is_float16(column.type) else column


def _expressions(relation: Relation) -> Iterator[str]:
    """Yield what each column is; one that rows may keep in a map too is looked up in both places."""
    for column in relation.columns.names:
        place = relation.attributes.get(column)
        name = sql_name(column)
        yield name if place is None else f"coalesce({name}, {_entry(place, column)}) AS {name}"
    for name in relation.extra_names:
        yield f"{_entry(relation.attributes[name], name)} AS {sql_name(name)}"


def _entry(column: str, key: str) -> str:
    return f"{sql_name(column)}[{sql_text(key)}]"
