"""What a name in a query stands for, and the SQL by which DuckDB reads it from virtual files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import duckdb
import pyarrow as pa

from windrow.engines.duckdb.old_values import new_value
from windrow.engines.newest_plans import NarrowedPlan
from windrow.learning.log import ScannedRelation
from windrow.model.epochs import OldColumn, OldColumns
from windrow.model.predicate import Predicate
from windrow.planning.scan_plan import ScanPlan
from windrow.planning.virtual_file import VirtualFile
from windrow.planning.virtual_schema import arrow_of
from windrow.questions.naming import Naming, Question
from windrow.questions.spelling import sql_name, sql_text
from windrow.reading.pins import Hold
from windrow.statistics.cached_statistics import CachedStatistics

__all__ = ["Relation", "duckdb_types", "found_columns", "rows_sql", "source_sql"]


_READ_PARQUET = "system.main.read_parquet"
"""DuckDB's own function, whatever a macro of that name does."""


@dataclass(frozen=True, slots=True, eq=False)
class Relation:
    """What a name in a query stands for: columns, and the plan of a question, which may have its answer already."""

    columns: pa.Schema
    plan: Callable[[Question], ScanPlan]
    attributes: Mapping[str, str] = field(default_factory=dict)
    """Names that rows may keep in a column of maps instead of one of their own, and the name of that column."""
    forget: Callable[[], None] = lambda: None
    """Called when a file turned out to be replaced, before everything is planned anew."""
    release: Callable[[], None] | None = None
    """Called when a query of it has ended, to let go of files."""
    hold: Callable[[], Hold] | None = None
    """Holds the version that is read, for as long as it is; None where there are no versions."""
    labels: Callable[[str, Predicate | None], list[str]] | None = None
    """Gives values of a column of text that metadata is certain of, in rows that fulfil a predicate."""
    explain: Callable[[Question], ScanPlan] | None = None
    """As `plan`, and counts too how much there was to begin with."""
    old: OldColumns = field(default_factory=dict)
    """By schema epoch: columns that files of that epoch have with another type, and how these are read."""
    wide: Mapping[str, pa.DataType] = field(default_factory=dict)
    """Decimals of more digits than DuckDB has: bytes to DuckDB, highest first, and their types."""
    statistics: CachedStatistics | None = None
    """What queries left behind about its columns, for the order of joins; None where nothing is collected."""
    primary_key: tuple[str, ...] = ()
    """The columns that its owner says tell rows apart."""
    timestamp: str | None = None
    """The column of times, by which `newest` finds rows."""
    newest: Callable[[Question], NarrowedPlan | None] | None = None
    """Plans a question about newest rows; where it gives None, `plan` does."""
    scanned: ScannedRelation | None = None
    """Where queries report what they read of its files; None where nothing is learnt of them."""

    def narrowed(self, naming: Naming) -> Relation:
        """The same with those columns alone that a query can mean."""
        attributes = {name: place for name, place in self.attributes.items() if naming.refers_to(name)}
        maps = {*attributes.values(), *self._old_maps(naming)}
        named = [name for name in self.columns.names if naming.refers_to(name) or name in maps]
        # Rows without any column could not be counted.
        chosen = named or self.columns.names[:1]
        return replace(self, columns=pa.schema([self.columns.field(name) for name in chosen]), attributes=attributes)

    def _old_maps(self, naming: Naming) -> Iterator[str]:
        """Columns of maps that values of earlier epochs may be in."""
        for columns in self.old.values():
            yield from (each.residual for name, each in columns.items() if each.residual and naming.refers_to(name))

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
    cursor: duckdb.DuckDBPyConnection,
    relation: Relation,
    virtual: Sequence[VirtualFile],
    paths: Sequence[Sequence[str]],
) -> str:
    """The query that gives the rows of a relation out of virtual files, each of which is served under some paths."""
    epochs: dict[int | None, list[tuple[VirtualFile, Sequence[str]]]] = {}
    for each, served in zip(virtual, paths, strict=True):
        epochs.setdefault(each.epoch, []).append((each, served))
    parts = [
        source_sql(
            cursor, relation, [each for each, _ in some], _files([path for _, served in some for path in served])
        )
        for some in epochs.values()
    ]
    return " UNION ALL ".join(parts) or source_sql(cursor, relation, [], "WHERE false")


