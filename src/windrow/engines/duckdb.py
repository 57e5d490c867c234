"""SQL on DuckDB: every table and file that a query names becomes a view over one virtual Parquet file."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, TypeVar

import duckdb
import pyarrow as pa

from windrow.engines.filesystem import VirtualFileSystem
from windrow.engines.interrupting import Worker
from windrow.engines.metadata import metadata_answer
from windrow.engines.relations import Relation, rows_sql
from windrow.engines.taking import Collecting, Streaming, Taking
from windrow.errors import InvalidInput, NotFound, Replaced, SnapshotExpired, StorageError
from windrow.model.predicate import Predicate
from windrow.scan.context import ReadContext
from windrow.scan.naming import Naming, Question
from windrow.scan.plain import PlainFiles, plain_files
from windrow.scan.reading import VirtualReader
from windrow.scan.references import needed_rows
from windrow.scan.spelling import sql_name
from windrow.scan.virtual import VirtualFile

__all__ = ["Answer", "DuckDBEngine", "Relation"]

T = TypeVar("T")

_FILE_COLUMNS = frozenset({"filename", "file_row_number", "file_index"})
"""What DuckDB tells of the files that it reads by itself."""
_ATTEMPTS = 3
"""A query over files that are replaced while it runs is planned anew, but not for ever."""


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
    """A kept connection; queries run one at a time."""

    def __init__(self, context: ReadContext) -> None:
        self._context = context
        self._lock = threading.Lock()
        self._worker = Worker()
        self._files = VirtualFileSystem()
        self._connection = duckdb.connect(":memory:")
        self._connection.execute("SET GLOBAL TimeZone = 'UTC'")
        # What is worth keeping of our files is in our own cache.
        self._connection.execute("SET enable_external_file_cache = false")
        self._connection.register_filesystem(self._files)

    def sql(
        self,
        query: str,
        tables: Mapping[str, Callable[[], Relation]],
        files: Callable[[str], Relation | None] = lambda _: None,
    ) -> Answer:
        """Answer one query; every table of which the name is a word of the query can be named in it.

        `files` says what the path or address of Parquet files stands for; None leaves them to DuckDB.
        """
        return Answer(self._ask(query, tables, files, Collecting()))

    def stream(
        self,
        query: str,
        tables: Mapping[str, Callable[[], Relation]],
        files: Callable[[str], Relation | None],
        into: Callable[[pa.RecordBatchReader], T],
    ) -> T:
        """Answer one query with batches, which `into` gets while they are worked out."""
        return self._ask(query, tables, files, Streaming(into))

    def _ask(
        self,
        query: str,
        tables: Mapping[str, Callable[[], Relation]],
        files: Callable[[str], Relation | None],
        take: Taking[T],
    ) -> T:
        naming = Naming.of(query)
        words = {word.lower() for word in re.findall(r"\w+", query)}
        named = {name: relation for name, relation in tables.items() if name.lower() in words}
        for attempt in range(1, _ATTEMPTS + 1):
            with ExitStack() as stack:
                try:
                    relations = {name: relation() for name, relation in named.items()}
                    holds = [stack.enter_context(each.hold()) for each in relations.values() if each.hold]
                except SnapshotExpired:
                    # A version can be dropped before it is held; there is a newer one then.
                    if attempt == _ATTEMPTS:
                        raise
                    continue
                if not _FILE_COLUMNS & (naming.words or frozenset()):
                    relations |= {path: found for path in naming.files if (found := files(path)) is not None}
                try:
                    narrow = {name: relation.narrowed(naming) for name, relation in relations.items()}
                    return self._answer(query, naming, narrow, tables, take)
                except Replaced:
                    if attempt == _ATTEMPTS or take.begun:
                        raise
                    for relation in relations.values():
                        relation.forget()
                except (NotFound, StorageError):
                    # What is missing is no damage when its version is not kept any more.
                    for hold in holds:
                        hold.check()
                    raise
        raise AssertionError("unreachable")

    def close(self) -> None:
        """Close the connection."""
        self._worker.close()
        self._connection.close()

    def _answer(
        self,
        query: str,
        naming: Naming,
        relations: Mapping[str, Relation],
        tables: Mapping[str, object],
        take: Taking[T],
    ) -> T:
        readers: list[VirtualReader | PlainFiles] = []
        with self._lock, self._connection.cursor() as cursor, ExitStack() as stack:
            try:
                # In a transaction now() is the same for what is left out and for what is asked.
                cursor.begin()
                known = metadata_answer(cursor, query, naming, relations)
                if known is None:
                    needed = _needed(cursor, naming, relations)
                    for name, relation in relations.items():
                        readers += self._bind(cursor, stack, name, relation, needed.get(name))
                result = cursor.sql(query) if known is None else cursor.from_arrow(known)
                if result is None:
                    raise InvalidInput("the query is empty; write a select")
                taken = take(result, lambda work: self._worker.run(cursor, work))
                cursor.commit()
            except duckdb.Error as error:
                failure = next((reader.failure for reader in readers if reader.failure is not None), None)
                raise (failure or _refusal(error, tables)) from error
            for reader in readers:
                reader.finish()
            return taken

    def _bind(
        self,
        cursor: duckdb.DuckDBPyConnection,
        stack: ExitStack,
        name: str,
        relation: Relation,
        needed: Predicate | None,
    ) -> list[VirtualReader | PlainFiles]:
        """Make a view of a relation's name, over virtual files that are served until the stack is closed."""
        plan = relation.plan(Question(tuple(relation.columns.names), needed))
        served = [self._serve(stack, each) for each in plan.virtual]
        rows = rows_sql(cursor, relation, plan.virtual, [path for paths, _ in served for path in paths])
        cursor.execute(f"CREATE OR REPLACE TEMP VIEW {sql_name(name)} AS {rows}")
        return [reader for _, reader in served]

    def _serve(self, stack: ExitStack, virtual: VirtualFile) -> tuple[list[str], VirtualReader | PlainFiles]:
        """The paths under which DuckDB finds a virtual file, or the files that it is made of."""
        plain = plain_files(virtual, wanted=self._context.plain)
        if plain is not None:
            return plain
        reader = stack.enter_context(VirtualReader(virtual, self._context))
        return [stack.enter_context(self._files.serving(virtual.name, reader))], reader


def _needed(
    cursor: duckdb.DuckDBPyConnection, naming: Naming, relations: Mapping[str, Relation]
) -> dict[str, Predicate | None]:
    """Which rows of each relation can matter; nothing is known of names that rows may keep in a map."""
    if naming.tree is None:
        return {}

    def constant(expression: Any) -> Any:
        return cursor.execute(f"SELECT {expression.sql('duckdb')}").fetchall()[0][0]

    schemas = {name: relation.plain_columns for name, relation in relations.items()}
    try:
        return needed_rows(naming.tree, schemas, constant)
    except duckdb.Error:
        # A constant without a value: the query itself will say so, if it ever comes to need it.
        cursor.rollback()
        cursor.begin()
        return {}


def _refusal(error: duckdb.Error, tables: Mapping[str, object]) -> NotFound | InvalidInput:
    if isinstance(error, duckdb.CatalogException):
        known = ", ".join(tables) or "none yet"
        return NotFound(f"the query names what is not there: {error} Tables of the lake: {known}")
    return InvalidInput(f"the query failed: {error}")
