"""SQL on DuckDB: every table and file that a query names becomes a view over one virtual Parquet file."""

from __future__ import annotations

import re
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

import duckdb
import pyarrow as pa
from sqlglot import exp

from windrow import forking
from windrow.engines.answer import Answer
from windrow.engines.duckdb.constants import Constants, Parameters
from windrow.engines.duckdb.explaining import Explaining, Planning, as_table, explain_request
from windrow.engines.duckdb.filesystem import VirtualFileSystem, new_database
from windrow.engines.duckdb.frames import as_tables
from windrow.engines.duckdb.interrupting import Worker, heeding_ctrl_c
from windrow.engines.duckdb.listings import described, listed
from windrow.engines.duckdb.metadata import metadata_answer
from windrow.engines.duckdb.named_tables import FixedTables, Tables
from windrow.engines.duckdb.nanoseconds import FineQueries
from windrow.engines.duckdb.refusals import refusal
from windrow.engines.duckdb.relations import Relation
from windrow.engines.duckdb.sandbox import Guard, check_tables, lock
from windrow.engines.duckdb.statements import named_tables, refuse_changes
from windrow.engines.duckdb.table_functions import DatabaseCall, with_views
from windrow.engines.duckdb.taking import Collecting, Statement, Streaming, Taking
from windrow.engines.duckdb.views import Bound, Views
from windrow.engines.explanation import Explanation
from windrow.errors import (
    Closed,
    InvalidInput,
    NotFound,
    Replaced,
    SnapshotExpired,
    StorageError,
    WindrowError,
)
from windrow.model.limits import Limits
from windrow.model.predicate import Predicate
from windrow.planning.scan_plan import ScanPlan
from windrow.questions.naming import Naming, Question
from windrow.questions.references import needed_rows
from windrow.questions.templates import Templates
from windrow.reading.pins import Hold
from windrow.reading.read_context import ReadContext

__all__ = ["Answer", "Asked", "DuckDBEngine", "Relation"]

T = TypeVar("T")

_FILE_COLUMNS = frozenset({"filename", "file_row_number", "file_index"})
"""What DuckDB tells of the files that it reads by itself."""
_VECTOR = 2048
"""Rows that DuckDB works on at once."""
_MAKES_ROWS = re.compile("unnest|generate_subscripts", re.IGNORECASE)
"""Where one of these is, few rows may become many."""
_ATTEMPTS = 3
"""A query over files that are replaced while it runs is planned anew, but not for ever."""
_MOST_NARROWED = 256
_PATIENCE = 0.05
"""Seconds; a query that had not begun when it was told to stop is told again."""
_CLOSE_WAITS = 10.0
"""Seconds that closing waits for a query."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A query, and what the names in it can stand for."""

    query: str
    tables: Tables
    """Those that the query names are looked at."""
    files: Callable[[str], Relation | None] = lambda _: None
    """What the path or address of Parquet files stands for; None leaves them to DuckDB."""
    databases: Callable[[DatabaseCall], Relation] | None = None
    """What a table of another database stands for; None leaves the call to DuckDB."""
    parameters: Parameters = None
    frames: Mapping[str, Any] = field(default_factory=dict)
    """Data of the caller, by name, as DuckDB can read it."""
    variables: Mapping[str, Any] = field(default_factory=dict)
    """Data for names that stand for nothing else."""


