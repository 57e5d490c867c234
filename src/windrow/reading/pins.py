"""Versions that are held while they are read, so that garbage collection leaves what readers need.

    with pins.hold(table_id, version) as hold:
        ...

All readers of one lake object share a pin for each version. It is kept for a while after its last use and prolonged by
one thread, so that the next question about an unchanged table costs the metastore no write. A pin that ran out all the
same, because the process was stopped or the metastore was gone for too long, is the error "snapshot expired" and not a
missing file: whoever misses one asks `Hold.check` first.
"""

from __future__ import annotations

import itertools
import logging
import os
import platform
import threading
import time
import weakref
from collections.abc import Callable
from contextlib import suppress

from windrow import forking
from windrow.closing import Closing
from windrow.errors import Closed, MetastoreError, SnapshotExpired, WindrowError
from windrow.metastore import Metastore, Pin, SplitQuery

__all__ = ["Hold", "Pins"]

_log = logging.getLogger(__name__)
_SECONDS = 60.0
_BEATS = 3
_Key = tuple[str, int]
_numbers = itertools.count(1)


class _Shared:
    """One pin and those who share it. Without a pin the grace period of garbage collection has to do."""

    __slots__ = ("idle_since", "key", "pin", "until", "users")

    def __init__(self, key: _Key, pin: Pin | None, until: float) -> None:
        self.key = key
        self.pin = pin
        self.until = until
        """By our own clock it holds until then, or longer."""
        self.users = 0
        self.idle_since = 0.0


class Hold(Closing):
    """One reader's hold on a version; it ends when it is closed."""

    def __init__(self, pins: Pins, shared: _Shared) -> None:
        self._pins = pins
        self._shared: _Shared | None = shared
        self.table_id, self.version = shared.key

    @property
    def owner(self) -> int:
        """A number that all holds of one lake object share, and no others in this process."""
        return self._pins.number

    def on_close(self, stop: Callable[[], None]) -> None:
        """Have something called when the lake is closed while this is held."""
        self._pins.stop_on_close(self, stop)

    def check_open(self) -> None:
        """Raise `Closed` when the lake was closed: files may go away then."""
        self._pins.check_open()

    def check(self) -> None:
        """Raise SnapshotExpired when the version is no longer held: a missing file is then no damage."""
        self._pins.check(self.table_id, self.version)

    def close(self) -> None:
        """Let go; doing it twice is fine."""
        shared, self._shared = self._shared, None
        if shared is not None:
            self._pins.leave(shared)
            self._pins.stop_on_close(self, None)

    def __del__(self) -> None:
        self.close()


