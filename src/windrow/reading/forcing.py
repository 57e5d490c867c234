"""A source that reads are made to take, for tests and diagnosis."""

from __future__ import annotations

import threading
from collections import Counter

from windrow.model.sources import SourceKind

__all__ = ["Forcing"]


class Forcing:
    """Makes reads take one kind of source where it can serve them, and the virtual file elsewhere; None forces nothing.

    `taken` counts the sources that reads had, so that a test can tell what it has tested.
    """

    def __init__(self, kind: SourceKind | None = None) -> None:
        self.kind = kind
        self.taken: Counter[SourceKind] = Counter()
        self._lock = threading.Lock()

    def count(self, kind: SourceKind) -> None:
        """A read has a source of this kind."""
        with self._lock:
            self.taken[kind] += 1