class DuckDBEngine:
    """A kept connection; queries run one at a time. In a sandbox they read the tables that they are given, no more."""

    def __init__(
        self,
        context: ReadContext,
        *,
        sandbox: bool = False,
    ) -> None:
        self._context = context
        self._lock = threading.Lock()
        self._worker = Worker()
        self._files = VirtualFileSystem()
        self._connection = _connected(context.limits)
        self._connection.register_filesystem(self._files)
        self._guard = Guard(self._connection) if sandbox else None
        self._views = self._views_of(self._connection)
        self._light = self._with("PRAGMA disable_optimizer")
        self._profiled = self._with("PRAGMA enable_profiling = 'no_output'") if sandbox else None
        if sandbox:
            lock(self._connection)
        self._templates = Templates()
        self._fine = FineQueries()
        self._narrowed: dict[tuple[int, frozenset[str] | None], tuple[Relation, Relation, pa.Schema]] = {}
        self._is_closed = self._is_shut = False
        self._owner: int | None = None
        """The thread whose query is running."""
        self._running: duckdb.DuckDBPyConnection = self._connection
        """The cursor of that query."""

    def sql(
        self,
        query: str,
        tables: Mapping[str, Callable[[], Relation]],
        files: Callable[[str], Relation | None] = lambda _: None,
        **given: Any,
    ) -> Answer:
        """Answer one query, in which the tables can be named.

        `files` says what the path or address of Parquet files stands for; None leaves them to DuckDB. `given` are other
        parts of `Asked`.
        """
        return self.answer(Asked(query, FixedTables(tables), files, **given))

    def answer(self, asked: Asked) -> Answer:
        """Answer a query; one that begins with EXPLAIN is explained."""
        if explain_request(asked.query) is not None:
            return Answer(as_table(self.explain(asked)))
        return Answer(self._ask(asked, Collecting()))

    def stream(self, asked: Asked, into: Callable[[pa.RecordBatchReader], T]) -> T:
        """Answer a query with batches, which `into` gets while they are worked out."""
        if explain_request(asked.query) is not None:
            return into(as_table(self.explain(asked)).to_reader())
        return self._ask(asked, Streaming(into))

    def explain(self, asked: Asked, *, analyze: bool = False) -> Explanation:
        """Say what a query would read, and why; with `analyze` it is run, and what it read is said too."""
        request = explain_request(asked.query)
        if request is not None:
            asked, analyze = replace(asked, query=request.query), analyze or request.analyze
        return self._ask(asked, Explaining(analyze=analyze))

    def plans(self, asked: Asked) -> dict[str, ScanPlan]:
        """What would be read for each name of a query."""
        return self._ask(asked, Planning())

    def close(self) -> None:
        """Close the connection. A query that is running ends with `Closed`, and so does each that is asked later.

        A stream whose rows are being worked on ends when it asks for more; it is not waited for any longer.
        """
        self._is_closed = True
        if self._owner == threading.get_ident():
            return  # the query that calls this closes all when it ends
        deadline = time.monotonic() + _CLOSE_WAITS
        while not self._lock.acquire(timeout=_PATIENCE):
            with suppress(duckdb.Error):  # the query ended, and closed its cursor
                self._running.interrupt()
            if time.monotonic() > deadline:
                return
        try:
            self._shut()
        finally:
            self._lock.release()

    def _shut(self) -> None:
        if not self._is_shut:
            self._is_shut = True
            self._worker.close()
            self._light[0].close()
            if self._profiled is not None:
                self._profiled[0].close()
            self._connection.close()

    def _check_open(self) -> None:
        if self._is_closed:
            raise self._closed()

    def _closed(self) -> Closed:
        return Closed(f"lake {self._context.path}: it was closed; connect again")

    def _with(self, setting: str) -> tuple[duckdb.DuckDBPyConnection, Views]:
        """A cursor of its own for a setting, and its views."""
        cursor = self._connection.cursor()
        cursor.execute(setting)
        return cursor, self._views_of(cursor)

    def _views_of(self, connection: duckdb.DuckDBPyConnection) -> Views:
        return Views(connection, self._files, self._context, reads_paths=self._guard is None)

    def _ask(self, asked: Asked, take: Taking[T]) -> T:
        self._check_open()
        if self._owner == threading.get_ident():
            raise InvalidInput(
                f"lake {self._context.path}: what takes the batches of a query asks another; ask it before or after"
            )
        with heeding_ctrl_c(calls_user=isinstance(take, Streaming)), self._lock:
            self._owner = threading.get_ident()
            try:
                self._check_open()
                return self._planned(asked, take)
            except (WindrowError, duckdb.Error, pa.ArrowException) as error:
                # Whatever a query met that was told to stop, this is why.
                if isinstance(error, Closed) or not self._is_closed:
                    raise
                raise self._closed() from error
            finally:
                self._owner = None
                if self._is_closed:
                    self._shut()

    def _planned(self, asked: Asked, take: Taking[T]) -> T:
        """Answer a query over what its names stand for now; once more where that changes meanwhile."""
        with forking.working():
            asked, naming, calls = self._allowed(asked)
            named = {**asked.tables.named(self._named(naming, asked.query)), **calls}
        for attempt in range(1, _ATTEMPTS + 1):
            with ExitStack() as stack:
                try:
                    relations, holds = _resolved(named, stack)
                except SnapshotExpired:
                    # A version can be dropped before it is held; there is a newer one then.
                    if attempt == _ATTEMPTS:
                        raise
                    continue
                if not _FILE_COLUMNS & (naming.words or frozenset()):
                    relations |= {path: found for path in naming.files if (found := asked.files(path)) is not None}
                try:
                    return self._answer(asked, naming, relations, take)
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

    def _allowed(self, asked: Asked) -> tuple[Asked, Naming, dict[str, Callable[[], Relation]]]:
        """A statement as it is run, and its calls; one that would change or hide a table of the lake is refused."""
        if self._guard is not None:
            asked = _confined(asked, self._guard)
        calls: dict[str, Callable[[], Relation]] = {}
        if asked.databases is not None:
            query, found = with_views(asked.query)
            asked = asked if query is asked.query else replace(asked, query=query)
            calls = {name: partial(asked.databases, call) for name, call in found.items() if asked.databases}
        naming = self._templates.naming(asked.query)
        if naming.statements:
            refuse_changes(naming, asked.tables.names)
            asked = replace(asked, query=described(naming, asked.tables) or asked.query)
        return asked, naming, calls

    def _named(self, naming: Naming, query: str) -> set[str]:
        try:
            return named_tables(self._connection, naming, query)
        except duckdb.Error:
            # The query cannot be read; what is wrong with it is said when it is run.
            return set(naming.tables)

    def _run(self, connection: duckdb.DuckDBPyConnection, work: Callable[[], T], *, is_short: bool) -> T:
        self._running = connection
        self._check_open()
        with forking.working():
            return self._worker.run(connection, work, is_short=is_short)

    def _rewritten(self, asked: Asked, naming: Naming, relations: Mapping[str, Relation]) -> Asked:
        """The same question as DuckDB understands it."""
        if naming.tree is None:
            return asked
        columns = {name: relation.columns for name, relation in relations.items()}
        query = self._fine.rewritten(self._connection, asked.query, columns)
        return asked if query is asked.query else replace(asked, query=query)

    def _answer(self, asked: Asked, naming: Naming, relations: Mapping[str, Relation], take: Taking[T]) -> T:
        began = time.perf_counter()
        with ExitStack() as stack:
            busy = stack.enter_context(ExitStack())
            busy.enter_context(forking.working())
            asked = self._rewritten(asked, naming, relations)
            connection, views = self._connection, self._views
            if self._profiled is not None and take.explains and take.runs:
                connection, views = self._profiled
            elif isinstance(take, Streaming) or naming.tree is None:
                # Rows that nobody comes to read go away with the cursor, and so does what a statement sets or creates.
                connection = stack.enter_context(self._connection.cursor())
                views = self._views_of(connection)
            views.drop({name.lower() for name in naming.tables} - {name.lower() for name in relations})
            constants, bound = Constants(connection, asked.parameters), list[Bound]()
            stack.callback(self._give_up, constants, views)
            try:
                known = (
                    listed(connection, asked.query, asked.tables)
                    if naming.tree is None
                    else self._from_metadata(asked, naming, relations)
                )
                if known is None or take.explains:
                    needed = {} if known is not None else self._needed(constants, naming, relations)
                    plans = self._plans(naming, relations, needed, take, views)
                    if isinstance(take, Collecting) and not constants.is_open and self._is_light(asked, naming, plans):
                        connection, views = self._light
                    bound += [views.bind(stack, each) for each in plans] if take.runs or take.explains else plans
                for name, frame in _frames(asked, naming, relations).items():
                    connection.register(name, frame)
                    stack.callback(connection.unregister, name)
                is_select = naming.tree is not None and ";" not in asked.query
                planning = time.perf_counter() - began
                is_profiled = self._profiled is not None
                statement = Statement(
                    connection, asked.query, asked.parameters, is_select, bound, planning, known, is_profiled
                )
                is_short = views is self._light[1] and all(map(_is_one_vector, bound))
                # What takes batches may be code of the user: a fork does not wait for that.
                busy.close()
                taken = take(statement, lambda work: self._run(connection, work, is_short=is_short))
                busy.enter_context(forking.working())
                constants.end(commit=True)
            except duckdb.Error as error:
                self._give_up(constants, views)
                failures = (reader.failure for each in bound for reader in each.readers)
                failure = next((found for found in failures if found is not None), None)
                raise (failure or _refused(error, asked, relations)) from error
            for each in bound:
                for reader in each.readers:
                    reader.finish()
            return taken

    def _plans(
        self,
        naming: Naming,
        relations: Mapping[str, Relation],
        needed: Mapping[str, Predicate | None],
        take: Taking[T],
        views: Views,
    ) -> list[Bound]:
        """What is read for each name, and the rows themselves where these are few and the query is run."""
        plans = []
        for name, relation in relations.items():
            narrow, rows = self._narrow(relation, naming)[0], needed.get(name)
            planned = relation.explain if take.explains and relation.explain else relation.plan
            plan = planned(Question(tuple(narrow.columns.names), rows))
            plans.append(Bound(name, narrow, plan, rows, views.gathered(plan, rows) if take.runs else None))
        return plans

    def _is_light(self, asked: Asked, naming: Naming, plans: Sequence[Bound]) -> bool:
        """Whether a query is one SELECT from few rows of one table: there is nothing for an optimizer to gain."""
        tree = naming.tree
        return (
            isinstance(tree, exp.Select)
            and naming.scopes is not None
            and len(naming.scopes) == len(naming.tables) == len(plans) == 1
            and plans[0].gathered is not None
            and not (asked.frames or tree.args.get("joins") or tree.args.get("laterals"))
            and not _MAKES_ROWS.search(asked.query)
        )

    def _from_metadata(self, asked: Asked, naming: Naming, relations: Mapping[str, Relation]) -> pa.Table | None:
        """The answer, if it is one row of counts and bounds of which metadata is certain."""
        if asked.parameters or not _counts_only(naming.tree) or not any(each.answer for each in relations.values()):
            return None
        narrow = {name: self._narrow(relation, naming)[0] for name, relation in relations.items()}
        with self._connection.cursor() as cursor:
            cursor.begin()
            return metadata_answer(cursor, asked.query, naming, narrow)

    def _give_up(self, constants: Constants, views: Views) -> None:
        if constants.is_open:
            views.forget()
        constants.end(commit=False)

    def _narrow(self, relation: Relation, naming: Naming) -> tuple[Relation, pa.Schema]:
        """The relation with those columns alone that a query can mean, and its columns that no row keeps elsewhere."""
        key = id(relation), naming.words
        if key not in self._narrowed:
            if len(self._narrowed) >= _MOST_NARROWED:
                self._narrowed.clear()
            narrow = relation.narrowed(naming)
            # The relation is held, so that nothing else gets its id.
            self._narrowed[key] = relation, narrow, narrow.plain_columns
        return self._narrowed[key][1:]

    def _needed(
        self, constants: Constants, naming: Naming, relations: Mapping[str, Relation]
    ) -> dict[str, Predicate | None]:
        """Which rows of each relation can matter; nothing is known of names that rows may keep in a map."""
        if naming.tree is None:
            return {}
        schemas = {name: self._narrow(relation, naming)[1] for name, relation in relations.items()}
        try:
            return needed_rows(naming, schemas, constants)
        except duckdb.Error:
            # A constant without a value: the query itself will say so, if it ever comes to need it.
            constants.end(commit=False)
            return {}


