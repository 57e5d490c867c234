"""Names of a query as views of DuckDB over virtual files, or over the few rows of them, kept from query to query.

A view reads from a path that stays the same; which virtual file is found there is another matter in every query. So
a table that is asked again needs no new view, unless other columns of it are asked for. Where a plan is small, its rows
are gathered before DuckDB runs, and the view reads from a slot that holds them.
"""

from __future__ import annotations

import itertools
from collections import OrderedDict
from collections.abc import Collection, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

import duckdb
import pyarrow as pa

from windrow.bounded import BoundedCache
from windrow.cache import CacheKind, count_bypass
from windrow.engines.duckdb.filesystem import VirtualFileSystem
from windrow.engines.duckdb.relations import Relation, rows_sql, source_sql
from windrow.errors import InvalidInput
from windrow.model.predicate import Predicate
from windrow.planning.scan_plan import ScanPlan
from windrow.planning.virtual_file import VirtualFile
from windrow.questions.spelling import sql_name
from windrow.reading.gathering import Gathered, Gathering
from windrow.reading.plain_files import PlainFiles, plain_files
from windrow.reading.read_context import ReadContext
from windrow.reading.virtual_reader import ReadCounts, VirtualReader

__all__ = ["Bound", "Rows", "Views"]

_MOST_VIEWS = 64
_numbers = itertools.count(1)


class Rows:
    """Rows that were read before the query runs."""

    failure = None

    def __init__(self, counts: ReadCounts) -> None:
        self.counts = counts

    def finish(self) -> None:
        """Nothing: files that can change are not read so."""


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
    """A name of a query, what is read for it, and by whom."""

    name: str
    relation: Relation
    plan: ScanPlan
    needed: Predicate | None = None
    """What is known of the rows that matter."""
    gathered: Gathered | None = None
    """Its rows, where they are there before the query runs."""
    readers: Sequence[VirtualReader | PlainFiles | Rows] = ()


class Views:
    """The views of one connection, which may read files by their paths or not."""

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        files: VirtualFileSystem,
        context: ReadContext,
        *,
        reads_paths: bool = True,
    ) -> None:
        self._connection = connection
        self._reads_paths = reads_paths
        self._files = files
        self._context = context
        self._number = next(_numbers)
        self._gathering = None if context.decoded is None else Gathering(context.decoded)
        self._slots: OrderedDict[tuple[int, pa.Schema], _Slot] = OrderedDict()
        self._made: OrderedDict[str, str] = OrderedDict()
        self._places: dict[str, int] = {}
        self._texts: BoundedCache[tuple[Any, ...], str] = BoundedCache("texts of views", _MOST_VIEWS)

    def bind(self, stack: ExitStack, bound: Bound) -> Bound:
        """Make sure of the view of a name; what it reads is there until the stack is closed."""
        name, relation, plan, gathered = bound.name, bound.relation, bound.plan, bound.gathered
        place = self._places.setdefault(name, len(self._places))
        if gathered is not None:
            slot = self._fill(stack, place, gathered.table)
            self._define(name, self._text(relation, plan.virtual, [[slot.name]], is_slot=True))
            return replace(bound, readers=[Rows(gathered.counts)])
        served = [self._serve(stack, f"{self._number}-{place}-{n}", each) for n, each in enumerate(plan.virtual)]
        self._define(name, self._text(relation, plan.virtual, [paths for paths, _ in served]))
        return replace(bound, readers=[reader for _, reader in served])

    def gathered(self, plan: ScanPlan, needed: Predicate | None) -> Gathered | None:
        """The rows of a plan, where it is small; None where DuckDB has to read files."""
        if self._gathering is None or len(plan.virtual) != 1 or self._context.plain is not None:
            return None
        if plan.virtual[0].epoch is not None:
            # Values that are decoded here have the type that they had in their epoch.
            return None
        return self._gathering.gather(plan.virtual[0], needed)

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

    def _define(self, name: str, text: str) -> None:
        if self._made.get(name) != text:
            self._made[name] = ""
            self._connection.execute(f"CREATE OR REPLACE TEMP VIEW {sql_name(name)} AS {text}")
            self._made[name] = text
        self._made.move_to_end(name)

    def _text(
        self,
        relation: Relation,
        virtual: Sequence[VirtualFile],
        paths: Sequence[Sequence[str]],
        *,
        is_slot: bool = False,
    ) -> str:
        """What a view selects; the same for the same columns, schemas, epochs and paths, or slot."""
        key = (relation, *[(each.schema, each.epoch) for each in virtual], *map(tuple, paths))

        def text() -> str:
            if is_slot:
                return source_sql(self._connection, relation, virtual, f"FROM {sql_name(paths[0][0])}")
            return rows_sql(self._connection, relation, virtual, paths)

        return self._texts.get_or_make(key, text)

    def _serve(self, stack: ExitStack, name: str, virtual: VirtualFile) -> tuple[list[str], VirtualReader | PlainFiles]:
        """The paths under which DuckDB finds a virtual file, or the files that it is made of."""
        plain = plain_files(virtual, wanted=self._context.plain) if self._reads_paths else None
        if plain is not None:
            count_bypass(self._context.cache, CacheKind.DATA_FILE_FOOTER, len(plain[0]))
            return plain
        reader = stack.enter_context(VirtualReader(virtual, self._context))
        return [stack.enter_context(self._files.serving(reader, f"{name}.parquet"))], reader
