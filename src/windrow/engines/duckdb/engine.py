"""SQL on DuckDB: every table and file that a query names becomes a view over one virtual Parquet file."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import duckdb
import pyarrow as pa

from windrow import forking
from windrow.bounded import BoundedCache
from windrow.engines.answer import Answer
from windrow.engines.duckdb.callers import words_of
from windrow.engines.duckdb.constants import Constants
from windrow.engines.duckdb.database import spilling_database
from windrow.engines.duckdb.execution import Execution
from windrow.engines.duckdb.explaining import ExplainRequest, ExplainSink, PlanSink, as_table, explain_request
from windrow.engines.duckdb.filesystem import VirtualFileSystem
from windrow.engines.duckdb.interrupting import Worker, heeding_ctrl_c
from windrow.engines.duckdb.join_estimates import EstimatedJoins, estimated_joins
from windrow.engines.duckdb.join_orders import in_better_order
from windrow.engines.duckdb.listings import described, listed
from windrow.engines.duckdb.metadata import metadata_table
from windrow.engines.duckdb.named_tables import FixedTables
from windrow.engines.duckdb.nanoseconds import FineQueries, fine_columns
from windrow.engines.duckdb.relations import Relation
from windrow.engines.duckdb.request import Request
from windrow.engines.duckdb.sandbox import Guard, check_tables, confine, lock
from windrow.engines.duckdb.session import Session, Sessions
from windrow.engines.duckdb.sinks import CollectSink, Sink, Statement, StreamSink
from windrow.engines.duckdb.statements import named_tables, refuse_changes
from windrow.engines.duckdb.stream import OpenStream, Stream, TableSource
from windrow.engines.duckdb.table_functions import CALL, with_views
from windrow.engines.duckdb.views import Bound, Narrow, Views, questions_of
from windrow.engines.explanation import Explanation
from windrow.errors import Closed, Replaced, SnapshotExpired, WindrowError
from windrow.model.limits import NO_LIMITS, Limits
from windrow.model.sources import SourceKind
from windrow.planning.scan_plan import ScanPlan
from windrow.questions.naming import Naming
from windrow.questions.templates import Templates
from windrow.reading.pins import Hold
from windrow.reading.read_context import ReadContext
from windrow.reading.source import EVERY_SOURCE, DecodedRows, MetadataAnswer, allowed_sources, source_of
from windrow.statistics.join_choice import LEAST_RELATIONS

__all__ = ["Answer", "DuckDBEngine", "Relation", "Request", "Stream"]

T = TypeVar("T")

_FILE_COLUMNS = frozenset({"filename", "file_row_number", "file_index"})
"""Columns that DuckDB adds to files that it reads by itself."""
_VECTOR = 2048
"""Rows that DuckDB works on at once."""
_FEW_ROWS = 2**15
"""Of more, an optimizer that makes a set of a long IN saves more than it takes."""
_ATTEMPTS = 3
"""A query over files that are replaced while it runs is planned anew, but not for ever."""
_MOST_NARROWED = 256
_ERRORS = (WindrowError, duckdb.Error, pa.ArrowException)
_FATAL = (duckdb.FatalException, duckdb.InternalException)


class DuckDBEngine:
    """One database, and a session for each query that runs.

    In a `sandbox` queries read the given tables, no more. A `confined` engine opens no files but virtual ones. Without
    a context every request brings its own.
    """

    def __init__(
        self,
        context: ReadContext | None,
        *,
        limits: Limits | None = None,
        sandbox: bool = False,
        confined: bool = False,
    ) -> None:
        self._context = context
        self._worker = Worker()
        self.files = VirtualFileSystem()
        self._connection = spilling_database(limits or (NO_LIMITS if context is None else context.limits))
        self._connection.register_filesystem(self.files)
        self._guard = Guard() if sandbox else None
        # Scans of all lakes share a confined engine, which holds on to nothing of them.
        self._remembers = not confined
        self._sources = EVERY_SOURCE - {SourceKind.PATHS} if sandbox or confined else EVERY_SOURCE
        if sandbox:
            lock(self._connection)
        elif confined:
            confine(self._connection)
        # None of these refers to the engine, so that it goes as soon as the lake is dropped.
        self._sessions = Sessions(
            partial(_session, self._connection, partial(Views, files=self.files)),
            partial(_closed, None if context is None else context.path),
            partial(_shut, self._connection, self._worker),
        )
        self._templates = Templates()
        self._fine = FineQueries()
        self._narrowed: BoundedCache[tuple[Relation, frozenset[str] | None], Narrow] = BoundedCache(
            "columns of queries", _MOST_NARROWED
        )

    def sql(
        self,
        query: str,
        tables: Mapping[str, Callable[[], Relation]],
        files: Callable[[str], Relation | None] = lambda _: None,
        **given: Any,
    ) -> Answer:
        """Answer one query, in which the tables can be named.

        `files` says what the path or address of Parquet files stands for; None leaves them to DuckDB. `given` are other
        parts of `Request`.
        """
        return self.answer(Request(query, FixedTables(tables), files, **given))

    def answer(self, request: Request) -> Answer:
        """Answer a query; one that begins with EXPLAIN is explained."""
        if _may_explain(request) and explain_request(request.query) is not None:
            return Answer(as_table(self.explain(request)))
        return Answer(self._run(request, CollectSink()))

    def stream(self, request: Request) -> Stream:
        """The answer to a query in batches, for a `with` block; they are worked out when they are read."""
        self._sessions.check_open()
        # The block may be entered by another function than the one that wrote the query.
        request = replace(request, variables=_those_of(request))
        if _may_explain(request) and explain_request(request.query) is not None:
            return Stream(lambda: TableSource(as_table(self.explain(request))))
        return Stream(partial(self.open, request))

    def explain(self, request: Request, *, analyze: bool = False) -> Explanation:
        """Say what a query would read, and why; with `analyze` it is run, and the report has what it read too."""
        wanted = explain_request(request.query) or ExplainRequest(request.query, analyze)
        request = replace(request, query=wanted.query)
        return self._run(request, ExplainSink(analyze=analyze or wanted.analyze, written=wanted.format))

    def plans(self, request: Request) -> dict[str, ScanPlan]:
        """What would be read for each name of a query, and from which source."""
        bounds = self._run(request, PlanSink(explains=True))
        return {each.name: replace(each.source.plan, source=each.source.kind) for each in bounds}

    def sources(self, request: Request) -> Sequence[Bound]:
        """What each name of a query stands for, and where its rows would come from; others read them."""
        return self._run(request, PlanSink())

    @contextmanager
    def cursor(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """A cursor for something else than a query, while the block lasts."""
        with heeding_ctrl_c(), forking.working(), self._connection.cursor() as cursor:
            yield cursor

    def use_threads(self, count: int) -> None:
        """Decode on so many threads, from now on."""
        self._connection.execute(f"SET GLOBAL threads = {int(count)}")

    def close(self) -> None:
        """Close the database. A query that is running ends with `Closed`, and so does each that comes later.

        A stream whose rows are being worked on ends when it is read on.
        """
        self._sessions.close()

    def _run(self, request: Request, sink: Sink[T]) -> T:
        """Answer a query in a session, which waits for the next one afterwards."""
        with heeding_ctrl_c(), forking.working():
            session, is_sound = self._sessions.take(), False
            try:
                with session.lock, ExitStack() as stack:
                    session.owner = threading.get_ident()
                    answer = self._planned(session, request, sink, stack)[1]
                is_sound = True
                return answer
            except _ERRORS as error:
                # After Ctrl-C, and errors that nobody foresaw, the cursor and its views may be in any state.
                is_sound = not isinstance(error, _FATAL)
                if not isinstance(error, Closed):
                    self._sessions.check_open()
                raise
            finally:
                self._sessions.give_back(session, is_sound=is_sound)

    def open(self, request: Request) -> OpenStream:
        """Run a query as far as its first batch, in a session of its own: what nobody reads goes away with that."""
        with heeding_ctrl_c(), forking.working():
            session = self._sessions.take(fresh=True)
            with ExitStack() as stack:
                stack.callback(self._sessions.give_back, session, is_sound=False)
                with session.lock:
                    session.owner = threading.get_ident()
                    execution, batches = self._planned(session, request, StreamSink(), stack)
                    # The query ends before its files do.
                    stack.callback(session.close)
                    stack.callback(batches.close)
                return OpenStream(execution, batches, stack.pop_all())

    def _planned(self, session: Session, request: Request, sink: Sink[T], stack: ExitStack) -> tuple[Execution, T]:
        """Run a query over what its names stand for now; once more where that changes meanwhile.

        What its rows need is there until the stack is closed.
        """
        request, calls = self._admitted(session.cursor, request)
        lent = self._templates.lend(request.query) if self._remembers else nullcontext(Naming.of(request.query))
        with lent as naming:
            if naming.statements:
                refuse_changes(naming, request.tables.names)
                request = replace(request, query=described(naming, request.tables) or request.query)
            named = {**request.tables.named(_named(session.cursor, naming, request.query)), **calls}
            for attempt in range(1, _ATTEMPTS + 1):
                with ExitStack() as held:
                    try:
                        relations, holds = _resolved(named, held)
                    except SnapshotExpired:
                        # A version can be dropped before it is held; there is a newer one then.
                        if attempt == _ATTEMPTS:
                            raise
                        continue
                    if not _FILE_COLUMNS & (naming.words or frozenset()):
                        files = {path: request.files(path) for path in naming.files}
                        relations |= {path: each for path, each in files.items() if each is not None}
                    execution = Execution(self._sessions, session, self._worker, request, relations, holds)
                    try:
                        answer = self._answer(execution, naming, sink, held)
                    except Replaced:
                        if attempt == _ATTEMPTS:
                            raise
                        for relation in relations.values():
                            relation.forget()
                    else:
                        stack.enter_context(held.pop_all())
                        return execution, answer
        raise AssertionError("unreachable")

    def _admitted(
        self, cursor: duckdb.DuckDBPyConnection, request: Request
    ) -> tuple[Request, dict[str, Callable[[], Relation]]]:
        """A query as a sandbox runs it, and its calls of databases, each with the name that stands for it."""
        if self._guard is not None:
            request = _confined(cursor, request, self._guard)
        if request.databases is None or CALL not in request.query.lower():
            return request, {}
        query, calls = with_views(request.query)
        databases = request.databases
        request = request if query is request.query else replace(request, query=query)
        return request, {name: partial(databases, call) for name, call in calls.items()}

    def _answer(self, execution: Execution, naming: Naming, sink: Sink[T], held: ExitStack) -> T:
        """Hand the rows of a query to a sink; errors of DuckDB become our own."""
        held.callback(execution.give_up)
        try:
            statement = self._statement(execution, naming, sink, held)
            answer = sink(statement, execution.run)
            if not sink.streams:
                execution.finish()
            return answer
        except _ERRORS as error:
            execution.give_up()
            cause = execution.cause(error)
            if cause is error:
                raise
            raise cause from error

    def _statement(self, execution: Execution, naming: Naming, sink: Sink[T], held: ExitStack) -> Statement:
        """A query that is planned, whose names are bound to what is read for them until the stack is closed."""
        began = time.perf_counter()
        session, relations = execution.session, execution.relations
        narrow = {name: self._narrow(relation, naming) for name, relation in relations.items()}
        request = self._fine_request(execution, naming, narrow)
        is_as_written = request is execution.request and not request.parameters
        if naming.tree is None:
            # What a statement sets or creates goes away with the cursor.
            cursor, views = session.fresh()
            execution.use(held.enter_context(cursor), views)
        others = {name.lower() for name in naming.tables} - {name.lower() for name in relations}
        execution.views.drop(others)
        constants = execution.begin(request)
        answer = listed(execution.cursor, request.query, request.tables) if naming.tree is None else None
        if answer is None:
            execution.bound = self._bounds(request, naming, narrow, constants, sink)
            answer = _from_metadata(session.cursor, request.query, execution.bound)
        is_light = _is_light(execution, naming, sink, constants)
        if is_light:
            execution.use(*session.light)
        if sink.binds and (answer is None or sink.explains):
            execution.bound = [execution.views.bind(held, each) for each in execution.bound]
        if request.frames or others:
            for name, frame in request.frames_for(naming, relations).items():
                execution.register(held, name, frame)
        execution.is_reading = answer is None and sink.binds and not sink.explains
        execution.is_short = is_light and _is_one_vector(execution.bound[0])
        is_select = naming.tree is not None and ";" not in request.query
        joins: Sequence[EstimatedJoins] = ()
        if is_select and is_as_written and answer is None and sink.binds and len(naming.places) > 1:
            if len(naming.places) >= LEAST_RELATIONS:
                query = in_better_order(naming, request.query, relations, execution.cursor)
                request = request if query is request.query else replace(request, query=query)
            joins = estimated_joins(naming, relations, execution.cursor) if sink.explains else ()
        planning = time.perf_counter() - began
        return Statement(
            execution.cursor, request.query, request.parameters, is_select, execution.bound, planning, answer, joins
        )

    def _fine_request(self, execution: Execution, naming: Naming, narrow: Mapping[str, Narrow]) -> Request:
        """A query as DuckDB can answer it over times of nanoseconds."""
        request = execution.request
        if naming.tree is None or not any(each.is_fine for each in narrow.values()):
            return request
        columns = {name: relation.columns for name, relation in execution.relations.items()}
        query = self._fine.rewritten(execution.session.cursor, request.query, columns)
        return request if query is request.query else replace(request, query=query)

    def _bounds(
        self, request: Request, naming: Naming, narrow: Mapping[str, Narrow], constants: Constants, sink: Sink[T]
    ) -> list[Bound]:
        """Where the rows of each name come from."""
        context = request.context or self._context
        assert context is not None  # noqa: S101 (one of the two has it)
        allowed = allowed_sources(context, request.allowed & self._sources)
        bounds = []
        for name, question in questions_of(constants, request, naming, narrow, allowed).items():
            relation = narrow[name].relation
            found = None if question.newest is None or relation.newest is None else relation.newest(question)
            if found is not None:
                source = source_of(question, found.plan, context, allowed, rows=found.rows)
            else:
                plan = (relation.explain or relation.plan if sink.explains else relation.plan)(question)
                source = source_of(question, plan, context, allowed)
            bounds.append(Bound(name, relation, question, source))
        return bounds

    def _narrow(self, relation: Relation, naming: Naming) -> Narrow:
        """The relation with those columns alone that a query can mean."""

        def narrowed() -> Narrow:
            narrow = relation.narrowed(naming)
            return Narrow(narrow, narrow.plain_columns, bool(fine_columns(relation.columns)))

        return self._narrowed.get_or_make((relation, naming.words), narrowed) if self._remembers else narrowed()


def _may_explain(request: Request) -> bool:
    return "explain" in request.query.lower()


def _those_of(request: Request) -> Callable[[Collection[str]], Mapping[str, Any]]:
    """The caller's variables that a query names, as they are now."""
    frames = request.variables(words_of(request.query))
    return lambda names: {name: frames[name] for name in names if name in frames}


