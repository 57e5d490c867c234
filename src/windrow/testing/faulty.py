"""A store that fails on plan, to show that nothing is lost whichever call fails and however it does.

The usual test fails the first call of a scenario, then the second, and so on until a run gets by without a fault:

    for nth in itertools.count(1):
        store = FaultyStore(open_store("memory://"), Fault(FaultKind.LOST, nth))
        run_scenario(store)
        check_nothing_is_broken(store.store)
        if not store.fired:
            break
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar, cast

from windrow.errors import InvalidInput, NotFound, StorageError, WindrowError
from windrow.storage.protocol import FileVerb, ObjectInfo, Store, Verb
from windrow.storage.wrapping import Call, StoreWrapper

__all__ = ["Fault", "FaultKind", "FaultyStore"]

Result = TypeVar("Result")

_WRITES = frozenset({"put", "put_if_absent"})
_CHANGES = _WRITES | {"delete", "remove_unfinished"}
_BY_NAME = frozenset({"get", "get_ranges", "get_suffix", "head", "open", "read_each"})
_BY_RANGE = frozenset({"get_ranges", "read_at", "read_each"})


class FaultKind(StrEnum):
    """What goes wrong."""

    ERROR = "error"
    """The call fails and has no effect."""
    TORN = "torn"
    """The first bytes of an object are written, then the call fails; happens to writes only."""
    LOST = "lost"
    """The call has its effect, but its answer is lost: the caller sees a failure."""
    TIMEOUT = "time-out"
    """The caller gives up waiting and sees a failure; the change has its effect later, at `land`."""
    DELAY = "delay"
    """The call is late and succeeds."""
    MISSING = "missing"
    """The object is not there; happens to reads that go by its name only."""
    SHORT = "short"
    """The object ends before the range that is read; happens to reads of ranges only."""
    FULL = "full"
    """Nothing is written, since the disk is full; happens to writes only."""


_STRIKES = {
    FaultKind.TORN: _WRITES,
    FaultKind.FULL: _WRITES,
    FaultKind.MISSING: _BY_NAME,
    FaultKind.SHORT: _BY_RANGE,
}
"""The verbs of faults that happen to some only."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One planned fault: at the `nth` call that it can strike, counted from 1, or at that one and all after it."""

    kind: FaultKind
    nth: int = 1
    verb: Verb | FileVerb | None = None
    """Strike calls of this verb only."""
    onwards: bool = False
    """Strike every call from the `nth` on."""
    keep: int | None = None
    """How many bytes of a torn write land; half of them if not given."""
    seconds: float = 1.0
    """How long a delay is."""
    retryable: bool = True
    """What the error says of itself; that of a missing or short object and of a full disk is never retryable."""

    def __post_init__(self) -> None:
        if self.nth < 1:
            raise InvalidInput(f"fault at call {self.nth}: calls are counted from 1; give a number from 1 on")

    def can_strike(self, call: Call) -> bool:
        """Whether a call counts for this fault."""
        verbs = _STRIKES.get(self.kind)
        return self.verb in {None, call.verb} and (verbs is None or call.verb in verbs)

    def strikes(self, number: int) -> bool:
        """Whether this fault strikes the call of this number among those that count for it."""
        return number == self.nth or (self.onwards and number > self.nth)


class FaultyStore(StoreWrapper):
    """Hands calls on to `store`, except where the plan has a fault; if two would strike a call, the first does.

    `calls` counts the calls by verb, `struck` those of them that were struck, and `fired` is the sum of these;
    `struck_calls` are these calls themselves. A listing is called with its first object. Calls for local files are
    struck like others. A missing or short object among many that are read at once has no bytes, which is how a store
    reports one.
    """

    def __init__(
        self,
        store: Store,
        plan: Fault | Iterable[Fault] = (),
        *,
        sleep: Callable[[float], None] = time.sleep,
        paths: bool = False,
    ) -> None:
        super().__init__(store, paths=paths)
        self.plan = (plan,) if isinstance(plan, Fault) else tuple(plan)
        self.calls: Counter[str] = Counter()
        self.struck: Counter[str] = Counter()
        self.struck_calls: list[Call] = []
        self._counted = [0] * len(self.plan)
        self._late: list[Callable[[], object]] = []
        self._sleep = sleep
        self._lock = threading.Lock()

    @property
    def fired(self) -> int:
        """How many faults struck."""
        return self.struck.total()

    def around(self, call: Call, run: Callable[[], Result]) -> Result:
        """Make a call, or let it fail."""
        fault = self._next_fault(call)
        if fault is None:
            return run()
        if fault.kind == FaultKind.DELAY:
            self._sleep(fault.seconds)
            return run()
        if fault.kind == FaultKind.TORN:
            self._write_torn(call, fault)
        elif fault.kind == FaultKind.LOST:
            run()
        elif fault.kind == FaultKind.TIMEOUT and call.verb in _CHANGES:
            self._late.append(run)
        elif fault.kind in {FaultKind.MISSING, FaultKind.SHORT} and call.verb == "read_each":
            return cast("Result", None)
        raise _failure(call, fault)

    def land(self) -> None:
        """Let changes have their effect whose callers have given up; what cannot be done any more is not."""
        while self._late:
            with suppress(WindrowError):
                self._late.pop(0)()

    def around_list(self, call: Call, listing: Iterator[ObjectInfo]) -> Iterator[ObjectInfo]:
        """Hand a listing on, or let it fail: before its first object, or after its last where the answer is lost."""
        fault = self._next_fault(call)
        if fault is not None and fault.kind == FaultKind.DELAY:
            self._sleep(fault.seconds)
        elif fault is not None and fault.kind in {FaultKind.ERROR, FaultKind.TIMEOUT}:
            raise _failure(call, fault)
        yield from listing
        if fault is not None and fault.kind == FaultKind.LOST:
            raise _failure(call, fault)

    def _next_fault(self, call: Call) -> Fault | None:
        with self._lock:
            self.calls[call.verb] += 1
            for place, fault in enumerate(self.plan):
                self._counted[place] += fault.can_strike(call)
            striking = (
                fault
                for fault, number in zip(self.plan, self._counted, strict=True)
                if fault.can_strike(call) and fault.strikes(number)
            )
            first = next(striking, None)
            if first is not None:
                self.struck[call.verb] += 1
                self.struck_calls.append(call)
            return first

    def _write_torn(self, call: Call, fault: Fault) -> None:
        data = bytes(call.data)
        torn = data[: len(data) // 2 if fault.keep is None else fault.keep]
        if call.verb == "put":
            self.store.put(call.key, torn)
        else:
            self.store.put_if_absent(call.key, torn)


def _failure(call: Call, fault: Fault) -> WindrowError:
    problem = f"{call.key}: planned fault ({fault.kind}) in {call.verb}; take it off the plan to get through"
    if fault.kind == FaultKind.MISSING:
        return NotFound(problem)
    lasts = fault.kind in {FaultKind.SHORT, FaultKind.FULL}
    return StorageError(problem, retryable=fault.retryable and not lasts)
