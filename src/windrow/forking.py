"""What a forked child makes anew: threads, locks and connections of its parent are of no use to it.

A fork copies the thread that calls it and no other. A lock that another thread held then is held for ever in the child,
a queue has nobody who works on it, and a connection is shared with the parent. So objects that own such a thing
register here. In the child each begins anew before anything else runs. Locks inside of libraries are out of
reach, so a fork waits for a moment at which nobody is in one of them.
"""

from __future__ import annotations

import os
import sys
import threading
import time
import weakref
from collections.abc import Iterator
from functools import cached_property
from typing import Any, Protocol

__all__ = ["register", "was_free", "working"]

_WAITS = 10.0
"""Seconds; work that takes longer is not waited for."""


class Forked(Protocol):
    """Something with a part that does not survive a fork."""

    def after_fork(self) -> None:
        """Begin anew, in the child."""


_all: dict[int, weakref.ref[Any]] = {}
"""By id, since things that are equal need not be the same."""


def register(thing: Forked) -> None:
    """Call `after_fork` of a thing in each child that is forked while it exists.

    One that has `before_fork` is called in the parent, too, while nobody is `working`.
    """
    key = id(thing)
    # The reference of an earlier thing with this id is called before a later one can have it.
    _all[key] = weakref.ref(thing, lambda _: _all.pop(key, None))


class _Gate:
    """Counts the threads that are inside; shut while the process is forked, but for those that are inside already.

    Entering takes no lock: a thread adds its entry, then reads the flag. Shutting sets the flag, then reads the
    entries. At least one of the two sees the other.
    """

    def __init__(self) -> None:
        self._inside: dict[int, int] = {}
        """A thread alone changes the number of its own."""
        self._change = threading.Condition(threading.Lock())
        self._is_shut = False

    def enter(self, thread: int) -> None:
        """Let a thread in, once more where it is inside already."""
        if thread in self._inside:
            self._inside[thread] += 1
            return
        self._inside[thread] = 1
        while self._is_shut:
            self.leave(thread)
            with self._change:
                self._change.wait_for(lambda: not self._is_shut)
            self._inside[thread] = 1

    def leave(self, thread: int) -> None:
        """Let a thread out as often as it came in."""
        if self._inside[thread] > 1:
            self._inside[thread] -= 1
            return
        del self._inside[thread]
        if self._is_shut:
            with self._change:
                self._change.notify_all()

    def shut(self) -> None:
        """Let nobody in, and wait until all others are out; not for ever."""
        deadline, me = time.monotonic() + _WAITS, threading.get_ident()
        with self._change:
            self._is_shut = True
            while any(each != me for each in list(self._inside)) and (left := deadline - time.monotonic()) > 0:
                self._change.wait(left)

    def open(self) -> None:
        with self._change:
            self._is_shut = False
            self._change.notify_all()


_gate = _Gate()


class _Working:
    """A block of one thread; a query has several, so that none of them may cost much."""

    __slots__ = ("_gate", "_thread")

    def __enter__(self) -> None:
        self._gate, self._thread = _gate, threading.get_ident()
        self._gate.enter(self._thread)

    def __exit__(self, *_: object) -> None:
        self._gate.leave(self._thread)


def working() -> _Working:
    """For a block that is in a library which does not survive a fork in the middle: the process is not forked then."""
    return _Working()


def was_free(lock: threading.Lock | threading.RLock) -> bool:
    """Whether nobody held a lock when the process was forked, so that what it guards is whole."""
    return lock.acquire(blocking=False)


def _alive() -> Iterator[Any]:
    for reference in list(_all.values()):
        thing = reference()
        if thing is not None:
            yield thing


def _before() -> None:
    _gate.shut()
    for thing in _alive():
        if hasattr(thing, "before_fork"):
            thing.before_fork()


def _free_properties() -> None:
    """Before Python 3.12 a cached property has a lock, which all objects of its class share."""
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == __package__:
            for kind in list(vars(module).values()):
                for each in list(vars(kind).values()) if isinstance(kind, type) else ():
                    if isinstance(each, cached_property) and hasattr(each, "lock"):
                        each.lock = threading.RLock()


def _open_gate() -> None:
    _gate.open()


def _after_in_child() -> None:
    global _gate  # noqa: PLW0603 (that of the parent counts threads which are not here)
    _gate = _Gate()
    _free_properties()
    for thing in _alive():
        thing.after_fork()


os.register_at_fork(before=_before, after_in_parent=_open_gate, after_in_child=_after_in_child)
