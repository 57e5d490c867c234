"""What answers the queries of one lake: its engine, its tables by name, and files and databases beside them.

A lake and all of its tables share it, with everything that is cached for queries. It starts when it is first needed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping

from windrow import forking, immortal
from windrow.context import Context
from windrow.engines.duckdb.callers import frames_named
from windrow.engines.duckdb.constants import Parameters
from windrow.engines.duckdb.engine import DuckDBEngine
from windrow.engines.duckdb.foreign_relations import ForeignRelations
from windrow.engines.duckdb.frames import as_tables
from windrow.engines.duckdb.named_tables import Tables
from windrow.engines.duckdb.questdb import snapshot_relation
from windrow.engines.duckdb.relations import Relation
from windrow.engines.duckdb.request import Request
from windrow.engines.duckdb.table_functions import DatabaseCall
from windrow.engines.lake_tables import LakeTables
from windrow.engines.table_relation import read_context
from windrow.errors import Closed, NotFound
from windrow.learning.log import ScannedRelation
from windrow.questdb.registry import database_folder, find_table, table_folder
from windrow.questdb.snapshot import open_snapshot

__all__ = ["LakeQueries", "queries_of"]


class _OneAtVersion:
    """The tables of a lake, of which one is at another version."""

    def __init__(self, tables: LakeTables, name: str, relation: Callable[[], Relation]) -> None:
        self._tables = tables
        self._name = name
        self._relation = relation

    @property
    def names(self) -> list[str]:
        """The names of all tables."""
        return self._tables.names

    def named(self, names: Iterable[str]) -> dict[str, Callable[[], Relation]]:
        """Return those of the names that are tables, and what they stand for."""
        matches = self._tables.named(names)
        return matches | {self._name: self._relation} if self._name in matches else matches


class LakeQueries:
    """The engine of a lake, and what the names in its queries stand for."""

    def __init__(self, context: Context, *, sidecars_beside: bool = False) -> None:
        self._context = context
        self._sidecars_beside = sidecars_beside
        self._is_closed = False
        self._begin()
        forking.register(self)

    def _begin(self) -> None:
        self.tables = LakeTables(self._context)
        self._starting = threading.Lock()
        self._engine: DuckDBEngine | None = None
        self._files: ForeignRelations | None = None

    def after_fork(self) -> None:
        """Start an engine of its own, in a forked child."""
        immortal.abandon(self._engine, self._files)
        self._begin()

    def engine(self) -> DuckDBEngine:
        """The engine, which is started when it is first needed; `Closed` when the lake was closed."""
        with self._starting:
            if self._is_closed:
                raise Closed(f"lake {self._context.url}: it was closed; connect again")
            if self._engine is None:
                self._engine = DuckDBEngine(read_context(self._context), sandbox=self._context.sandbox)
            return self._engine

    def request(
        self,
        query: str,
        params: Parameters,
        frames: Mapping[str, object] | None,
        at: tuple[str, Callable[[], Relation]] | None = None,
    ) -> Request:
        """A query over the tables of the lake; `at` is one of them, and what it stands for instead of its newest."""
        tables: Tables = self.tables if at is None else _OneAtVersion(self.tables, *at)
        given = as_tables(frames, tables.named(frames)) if frames else {}
        return Request(query, tables, self._foreign, self._database, params, given, frames_named)

    def relation(self, name: str) -> Relation:
        """What the name of a table, or the path or address of Parquet files, stands for; none such is `NotFound`."""
        table = self.tables.named([name])
        if table:
            return next(iter(table.values()))()
        files = self._foreign(name) if name.endswith(".parquet") else None
        if files is None:
            raise NotFound(f"{name!r} is no table of the lake and no path of Parquet files; check its spelling")
        return files

    def _foreign(self, pattern: str) -> Relation | None:
        """What the path or address of Parquet files stands for in a query."""
        with self._starting:
            if self._files is None:
                files = self._context.foreign_files(beside=self._sidecars_beside)
                self._files = ForeignRelations(files, scanned=self._scanned)
        return self._files(pattern)

    def _scanned(self) -> ScannedRelation | None:
        """Where queries report what they read of files that are in no table."""
        learner, catalog = self._context.learner, self._context.learnt
        return None if learner is None or catalog is None else learner.relation(catalog)

    def _database(self, call: DatabaseCall) -> Relation:
        """What `questdb(...)` stands for in a query: the newest commit of a table."""
        if call.table is None:
            folder = table_folder(call.path)
        else:
            _, folder = find_table(database_folder(call.path), call.table)
        return snapshot_relation(open_snapshot(folder, **call.options), prune=self._context.prune)

    def close(self) -> None:
        """End queries that are running; later ones are `Closed`."""
        with self._starting:
            self._is_closed = True
        if self._engine is not None:
            self._engine.close()


def queries_of(context: Context, *, sidecars_beside: bool = False) -> LakeQueries:
    """Return what answers the queries of a lake; the lake holds it, and its tables share it."""
    queries = context.parts.get(LakeQueries)
    if queries is None:
        queries = context.parts[LakeQueries] = LakeQueries(context, sidecars_beside=sidecars_beside)
    shared: LakeQueries = queries
    return shared
