"""Two transactions in every order of their phases: for two of four phases each, that is 70 orders.

A transaction is a function that runs in a thread of its own and stops before the calls that begin its phases; a walker
lets the two go on by turns. What runs is the real thing, only when it runs is decided here.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator
from itertools import combinations
from typing import Any

from windrow.errors import WindrowError

_PATIENCE = 120.0


def orders(phases: int = 4) -> Iterator[str]:
    """Yield every order of the phases of two transactions, as a word of a and b."""
    for places in combinations(range(2 * phases), phases):
        yield "".join("a" if place in places else "b" for place in range(2 * phases))


class Actor:
    """A transaction that goes on when it is told to; `error` is what of Windrow's own it raised."""

    def __init__(self, run: Callable[[Callable[[], None]], Any]) -> None:
        self.error: WindrowError | None = None
        self.result: Any = None
        self._bug: BaseException | None = None
        self._go, self._stopped = threading.Semaphore(0), threading.Semaphore(0)
        self._ended = False
        self._thread = threading.Thread(target=self._run, args=(run,), daemon=True)
        self._thread.start()

    def step(self) -> None:
        """Let it go on up to its next stop, or its end."""
        if self._ended:
            return
        self._go.release()
        assert self._stopped.acquire(timeout=_PATIENCE), "the transaction neither stops nor ends"
        if self._bug is not None:
            raise self._bug

    def finish(self) -> None:
        """Let it go on to its end."""
        while not self._ended:
            self.step()
        self._thread.join()

    def _pause(self) -> None:
        self._stopped.release()
        self._go.acquire()

    def _run(self, run: Callable[[Callable[[], None]], Any]) -> None:
        self._go.acquire()
        try:
            self.result = run(self._pause)
        except WindrowError as error:
            self.error = error
        except BaseException as bug:  # shown where the walker is
            self._bug = bug
        self._ended = True
        self._stopped.release()


class Stopping:
    """Stands for another object and stops once before each of some calls, in whatever order they come."""

    def __init__(self, inner: Any, names: Collection[str], pause: Callable[[], None]) -> None:
        self._inner, self._names, self._pause = inner, set(names), pause

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if name not in self._names:
            return found

        def stopping(*args: Any, **kwargs: Any) -> Any:
            if name in self._names:
                self._names.discard(name)
                self._pause()
            return found(*args, **kwargs)

        return stopping


def walk(order: str, a: Actor, b: Actor) -> None:
    """Let two transactions go on in an order, then to their ends."""
    for letter in order:
        (a if letter == "a" else b).step()
    a.finish()
    b.finish()
