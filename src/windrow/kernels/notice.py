"""Says that kernels are being compiled, where somebody waits for it.

Kernels are compiled at their first use in an installation and cached on disk. That takes up to a minute in all;
without a word it looks like a hang.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

from numba.core import event as _event
from numba.core.event import Listener

__all__ = ["Notice", "notice"]

_log = logging.getLogger("windrow.kernels")
_COMPILING = "numba:compile"
_PATIENCE = 1.0
"""Seconds of compiling that need no word."""
_MESSAGE = (
    "compiling kernels: the first use of an installation takes up to a minute longer; "
    "`windrow compile` does it ahead of time"
)

_events = cast("Any", _event)  # the compiler has no type hints


class Notice(Listener):
    """Logs one warning in a process that has compiled for more than a second and goes on to compile.

    Events come under the compiler's lock, one after the other; a kernel that compiles another one nests.
    """

    def __init__(self, patience: float = _PATIENCE) -> None:
        self._patience = patience
        self._depth = 0
        self._started = 0.0
        self._spent = 0.0
        self._is_silent = False

    def on_start(self, event: Any) -> None:  # noqa: ARG002
        """A kernel begins to be compiled."""
        if not self._depth:
            self._started = time.monotonic()
        self._depth += 1
        spent = self._spent + time.monotonic() - self._started
        if spent > self._patience and not self._is_silent:
            self._is_silent = True
            _log.warning(_MESSAGE)

    def on_end(self, event: Any) -> None:  # noqa: ARG002
        """A kernel is compiled."""
        self._depth -= 1
        if not self._depth:
            self._spent += time.monotonic() - self._started

    @contextmanager
    def muted(self) -> Iterator[None]:
        """Say nothing meanwhile."""
        before, self._is_silent = self._is_silent, True
        try:
            yield
        finally:
            self._is_silent = before


notice = Notice()
"""The one of this process."""
_events.register(_COMPILING, notice)