def _from_metadata(cursor: duckdb.DuckDBPyConnection, query: str, tables: Sequence[Bound]) -> pa.Table | None:
    """The answer, where the values of the only table are known."""
    bound = tables[0] if len(tables) == 1 else None
    if bound is None or not isinstance(bound.source, MetadataAnswer):
        return None
    return metadata_table(cursor, query, bound.name, bound.relation, bound.source.values)


def _is_light(execution: Execution, naming: Naming, sink: Sink[T], constants: Constants) -> bool:
    """Whether an optimizer would gain nothing: few rows of one table are there already."""
    if not (naming.is_single and isinstance(sink, CollectSink)) or constants.is_open or execution.request.frames:
        return False
    source = execution.bound[0].source if len(execution.bound) == 1 else None
    return isinstance(source, DecodedRows) and source.rows.table.num_rows <= _FEW_ROWS


def _resolved(named: Mapping[str, Callable[[], Relation]], stack: ExitStack) -> tuple[dict[str, Relation], list[Hold]]:
    """What names stand for now, and holds on versions; both are let go when the stack is closed."""
    relations = {}
    for name, relation in named.items():
        relations[name] = resolved = relation()
        if resolved.release is not None:
            stack.callback(resolved.release)
    holds = []
    for each in relations.values():
        if each.hold is not None:
            holds.append(each.hold())
            stack.callback(holds[-1].close)
    return relations, holds


