"""A metastore whose database fails on plan: at any statement, at any commit, before it took place or after."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from enum import StrEnum
from typing import Any

from sqlalchemy import event
from sqlalchemy.exc import OperationalError
from sqlalchemy.exc import TimeoutError as NoFreeConnection

from windrow.mirror.metastore import MirroredMetastore
from windrow.storage import Store


class DatabaseFault(StrEnum):
    """What goes wrong with an operation of the database: a statement, or a commit."""

    ERROR = "error"
    """It fails and has no effect."""
    LOST = "lost"
    """It has its effect, but the answer is lost."""
    TIMEOUT = "time-out"
    """No connection is to be had; it has no effect."""


class FaultyMetastore(MirroredMetastore):
    """Fails at the nth operation of its database, counted from 1 once it is open; `onwards`, at all that follow too."""

    def __init__(
        self, url: str, store: Store, kind: DatabaseFault, nth: int, *, onwards: bool = False, **parts: Any
    ) -> None:
        super().__init__(url, store, sleep=_at_once, **parts)
        self.fired = 0
        self._kind, self._nth, self._onwards = kind, nth, onwards
        self._count = 0
        engine = self.database.engine
        event.listen(engine, "before_cursor_execute", self._before)
        event.listen(engine, "after_cursor_execute", self._after)
        self._commit: Callable[[Any], None] = engine.dialect.do_commit
        engine.dialect.do_commit = self._do_commit  # type: ignore[method-assign, assignment]

    def _strikes(self) -> bool:
        self._count += 1
        strikes = self._count == self._nth or (self._onwards and self._count > self._nth)
        self.fired += strikes
        return strikes

    def _before(self, connection: Any, cursor: Any, statement: str, *_: Any) -> None:
        if self._kind is not DatabaseFault.LOST and self._strikes():
            raise _failure(self._kind, statement)

    def _after(self, connection: Any, cursor: Any, statement: str, *_: Any) -> None:
        if self._kind is DatabaseFault.LOST and self._strikes():
            raise _failure(self._kind, statement)

    def _do_commit(self, connection: Any) -> None:
        strikes = self._strikes()
        if not strikes or self._kind is DatabaseFault.LOST:
            self._commit(connection)
        if strikes:
            raise sqlite3.OperationalError(f"planned fault ({self._kind}) in a commit")


def _failure(kind: DatabaseFault, statement: str) -> Exception:
    if kind is DatabaseFault.TIMEOUT:
        return NoFreeConnection(f"planned fault ({kind})")
    return OperationalError(statement, None, sqlite3.OperationalError(f"planned fault ({kind})"))


def _at_once(_: float) -> None:
    """Proofs do not wait."""
