"""Names of a query: what it wants of each, and views of DuckDB over the sources of their rows, from query to query.

A view reads from a path that stays the same; which virtual file is found there is another matter in every query. So
a table that is read again needs no new view, unless other columns of it are wanted. Rows that are decoded before DuckDB
runs are in a slot, from which the view reads.
"""

from __future__ import annotations

import itertools
from collections import OrderedDict
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

import duckdb
import pyarrow as pa

from windrow.bounded import BoundedCache
from windrow.engines.duckdb.constants import Constants
from windrow.engines.duckdb.filesystem import VirtualFileSystem
from windrow.engines.duckdb.relations import Relation, rows_sql, source_sql
from windrow.engines.duckdb.request import Request
from windrow.errors import InvalidInput
from windrow.model.predicate import Predicate
from windrow.model.sources import SourceKind
from windrow.questions.aggregates import aggregates_of
from windrow.questions.conditions import all_of
from windrow.questions.naming import Naming, Newest, NewestBuckets, Question
from windrow.questions.newest import NewestShape, newest_shape
from windrow.questions.newest_buckets import BucketShape, bucket_shape
from windrow.questions.prepared import Need, Needs, prepared_need
from windrow.questions.references import needed_rows
from windrow.questions.spelling import sql_name
from windrow.reading.source import DecodedRows, MetadataAnswer, PlainPaths, Source, VirtualFiles
from windrow.reading.virtual_reader import VirtualReader

__all__ = ["Bound", "Narrow", "Views", "questions_of"]

_MOST_VIEWS = 64
_numbers = itertools.count(1)


class _Slot:
    """Where a view finds the rows of the query that is running; its columns stay the same."""

    def __init__(self, name: str, table: pa.Table) -> None:
        self.name = name
        self.schema = table.schema
        self.table: pa.Table | None = table

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        if self.table is None:
            raise InvalidInput("a view reads a table of the lake that the query does not name; name the table itself")
        return self.table.__arrow_c_stream__(requested_schema)


@dataclass(frozen=True, slots=True)
class Bound:
    """A name of a query, what is wanted of it, where that comes from, and who reads it."""

    name: str
    relation: Relation
    question: Question
    source: Source
    readers: Sequence[VirtualReader | PlainPaths] = ()