def _named(cursor: duckdb.DuckDBPyConnection, naming: Naming, query: str) -> frozenset[str]:
    if naming.candidates is not None:
        return naming.candidates
    try:
        return named_tables(cursor, naming, query)
    except duckdb.Error:
        # The query cannot be parsed; running it gives the error.
        return frozenset(naming.tables)


def _confined(cursor: duckdb.DuckDBPyConnection, request: Request, guard: Guard) -> Request:
    """The same without files and variables of the caller, if it is one that a sandbox runs."""
    names = guard.names(cursor, request.query)
    check_tables(names, [*request.tables.named(path[0] for path in names.tables), *request.frames])
    return replace(request, files=lambda _: None, databases=None, variables=lambda _: {})


def _session(connection: duckdb.DuckDBPyConnection, views_of: Callable[[duckdb.DuckDBPyConnection], Views]) -> Session:
    return Session(connection.cursor(), views_of)


def _closed(path: str | None) -> Closed:
    return Closed("the process ends" if path is None else f"lake {path}: it was closed; connect again")


def _shut(connection: duckdb.DuckDBPyConnection, worker: Worker) -> None:
    worker.close()
    connection.close()


def _is_one_vector(bound: Bound) -> bool:
    """Whether DuckDB gets all rows in one piece: it looks only between pieces whether it should stop."""
    return isinstance(bound.source, DecodedRows) and bound.source.rows.table.num_rows <= _VECTOR
