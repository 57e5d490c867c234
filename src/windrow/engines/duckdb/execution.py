"""One query while it runs: its cursor, what is held for it, and what its errors really are."""

from __future__ import annotations

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
        self._sessions = sessions
        self._worker = worker
        self._holds = holds
        self._constants: Constants | None = None
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
        return self._worker.run(self.cursor, work, is_short=self.is_short)

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
