"""Sessions: a cursor of the engine's database for each running query, with the views that its last queries left.

A query takes a session and gives it back. Idle sessions lie on a stack, and the one that was used last is taken first:
a thread that asks alone always has the same one, whose views and slots fit its queries. A session whose query was
broken off is closed, and another one is made when it is needed.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress

import duckdb

from windrow.engines.duckdb.views import Views
from windrow.errors import Closed

__all__ = ["Session", "Sessions"]

_ViewsOf = Callable[[duckdb.DuckDBPyConnection], Views]
_MOST_IDLE = 8
_PATIENCE = 0.01
"""Seconds; a query that had not begun when it was interrupted is interrupted again."""
_CLOSE_WAITS = 10.0
"""Seconds that closing waits for a query."""


class Session:
    """A cursor and its views, for one query at a time."""

    def __init__(self, cursor: duckdb.DuckDBPyConnection, views_of: _ViewsOf) -> None:
        self.cursor = cursor
        self.views = views_of(cursor)
        self.running = cursor
        """The cursor that runs the query."""
        self.is_closed = False
        self._views_of = views_of
        self._light: tuple[duckdb.DuckDBPyConnection, Views] | None = None
        self.lock = threading.Lock()
        """Held by the thread that works on the query, so that nobody closes the session meanwhile."""
        self.owner: int | None = None
        """The thread that holds the lock."""

    @property
    def light(self) -> tuple[duckdb.DuckDBPyConnection, Views]:
        """A cursor without the optimizer, and its views."""
        if self._light is None:
            cursor = self.cursor.cursor()
            cursor.execute("PRAGMA disable_optimizer")
            self._light = cursor, self._views_of(cursor)
        return self._light

    def fresh(self) -> tuple[duckdb.DuckDBPyConnection, Views]:
        """A cursor that nothing was done with, and its views; whoever asks closes it."""
        cursor = self.cursor.cursor()
        return cursor, self._views_of(cursor)

    def interrupt(self) -> None:
        """End what DuckDB does for the query."""
        with suppress(duckdb.Error):  # the query has ended, and its cursor is closed
            self.running.interrupt()

    def close_if_idle(self) -> bool:
        """Close it unless somebody is at work; whether it is closed, or will be by the thread that calls this."""
        if self.lock.acquire(blocking=False):
            try:
                self.close()
            finally:
                self.lock.release()
            return True
        return self.owner == threading.get_ident()

    def close(self) -> None:
        """Close the cursors."""
        self.is_closed = True
        if self._light is not None:
            self._light[0].close()
        self.cursor.close()


class Sessions:
    """The sessions of one database, for all threads. Nothing is locked while a query runs."""

    def __init__(self, make: Callable[[], Session], closed: Callable[[], Closed], shut: Callable[[], None]) -> None:
        self._make = make
        self._closed = closed
        self._shut = shut
        """Called once when all is closed and no query is left."""
        # A stream that nobody closed gives its session back by the collector of Python, wherever this thread is.
        self._lock = threading.RLock()
        self._idle: list[Session] = []
        self._taken: set[Session] = set()
        self._is_shut = False
        self.is_closed = False

    def check_open(self) -> None:
        """Raise `Closed` once the sessions were closed."""
        if self.is_closed:
            raise self._closed()

    def take(self, *, fresh: bool = False) -> Session:
        """Return a session for one query; a `fresh` one has not been used."""
        with self._lock:
            self.check_open()
            session = self._idle.pop() if self._idle and not fresh else self._make()
            self._taken.add(session)
            return session

    def give_back(self, session: Session, *, is_sound: bool) -> None:
        """Return a session; one that may be in any state is closed."""
        with self._lock:
            self._taken.discard(session)
            is_kept = is_sound and not self.is_closed and len(self._idle) < _MOST_IDLE
            if is_kept:
                self._idle.append(session)
        if not is_kept:
            session.close()
            self._shut_if_last()

    def close(self) -> None:
        """Close all sessions. A query that is running is interrupted; for one that does not end, this waits a while."""
        with self._lock:
            self.is_closed = True
            idle, self._idle = self._idle, []
            taken = list(self._taken)
        for session in idle:
            session.close()
        for session in taken:
            session.interrupt()
        deadline = time.monotonic() + _CLOSE_WAITS
        for session in taken:
            while not session.close_if_idle() and time.monotonic() < deadline:
                time.sleep(_PATIENCE)
                session.interrupt()
        self._shut_if_last()

    def _shut_if_last(self) -> None:
        with self._lock:
            is_last = self.is_closed and not self._is_shut and all(each.is_closed for each in self._taken)
            self._is_shut |= is_last
        if is_last:
            self._shut()
