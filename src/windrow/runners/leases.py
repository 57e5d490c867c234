"""Keeps the leases of commits alive while their work runs."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import Self

from windrow.errors import CommitUnknown, LeaseExpired, WindrowError
from windrow.metastore import Metastore

__all__ = ["Leases", "given_up_on_error", "held"]

_log = logging.getLogger(__name__)
_BEATS_PER_LEASE = 3


class Leases:
    """Prolongs the leases that are held, from one thread, three times per lease, until the block ends.

    A beat that fails is tried again; when a lease is lost, publishing is what refuses.
    """

    def __init__(self, metastore: Metastore, seconds: float) -> None:
        self.seconds = seconds
        self._metastore = metastore
        self._held: dict[str, int] = {}
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="leases of commits", daemon=True)

    def hold(self, commit_id: str, attempt: int) -> None:
        """Keep the lease of an attempt alive from now on."""
        with self._lock:
            self._held[commit_id] = attempt

    def drop(self, commit_id: str) -> None:
        """Let a lease run out by itself."""
        with self._lock:
            self._held.pop(commit_id, None)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()

    def _beat(self) -> None:
        while not self._ended.wait(self.seconds / _BEATS_PER_LEASE):
            with self._lock:
                held = list(self._held.items())
            for commit_id, attempt in held:
                self._prolong(commit_id, attempt)

    def _prolong(self, commit_id: str, attempt: int) -> None:
        try:
            self._metastore.heartbeat(commit_id, attempt=attempt, lease=self.seconds)
        except LeaseExpired:
            self.drop(commit_id)
        except WindrowError as error:
            _log.warning("heartbeat of commit %s failed and will be tried again: %s", commit_id, error)


@contextmanager
def held(metastore: Metastore, commit_id: str, attempt: int, lease: float) -> Iterator[Leases]:
    """Keep the lease of one commit alive until the block ends."""
    with Leases(metastore, lease) as leases:
        leases.hold(commit_id, attempt)
        yield leases


@contextmanager
def given_up_on_error(metastore: Metastore, commit_id: str, attempt: int) -> Iterator[None]:
    """Give an attempt at a commit up when the block fails, unless it may have been published.

    The error is the block's: a commit that could not be aborted is left open, and its lease runs out.
    """
    try:
        yield
    except CommitUnknown:
        raise
    except BaseException:
        with suppress(WindrowError):
            metastore.abort(commit_id, attempt=attempt)
        raise
