"""The Nth-fault loop: a scenario is run again and again, and each time another of its operations fails.

It ends when a run got by without a fault, so that every operation has failed once in every way. After each fault the
lake is opened anew and has to be as it was or as it should be; then the scenario is run again and has to succeed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tests.proofs.faulty_metastore import DatabaseFault, FaultyMetastore
from tests.proofs.worlds import World

from windrow.errors import WindrowError
from windrow.lake import Lake
from windrow.testing.faulty import Fault, FaultKind, FaultyStore


@dataclass(frozen=True, slots=True)
class Scenario:
    """What is done to a lake, and what has to hold of it afterwards, whatever failed on the way."""

    name: str
    prepare: Callable[[World], None]
    act: Callable[[Lake], None]
    """May raise errors of Windrow's own, and nothing else."""
    check: Callable[[World, Lake], None]
    """Called after a fault, with a lake that was opened anew."""
    finish: Callable[[World, Lake], None]
    """Called after the act was repeated without a fault."""


def every_fault(scenario: Scenario, folder: Path, *, stride: int = 1, local: bool = False) -> Counter[str]:
    """Let every operation fail once in every way, and return how many faults there were, by the verbs of stores.

    With a stride, of the operations of the database only every so many-th fails, another one for each kind of fault.
    With `local`, the lake is a folder, whose operations on local files fail too, and the database is left alone.
    """
    first = World(_made(folder / "first"), local=local)
    scenario.prepare(first)
    faults: Counter[str] = Counter()
    for number, (kind, step) in enumerate(_LOCAL_KINDS if local else _kinds(stride)):
        nth = 1 + number % step
        while struck := _one(scenario, first.copy(_made(folder / f"{number}-{nth}")), kind, nth):
            faults += struck
            nth += step
    return faults


_LOCAL_KINDS: tuple[tuple[FaultKind, int], ...] = ((FaultKind.ERROR, 1), (FaultKind.SHORT, 1), (FaultKind.FULL, 1))


def _kinds(stride: int) -> Iterator[tuple[FaultKind | DatabaseFault, int]]:
    yield from ((kind, 1) for kind in (FaultKind.ERROR, FaultKind.TORN, FaultKind.LOST, FaultKind.TIMEOUT))
    yield from ((kind, stride) for kind in DatabaseFault)


def _one(scenario: Scenario, world: World, kind: FaultKind | DatabaseFault, nth: int) -> Counter[str]:
    """Let one operation fail; return what failed."""
    with _disturbed(world, kind, nth) as lake:
        faulty = lake.context.metastore if isinstance(kind, DatabaseFault) else lake.context.store
        with suppress(WindrowError):
            scenario.act(lake)
    land = getattr(faulty, "land", None)
    if land is not None:
        land()
    with world.open() as lake:
        scenario.check(world, lake)
    # What a dead process held runs out.
    world.clock.advance(4000)
    with world.open() as lake:
        scenario.act(lake)
        scenario.finish(world, lake)
    if isinstance(kind, DatabaseFault):
        return Counter({"database": 1} if getattr(faulty, "fired", 0) else {})
    return Counter(getattr(faulty, "struck", {}))


def _disturbed(world: World, kind: FaultKind | DatabaseFault, nth: int) -> Lake:
    """Open a lake in which one operation will fail."""
    if isinstance(kind, DatabaseFault):
        return world.open(metastore=lambda url, store: FaultyMetastore(url, store, kind, nth, clock=world.clock))
    return world.open(lambda store: FaultyStore(store, Fault(kind, nth), paths=True))


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True)
    return folder
