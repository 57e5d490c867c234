"""One query while it runs: its cursor, what is held for it, and what its errors really are."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any, TypeVar

import duckdb

from windrow.engines.duckdb.constants import Constants
from windrow.engines.duckdb.interrupting import Worker
from windrow.engines.duckdb.refusals import refusal
from windrow.engines.duckdb.relations import Relation
from windrow.engines.duckdb.request import Request
from windrow.engines.duckdb.session import Session, Sessions
from windrow.engines.duckdb.views import Bound, Views
from windrow.errors import Closed, NotFound, Replaced, StorageError, WindrowError
from windrow.learning.log import QueryCpu, QueryLog, ReportedScan
from windrow.reading.pins import Hold

__all__ = ["Execution"]

T = TypeVar("T")


class Execution:
    """A query that a session runs, over what its names stand for now."""

    def __init__(
        self,
        sessions: Sessions,
        session: Session,
        worker: Worker,
        request: Request,
        relations: Mapping[str, Relation],
        holds: Sequence[Hold],
    ) -> None:
        self.session = session
        self.request = request
        self.relations = relations
        self.bound: list[Bound] = []
        self.is_short = False
        """Whether it ends before DuckDB could stop it."""
        self.is_reading = False
        """Whether rows are read, and not only planned for."""
        self._sessions = sessions
        self._worker = worker
        self._holds = holds
        self._constants: Constants | None = None
        logs = [each.scanned.log for each in relations.values() if each.scanned is not None]
        self._log: QueryLog | None = logs[0] if logs else None
        self._began: float | None = None
        self._cpu = 0.0
        for hold in holds:
            hold.on_close(session.interrupt)
        self.use(session.cursor, session.views)

    def use(self, cursor: duckdb.DuckDBPyConnection, views: Views) -> None:
        """Have the query run by a cursor of the session."""
        self.session.running, self._views = cursor, views

    @property
    def cursor(self) -> duckdb.DuckDBPyConnection:
        """The cursor that runs the query."""
        return self.session.running

    @property
    def views(self) -> Views:
        """The views of that cursor."""
        return self._views

    def begin(self, request: Request) -> Constants:
        """The values of constants, for the time of the query; `request` is how DuckDB understands it."""
        self.request = request
        self._constants = Constants(self.cursor, request.parameters)
        return self._constants

    def run(self, work: Callable[[], T]) -> T:
        """Do some work of DuckDB, such that Ctrl-C ends it; `Closed` when the lake was closed."""
        self._check_open()
        if self._log is None:
            return self._worker.run(self.cursor, work, is_short=self.is_short)
        running, began = self._log.running, time.process_time()
        self._began = began if self._began is None else self._began
        running.append(None)
        try:
            return self._worker.run(self.cursor, work, is_short=self.is_short)
        finally:
            running.pop()
            self._cpu += time.process_time() - began

    def _check_open(self) -> None:
        self._sessions.check_open()
        for hold in self._holds:
            hold.check_open()

    def finish(self) -> None:
        """End the transaction, and make sure that what was read is what was planned with."""
        if self._constants is not None:
            self._constants.end(commit=True)
        for each in self.bound:
            for reader in each.readers:
                reader.finish()
        if self._log is not None and self.is_reading:
            self._report(self._log)

    def _report(self, log: QueryLog) -> None:
        """Report what was read, for others to learn from it, and the CPU that it took."""
        ended = time.process_time()
        log.cpu.append(QueryCpu(ended if self._began is None else self._began, ended, self._cpu))
        for each in self.bound:
            scanned, plan = each.relation.scanned, each.source.plan
            if scanned is not None and plan.virtual and each.question.columns not in scanned.settled:
                log.scans.append(ReportedScan(scanned, plan, each.question))
                log.news.set()

    def register(self, stack: ExitStack, name: str, frame: Any) -> None:
        """Let the query read data of the caller by a name, until the stack is closed."""
        self.cursor.register(name, frame)
        stack.callback(self._unregister, name)

    def _unregister(self, name: str) -> None:
        # What a closed cursor had is gone with it.
        if not self.session.is_closed:
            self.cursor.unregister(name)

    def give_up(self) -> None:
        """Undo what is open."""
        if self._constants is not None and self._constants.is_open and not self.session.is_closed:
            self._views.forget()
            self._constants.end(commit=False)

    def cause(self, error: Exception) -> Exception:
        """What an error really is, in our own words."""
        try:
            return self._cause(error)
        except WindrowError as other:
            return other

    def _cause(self, error: Exception) -> Exception:
        if not isinstance(error, Closed):
            # Whatever a query met that was interrupted by `close`, this is why.
            self._check_open()
        if isinstance(error, duckdb.Error):
            failures = (reader.failure for each in self.bound for reader in each.readers)
            error = next((each for each in failures if each is not None), None) or self._refusal(error)
        if isinstance(error, NotFound | StorageError) and not isinstance(error, Replaced):
            # What is missing is no damage when its version is not kept any more.
            for hold in self._holds:
                hold.check()
        return error

    def _refusal(self, error: duckdb.Error) -> Exception:
        request, relations = self.request, self.relations.values()
        if request.refusal is not None:
            return request.refusal(error)
        columns = [name for each in relations for name in (*each.columns.names, *each.extra_names)]
        return refusal(error, [*request.tables.names, *request.frames], list(dict.fromkeys(columns)))
