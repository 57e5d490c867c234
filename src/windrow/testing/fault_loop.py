"""The Nth-fault loop: a scenario is run again and again, and each time another of its operations fails.

It ends when a run got by without a fault, so that every operation has failed once in every way. After each fault the
lake is opened anew and has to be as it was or as it should be; then the scenario is run again and has to succeed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from windrow.errors import WindrowError
from windrow.lake import Lake
from windrow.testing.faulty import Fault, FaultKind, FaultyStore
from windrow.testing.faulty_metastore import DatabaseFault, FaultyMetastore
from windrow.testing.worlds import World

__all__ = ["Scenario", "every_fault"]


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


def every_fault(scenario: Scenario, folder: Path, *, stride: int = 1) -> int:
    """Let every operation fail once in every way, and return how many faults there were.

    With a stride, of the operations of the database only every so many-th fails, another one for each kind of fault.
    """
    first = World(_made(folder / "first"))
    scenario.prepare(first)
    faults = 0
    for number, (kind, step) in enumerate(_kinds(stride)):
        nth = 1 + number % step
        while _one(scenario, first.copy(_made(folder / f"{number}-{nth}")), kind, nth):
            faults += 1
            nth += step
    return faults


def _kinds(stride: int) -> Iterator[tuple[FaultKind | DatabaseFault, int]]:
    yield from ((kind, 1) for kind in (FaultKind.ERROR, FaultKind.TORN, FaultKind.LOST, FaultKind.TIMEOUT))
    yield from ((kind, stride) for kind in DatabaseFault)


def _one(scenario: Scenario, world: World, kind: FaultKind | DatabaseFault, nth: int) -> bool:
    """Let one operation fail; say whether it did."""
    with _disturbed(world, kind, nth) as lake:
        faulty = lake.context.metastore if isinstance(kind, DatabaseFault) else lake.context.store
        with suppress(WindrowError):
            scenario.act(lake)
    if isinstance(faulty, FaultyStore):
        faulty.land()
    with world.open() as lake:
        scenario.check(world, lake)
    # What a dead process held runs out.
    world.clock.advance(4000)
    with world.open() as lake:
        scenario.act(lake)
        scenario.finish(world, lake)
    return bool(getattr(faulty, "fired", 0))


def _disturbed(world: World, kind: FaultKind | DatabaseFault, nth: int) -> Lake:
    """Open a lake in which one operation will fail."""
    if isinstance(kind, DatabaseFault):
        return world.open(metastore=lambda url, store: FaultyMetastore(url, store, kind, nth, clock=world.clock))
    return world.open(lambda store: FaultyStore(store, Fault(kind, nth)))


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True)
    return folder
