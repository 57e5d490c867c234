"""Names of a query as views of DuckDB over virtual files, kept from query to query.

A view reads from a path that stays the same; which virtual file is found there is another matter in every query. So
a table that is asked again needs no new view, unless other columns of it are asked for.
"""

from __future__ import annotations

import itertools
from collections import OrderedDict
from collections.abc import Collection, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import duckdb

from windrow.engines.filesystem import VirtualFileSystem
from windrow.engines.relations import Relation, rows_sql
from windrow.model.predicate import Predicate
from windrow.scan.context import ReadContext
from windrow.scan.plain import PlainFiles, plain_files
from windrow.scan.plan import ScanPlan
from windrow.scan.reading import VirtualReader
from windrow.scan.spelling import sql_name
from windrow.scan.virtual import VirtualFile

__all__ = ["Bound", "Views"]

_MOST_VIEWS = 64
_numbers = itertools.count(1)


@dataclass(frozen=True, slots=True)
class Bound:
    """A name of a query, what is read for it, and by whom."""

    name: str
    relation: Relation
    plan: ScanPlan
    readers: Sequence[VirtualReader | PlainFiles]
    needed: Predicate | None = None
    """What is known of the rows that matter."""


class Views:
    """The views of one connection."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, files: VirtualFileSystem, context: ReadContext) -> None:
        self._connection = connection
        self._files = files
        self._context = context
        self._number = next(_numbers)
        self._made: OrderedDict[str, str] = OrderedDict()
        self._places: dict[str, int] = {}
        self._texts: OrderedDict[tuple[Any, ...], tuple[Any, str]] = OrderedDict()

    def bind(
        self, stack: ExitStack, name: str, relation: Relation, plan: ScanPlan, needed: Predicate | None = None
    ) -> Bound:
        """Make sure of the view of a name; its virtual files are served until the stack is closed."""
        place = self._places.setdefault(name, len(self._places))
        served = [self._serve(stack, f"{self._number}-{place}-{n}", each) for n, each in enumerate(plan.virtual)]
        self._define(name, self._text(relation, plan.virtual, [path for paths, _ in served for path in paths]))
        return Bound(name, relation, plan, [reader for _, reader in served], needed)

    def drop(self, names: Collection[str]) -> None:
        """Forget views that would stand in for something else of their name, and those beyond the most."""
        others = [name for name in self._made if name.lower() in names]
        others += list(self._made)[: max(len(self._made) - len(others) - _MOST_VIEWS, 0)]
        for name in dict.fromkeys(others):
            self._connection.execute(f"DROP VIEW IF EXISTS {sql_name(name)}")
            del self._made[name]

    @property
    def names(self) -> list[str]:
        """The names that have views."""
        return list(self._made)

    def forget(self) -> None:
        """Nothing is known of the views any more: what was done was undone."""
        self._made.clear()

    def _define(self, name: str, text: str) -> None:
        if self._made.get(name) != text:
            self._connection.execute(f"CREATE OR REPLACE TEMP VIEW {sql_name(name)} AS {text}")
            self._made[name] = text
        self._made.move_to_end(name)

    def _text(self, relation: Relation, virtual: Sequence[VirtualFile], paths: Sequence[str]) -> str:
        """What a view selects; the same for the same columns, schemas and paths."""
        key = (id(relation), *(id(each.schema) for each in virtual), *paths)
        known = self._texts.get(key)
        if known is None:
            text = rows_sql(self._connection, relation, virtual, paths)
            # What the ids belong to is held, so that nothing else gets them.
            known = self._texts[key] = (relation, [each.schema for each in virtual]), text
            while len(self._texts) > _MOST_VIEWS:
                self._texts.popitem(last=False)
        return known[1]

    def _serve(self, stack: ExitStack, name: str, virtual: VirtualFile) -> tuple[list[str], VirtualReader | PlainFiles]:
        """The paths under which DuckDB finds a virtual file, or the files that it is made of."""
        plain = plain_files(virtual, wanted=self._context.plain)
        if plain is not None:
            return plain
        reader = stack.enter_context(VirtualReader(virtual, self._context))
        return [stack.enter_context(self._files.serving(f"{name}.parquet", reader))], reader