class Views:
    """The views of one connection."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, files: VirtualFileSystem) -> None:
        self._connection = connection
        self._files = files
        self._number = next(_numbers)
        self._slots: OrderedDict[tuple[int, pa.Schema], _Slot] = OrderedDict()
        self._made: OrderedDict[str, str] = OrderedDict()
        self._places: dict[str, int] = {}
        self._texts: BoundedCache[tuple[Any, ...], str] = BoundedCache("texts of views", _MOST_VIEWS)

    def bind(self, stack: ExitStack, bound: Bound) -> Bound:
        """Make sure of the view of a name; what it reads is there until the stack is closed."""
        place, source = self._places.setdefault(bound.name, len(self._places)), bound.source
        match source:
            case DecodedRows():
                slot = self._fill(stack, place, source.rows.table)
                self._define(bound, [[slot.name]], is_slot=True)
                return bound
            case PlainPaths():
                self._define(bound, source.paths)
                return replace(bound, readers=[source])
            case VirtualFiles():
                readers = [stack.enter_context(reader) for reader in source.readers()]
                self._define(bound, [[self._serve(stack, place, *each)] for each in enumerate(readers)])
                return replace(bound, readers=readers)
            case MetadataAnswer():
                self._define(bound, [])
                return bound

    def _fill(self, stack: ExitStack, place: int, table: pa.Table) -> _Slot:
        """Put rows into the slot for their columns until the stack is closed."""
        key = place, table.schema
        if key not in self._slots:
            slot = _Slot(f"windrow rows {next(_numbers)}", table)
            self._connection.register(slot.name, slot)
            # Ctrl-C may come between two lines: what is recorded is there.
            self._slots[key] = slot
            if len(self._slots) > _MOST_VIEWS:
                # Views may read from the slot that goes.
                self.drop({name.lower() for name in self._made})
                self._connection.unregister(self._slots.popitem(last=False)[1].name)
        slot = self._slots[key]
        self._slots.move_to_end(key)
        slot.table = table
        stack.callback(setattr, slot, "table", None)
        return slot

    def drop(self, names: Collection[str]) -> None:
        """Forget views that would stand in for something else of their name, and those beyond the most."""
        others = [name for name in self._made if name.lower() in names]
        others += list(self._made)[: max(len(self._made) - len(others) - _MOST_VIEWS, 0)]
        for name in dict.fromkeys(others):
            # Ctrl-C may come between two lines: a view of unknown state is made anew.
            self._made[name] = ""
            self._connection.execute(f"DROP VIEW IF EXISTS {sql_name(name)}")
            del self._made[name]

    def forget(self) -> None:
        """Nothing is known of the views any more: what was done was undone."""
        self._made.clear()
        self._slots.clear()

    def _define(self, bound: Bound, paths: Sequence[Sequence[str]], *, is_slot: bool = False) -> None:
        name, text = bound.name, self._text(bound, paths, is_slot=is_slot)
        if self._made.get(name) != text:
            self._made[name] = ""
            self._connection.execute(f"CREATE OR REPLACE TEMP VIEW {sql_name(name)} AS {text}")
            self._made[name] = text
        self._made.move_to_end(name)

    def _text(self, bound: Bound, paths: Sequence[Sequence[str]], *, is_slot: bool) -> str:
        """What a view selects; the same for the same columns, schemas, epochs and paths, or slot."""
        relation, virtual = bound.relation, bound.source.plan.virtual
        key = (relation, *[(each.schema, each.epoch) for each in virtual], *map(tuple, paths))

        def text() -> str:
            if is_slot:
                return source_sql(self._connection, relation, virtual, f"FROM {sql_name(paths[0][0])}")
            return rows_sql(self._connection, relation, virtual, paths)

        return self._texts.get_or_make(key, text)

    def _serve(self, stack: ExitStack, place: int, number: int, reader: VirtualReader) -> str:
        """The path under which DuckDB finds a virtual file."""
        return stack.enter_context(self._files.serving(reader, f"{self._number}-{place}-{number}.parquet"))


@dataclass(frozen=True, slots=True, eq=False)
class Narrow:
    """A relation as one query sees it."""

    relation: Relation
    """With those columns alone that the query can mean."""
    plain_columns: pa.Schema
    """The columns that no row has in a map too."""
    is_fine: bool
    """Whether there are times of nanoseconds among all of its columns."""


def questions_of(
    constants: Constants,
    request: Request,
    naming: Naming,
    narrow: Mapping[str, Narrow],
    allowed: Collection[SourceKind],
) -> dict[str, Question]:
    """What a query wants of each relation."""
    questions = _needed_questions(constants, request, naming, narrow, allowed)
    if len(narrow) == 1 and naming.tree is not None and request.pruned_by is None:
        [(name, each)] = narrow.items()
        newest = None if questions[name].aggregates else _newest(constants, naming, name, each)
        questions[name] = questions[name] if newest is None else replace(questions[name], newest=newest)
    return questions


def _newest(constants: Constants, naming: Naming, name: str, narrow: Narrow) -> Newest | NewestBuckets | None:
    """Which newest rows are enough for a query of one table; None where it needs others."""
    timestamp = narrow.relation.timestamp
    if narrow.relation.newest is None or timestamp is None:
        return None
    key = NewestShape, narrow
    if key not in naming.prepared:
        find = newest_shape, bucket_shape
        shapes = [each(naming, name, narrow.plain_columns, timestamp) for each in find]
        naming.prepared[key] = shapes[0] or shapes[1]
    shape: NewestShape | BucketShape | None = naming.prepared[key]
    try:
        return None if shape is None else shape.newest(constants)
    except duckdb.Error:
        constants.end(commit=False)
        return None


def _needed_questions(
    constants: Constants,
    request: Request,
    naming: Naming,
    narrow: Mapping[str, Narrow],
    allowed: Collection[SourceKind],
) -> dict[str, Question]:
    """What a query wants of each relation, whatever times its rows have."""
    columns = {name: tuple(each.relation.columns.names) for name, each in narrow.items()}
    needed: dict[str, Predicate | None] = {}
    try:
        if naming.counts_only and SourceKind.METADATA in allowed and not request.parameters and not request.pruned_by:
            schemas = {name: each.plain_columns for name, each in narrow.items()}
            aggregates = aggregates_of(naming.tree, schemas, constants)
            if aggregates is not None:
                name, question = aggregates
                return {name: replace(question, columns=columns[name])}
        if naming.tree is not None:
            needed = _needed(constants, request, naming, narrow)
    except duckdb.Error:
        # A constant without a value: the query itself will say so, if it ever comes to need it.
        constants.end(commit=False)
    if request.pruned_by is not None:
        needed = {name: all_of([needed.get(name), request.pruned_by]) for name in narrow}
    return {name: Question(columns[name], needed.get(name)) for name in narrow}


def _needed(
    constants: Constants, request: Request, naming: Naming, narrow: Mapping[str, Narrow]
) -> dict[str, Predicate | None]:
    """Which rows of each relation can matter; names that rows may keep in a map tell nothing."""
    if len(narrow) == 1:
        [(name, each)] = narrow.items()
        need = _prepared(naming, name, each)
        if need is not None:
            return {name: need(constants)}
    schemas = {name: each.plain_columns for name, each in narrow.items()}
    before: Needs | None = naming.prepared.get(Needs)
    if before is not None and before.are_of(request.query, schemas):
        return before.needs
    needs = needed_rows(naming, schemas, constants)
    if not constants.is_open and not request.parameters:
        naming.prepared[Needs] = Needs(request.query, schemas, needs)
    return needs


def _prepared(naming: Naming, name: str, narrow: Narrow) -> Need | None:
    """What was compiled of a query for the columns of its only table."""
    if narrow not in naming.prepared:
        naming.prepared.clear()
        naming.prepared[narrow] = prepared_need(naming, name, narrow.plain_columns)
    need: Need | None = naming.prepared[narrow]
    return need
