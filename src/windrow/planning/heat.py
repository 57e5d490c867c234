"""Which windows queries ask for, counted here and told to the metastore now and then: compaction begins with them."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable

from windrow import forking
from windrow.errors import WindrowError
from windrow.metastore import Metastore
from windrow.model.window import Window

__all__ = ["Heat"]

_log = logging.getLogger(__name__)
_EVERY = 30.0
"""Seconds between two writes to the metastore: no query should wait for one of its own."""


class Heat:
    """Counts queries by window; `close` tells the metastore of the last ones."""

    def __init__(self, metastore: Metastore, clock: Callable[[], float] = time.monotonic) -> None:
        self._metastore = metastore
        self._clock = clock
        self._counts: dict[str, Counter[int]] = {}
        self._told = clock()
        self._lock = threading.Lock()
        forking.register(self)

    def after_fork(self) -> None:
        """Count from nothing, in a forked child: the parent reports what was counted before."""
        self._counts, self._lock = {}, threading.Lock()

    def asked(self, table_id: str, windows: Iterable[Window | None]) -> None:
        """A query reads these windows; files without a window belong to none."""
        starts = {window.start for window in windows if window is not None and not window.overflow}
        with self._lock:
            self._counts.setdefault(table_id, Counter()).update(starts)
            if self._clock() - self._told < _EVERY:
                return
        self.close()

    def close(self) -> None:
        """Tell the metastore what was counted since it was last told; a count that cannot be kept is no error."""
        with self._lock:
            counts, self._counts = self._counts, {}
            self._told = self._clock()
        for table_id, queries in counts.items():
            if queries:
                try:
                    self._metastore.add_queries(table_id, queries)
                except WindrowError as error:
                    _log.debug("queries of %s are not counted: %s", table_id, error)