def _files(paths: Sequence[str]) -> str:
    # Folders of a table are named after tenants and windows, which are no columns.
    options = f"union_by_name = {len(paths) > 1}, hive_partitioning = false"
    return f"FROM {_READ_PARQUET}([{', '.join(map(sql_text, paths))}], {options})"


def source_sql(
    cursor: duckdb.DuckDBPyConnection, relation: Relation, virtual: Sequence[VirtualFile], source: str
) -> str:
    """The query that gives the rows of a relation out of a source with the columns of virtual files of one epoch."""
    epoch = virtual[0].epoch if virtual else None
    found = found_columns(virtual)
    if epoch is None:
        typed = _typed(cursor, relation.columns, found)
        return f"SELECT {', '.join(_expressions(relation, relation.attributes))} FROM (SELECT {typed} {source})"
    old = {name: each for name, each in relation.old[epoch].items() if name in relation.columns.names}
    columns = pa.schema(
        [each.with_type(old[each.name].type) if each.name in old else each for each in relation.columns]
    )
    maps = {name: each.residual for name, each in old.items() if each.residual}
    rows = f"SELECT {_typed(cursor, columns, found)} {source}"
    for taken in _steps(cursor, relation.columns, old, maps):
        rows = f"SELECT {', '.join(taken)} FROM ({rows})"
    # What an earlier epoch kept in a map under the name of a changed column was looked up already, if it is the same.
    attributes = {name: place for name, place in relation.attributes.items() if name not in old}
    return f"SELECT {', '.join(_expressions(relation, attributes))} FROM ({rows})"


def _steps(
    cursor: duckdb.DuckDBPyConnection, columns: pa.Schema, old: Mapping[str, OldColumn], maps: Mapping[str, str]
) -> Iterator[list[str]]:
    """Yield what is selected in each step on the way from an earlier epoch to the newest."""
    names = columns.names
    looked_up = {name: f"coalesce({sql_name(name)}, {_entry(place, name)})" for name, place in maps.items()}
    if looked_up:
        yield _selected(names, looked_up)
    for place in range(max((len(each.steps) for each in old.values()), default=0)):
        values = {}
        for name, each in old.items():
            if place < len(each.steps):
                rule, after = each.steps[place]
                before = each.type if place == 0 else each.steps[place - 1][1]
                spelled = duckdb_types(cursor, pa.schema([("before", before), ("after", after)]))
                values[name] = new_value(name, (before, spelled[0]), (after, spelled[1]), rule)
        yield _selected(names, values)
    read = {name: each.readings for name, each in old.items() if each.readings}
    for place in range(max(map(len, read.values()), default=0)):
        yield _selected(names, {name: readings[place] for name, readings in read.items() if place < len(readings)})
    if read:
        types = duckdb_types(cursor, pa.schema([columns.field(name) for name in read]))
        yield _selected(
            names, {name: f"CAST({sql_name(name)} AS {kind})" for name, kind in zip(read, types, strict=True)}
        )


def _selected(names: Sequence[str], values: Mapping[str, str]) -> list[str]:
    return [f"{values[name]} AS {sql_name(name)}" if name in values else sql_name(name) for name in names]


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


def _expressions(relation: Relation, attributes: Mapping[str, str]) -> Iterator[str]:
    """Yield what each column is; one that rows may keep in a map too is looked up in both places."""
    for column in relation.columns.names:
        place = attributes.get(column)
        name = sql_name(column)
        yield name if place is None else f"coalesce({name}, {_entry(place, column)}) AS {name}"
    for name in relation.extra_names:
        yield f"{_entry(relation.attributes[name], name)} AS {sql_name(name)}"


def _entry(column: str, key: str) -> str:
    return f"{sql_name(column)}[{sql_text(key)}]"
