"""A store that writes down every call, to show in which order things happen and what they cost."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TypeVar

from windrow.storage.protocol import FileVerb, ObjectInfo, Store, Verb
from windrow.storage.wrapping import Call, StoreWrapper, received

__all__ = ["Recorded", "RecordingStore"]

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Recorded:
    """One call: its verb and key (for a listing, `key` is the prefix), bytes sent and received, and how it ended.

    `outcome` is `running`, `ok`, or the name of the class of the error; `abandoned` is a listing that was not read to
    its end.
    """

    verb: Verb | FileVerb
    key: str
    sent: int
    received: int = 0
    outcome: str = "running"


class RecordingStore(StoreWrapper):
    """Writes down the calls to `store`, and to its local files, in the order in which they begin."""

    def __init__(self, store: Store, *, paths: bool = False) -> None:
        super().__init__(store, paths=paths)
        self._lock = threading.Lock()
        self._calls: list[Recorded] = []

    @property
    def calls(self) -> tuple[Recorded, ...]:
        """The calls up to now."""
        with self._lock:
            return tuple(self._calls)

    def around(self, call: Call, run: Callable[[], Result]) -> Result:
        """Write a call down."""
        with self._recording(call) as came:
            result = run()
            came.append(received(result))
        return result

    def around_list(self, call: Call, listing: Iterator[ObjectInfo]) -> Iterator[ObjectInfo]:
        """Write a listing down, from its first object on."""
        with self._recording(call):
            yield from listing

    @contextmanager
    def _recording(self, call: Call) -> Iterator[list[int]]:
        began = Recorded(call.verb, call.key, sent=memoryview(call.data).nbytes)
        with self._lock:
            place = len(self._calls)
            self._calls.append(began)
        came: list[int] = []
        outcome = "ok"
        try:
            yield came
        except GeneratorExit:
            outcome = "abandoned"
            raise
        except BaseException as error:
            outcome = type(error).__name__
            raise
        finally:
            with self._lock:
                self._calls[place] = replace(began, received=sum(came), outcome=outcome)