def _resolved(named: Mapping[str, Callable[[], Relation]], stack: ExitStack) -> tuple[dict[str, Relation], list[Hold]]:
    """What names stand for now, and holds on versions; both are let go when the stack is closed."""
    relations = {}
    for name, relation in named.items():
        relations[name] = relation()
        stack.callback(relations[name].release)
    return relations, [stack.enter_context(each.hold()) for each in relations.values() if each.hold]


def _confined(asked: Asked, guard: Guard) -> Asked:
    """The same without files and variables of the caller, if it is one that a sandbox runs."""
    names = guard.names(asked.query)
    check_tables(names, [*asked.tables.named(path[0] for path in names.tables), *asked.frames])
    return replace(asked, files=lambda _: None, databases=None, variables={})


def _connected(limits: Limits) -> duckdb.DuckDBPyConnection:
    connection = new_database(limits)
    # Variables of this program are nobody's tables.
    connection.execute("SET GLOBAL python_enable_replacements = false")
    spilled = Path(tempfile.gettempdir()) / f"windrow-{uuid4().hex}"
    connection.execute("SET temp_directory = ?", [str(spilled)])
    return connection


def _is_one_vector(bound: Bound) -> bool:
    """Whether DuckDB gets all rows in one piece: it looks only between pieces whether it should stop."""
    return bound.gathered is not None and bound.gathered.table.num_rows <= _VECTOR


def _counts_only(tree: exp.Expr | None) -> bool:
    """Whether a query asks for nothing but counts, minima and maxima, which metadata may have."""
    kinds = (exp.Count, exp.Min, exp.Max)
    return isinstance(tree, exp.Select) and all(isinstance(each.unalias(), kinds) for each in tree.expressions)


def _frames(asked: Asked, naming: Naming, relations: Mapping[str, Relation]) -> dict[str, Any]:
    taken = {name.lower() for name in (*relations, *asked.frames)}
    found = {name: asked.variables[name] for name in naming.tables if name in asked.variables}
    found = {name: frame for name, frame in found.items() if name.lower() not in taken}
    return {**asked.frames, **as_tables(found, relations)}


def _refused(error: duckdb.Error, asked: Asked, relations: Mapping[str, Relation]) -> Exception:
    tables = [*asked.tables.names, *asked.frames]
    columns = [name for relation in relations.values() for name in (*relation.columns.names, *relation.extra_names)]
    return refusal(error, tables, list(dict.fromkeys(columns)))