class Pins:
    """The pins of one lake object. `seconds` is how long a pin lasts, and stays after its last use."""

    def __init__(
        self,
        metastore: Metastore,
        new_id: Callable[[], str],
        *,
        seconds: float = _SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.number = next(_numbers)
        self._metastore = metastore
        self._new_id = new_id
        self._seconds = seconds
        self._clock = clock
        self._is_closed = False
        self._begin()
        forking.register(self)

    def _begin(self) -> None:
        self._owner = f"a reader on {platform.node() or 'this machine'}, process {os.getpid()}"
        self._shared: dict[_Key, _Shared] = {}
        self._stops: dict[int, Callable[[], None]] = {}
        # Holds that nobody closed are closed by the collector of Python, wherever this thread is just then.
        self._lock = threading.RLock()
        # Waiting for the metastore must not keep others from letting go.
        self._pinning = threading.Lock()
        self._ended: threading.Event | None = None

    def after_fork(self) -> None:
        """Pin for itself, in a forked child: the pins that there are belong to the parent."""
        self._begin()

    def hold(self, table_id: str, version: int) -> Hold:
        """Hold a version until the hold is closed; SnapshotExpired when it is not kept any more."""
        self.check_open()
        key = table_id, version
        shared = self._join(key)
        if shared is None:
            with self._pinning:
                shared = self._join(key) or self._pin(key)
            self._release([each for each in self._idle() if each.key[0] == table_id and each.key[1] < version])
        return Hold(self, shared)

    def leave(self, shared: _Shared) -> None:
        """One reader less."""
        with self._lock:
            shared.users -= 1
            shared.idle_since = self._clock()

    def check_open(self) -> None:
        """Raise `Closed` when everything was released."""
        if self._is_closed:
            raise Closed("the lake was closed; connect again")

    def stop_on_close(self, hold: Hold, stop: Callable[[], None] | None) -> None:
        """Call something when everything is released before a hold is closed; None is nothing."""
        with self._lock:
            if stop is None:
                self._stops.pop(id(hold), None)
            else:
                self._stops[id(hold)] = stop

    def check(self, table_id: str, version: int) -> None:
        """Raise SnapshotExpired when a version is no longer held, or kept."""
        with self._lock:
            shared = self._shared.get((table_id, version))
        pin = None if shared is None else shared.pin
        for _ in self._metastore.splits(table_id, pin or version, SplitQuery(), page_size=1):
            return

    def let_go(self, table_id: str | None = None) -> None:
        """Release what nobody reads just now: all of it, or the versions of one table."""
        self._release([each for each in self._idle() if table_id in (None, each.key[0])])

    def close(self) -> None:
        """Release everything, whoever reads: they are told to stop."""
        self._is_closed = True
        with self._lock:
            stops, self._stops = list(self._stops.values()), {}
            if self._ended is not None:
                self._ended.set()
            self._ended = None
            left, self._shared = list(self._shared.values()), {}
        for stop in stops:
            # A reader that has just ended has nothing to stop.
            with suppress(Exception):
                stop()
        for each in left:
            self._unpin(each)

    def renew(self) -> None:
        """Prolong the pins that are read or were just read, and release the others; the thread does it in time."""
        now = self._clock()
        self._release([each for each in self._idle() if now - each.idle_since >= self._seconds])
        with self._lock:
            shared = list(self._shared.values())
        for each in shared:
            self._prolong(each)

    def _join(self, key: _Key) -> _Shared | None:
        with self._lock:
            shared = self._shared.get(key)
            if shared is None or self._clock() >= shared.until:
                return None
            shared.users += 1
            return shared

    def _pin(self, key: _Key) -> _Shared:
        table_id, version = key
        # By a clock that was read before, nobody takes a pin for alive that is not.
        until = self._clock() + self._seconds
        pin = None
        try:
            pin = self._metastore.pin(
                table_id, version, pin_id=self._new_id(), owner=self._owner, seconds=self._seconds
            )
        except MetastoreError as error:
            # Whoever may only read the metastore can still read tables.
            _log.warning("version %d is read without a pin, which could not be written: %s", version, error)
        shared = _Shared(key, pin, until)
        shared.users = 1
        with self._lock:
            self._shared[key] = shared
            if self._ended is None:
                self._ended = threading.Event()
                # A lake that is dropped unclosed ends its thread; its pins run out.
                weakref.finalize(self, self._ended.set).atexit = False
                given = weakref.ref(self), self._ended, self._seconds / _BEATS
                threading.Thread(target=_keep, args=given, name="windrow pins", daemon=True).start()
        return shared

    def beat(self, ended: threading.Event) -> bool:
        """Prolong the pins; whether there are any left, so that the thread goes on."""
        self.renew()
        with self._lock:
            if self._ended is ended and not self._shared:
                self._ended = None
                return False
        return True

    def _prolong(self, shared: _Shared) -> None:
        until = self._clock() + self._seconds
        try:
            if shared.pin is not None:
                shared.pin = self._metastore.renew(shared.pin, seconds=self._seconds)
                shared.until = until
        except SnapshotExpired:
            # Readers that are on their way meet it when they miss a file; new ones pin anew.
            shared.until = 0.0
        except WindrowError as error:
            _log.warning("a pin on version %d was not prolonged and will be tried again: %s", shared.key[1], error)

    def _idle(self) -> list[_Shared]:
        with self._lock:
            return [each for each in self._shared.values() if not each.users]

    def _release(self, some: list[_Shared]) -> None:
        for each in some:
            with self._lock:
                if each.users or self._shared.get(each.key) is not each:
                    continue
                del self._shared[each.key]
            self._unpin(each)

    def _unpin(self, shared: _Shared) -> None:
        # One that cannot be released runs out by itself.
        with suppress(WindrowError):
            if shared.pin is not None:
                self._metastore.release(shared.pin)


def _keep(reference: weakref.ref[Pins], ended: threading.Event, pause: float) -> None:
    """Prolong the pins of a lake object for as long as there is one."""
    while not ended.wait(pause):
        pins = reference()
        if pins is None or not pins.beat(ended):
            return
        del pins
