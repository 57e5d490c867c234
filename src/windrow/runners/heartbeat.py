"""Keeps the lease of a commit alive while its work runs."""

from __future__ import annotations

import logging
import threading
from types import TracebackType
from typing import Self

from windrow.errors import LeaseExpired, WindrowError
from windrow.metastore import Metastore

__all__ = ["Heartbeat"]

_log = logging.getLogger(__name__)
_BEATS_PER_LEASE = 3


class Heartbeat:
    """Prolongs a lease from a thread of its own, three times per lease, until the block ends.

    A beat that fails is tried again; when the lease is lost, the block goes on and publishing is what refuses.
    """

    def __init__(self, metastore: Metastore, commit_id: str, attempt: int, lease: float) -> None:
        self._metastore = metastore
        self._commit_id = commit_id
        self._attempt = attempt
        self._lease = lease
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._beat, name=f"lease of {commit_id}", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()

    def _beat(self) -> None:
        while not self._ended.wait(self._lease / _BEATS_PER_LEASE):
            try:
                self._metastore.heartbeat(self._commit_id, attempt=self._attempt, lease=self._lease)
            except LeaseExpired:
                return
            except WindrowError as error:
                _log.warning("heartbeat of commit %s failed and will be tried again: %s", self._commit_id, error)
