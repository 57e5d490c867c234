"""Threads of engines that call back into Python: they stay known to it, so that the next call costs less.

A thread that Python did not start is new to it at every call: what Python needs of it is made, and taken away when the
call ends. Giving that memory back stops the other cores for a moment, once for every read of a virtual file.
"""

from __future__ import annotations

import ctypes
import os
import threading
from typing import Final

__all__ = ["keep_thread"]

MOST_KEPT: Final = 128
"""What is kept of a thread, about 17 KiB, outlives it. Threads beyond these are new at every call."""

_room = threading.Semaphore(MOST_KEPT)


def _after_fork() -> None:
    """A forked child has none of the threads that were kept."""
    global _room  # noqa: PLW0603 (tests put another one in its place)
    _room = threading.Semaphore(MOST_KEPT)


os.register_at_fork(after_in_child=_after_fork)


class _Known(threading.local):
    """Of a thread that is not kept this is new at every call, too."""

    is_seen = False


_known = _Known()


def keep_thread() -> None:
    """Keep the thread that calls, if it is an engine's and there is room."""
    if _known.is_seen:
        return
    _known.is_seen = True
    me = threading.get_native_id()
    if all(thread.native_id != me for thread in threading.enumerate()) and _room.acquire(blocking=False):
        # A thread is forgotten when as many claims to it ended as were made: the call that we are in ends one.
        ctypes.pythonapi.PyGILState_Ensure()
