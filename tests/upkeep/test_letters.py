"""Dead letters stay as long as their run counts, and no longer than the table's rows."""

from __future__ import annotations

import pytest
from tests.proofs.worlds import NOON, points

from windrow.errors import WindrowError
from windrow.testing import Fault, FaultKind, FaultyStore

DAY = 86_400


@pytest.fixture
def table(world, lake):
    world.clock.now = int(NOON.timestamp() * 1e6)
    return lake.create_table("events", sort="host|timestamp/V2", window="15m", mirror=False)


def letters(world):
    return {key for key in world.stored() if "_dead_letter" in key}


def drop_some(table):
    """One row of two is too old."""
    return table.ingest(points(-600, 1), drop_late=True, dead_letter=True, most_dropped=1)


def test_letters_of_a_published_run_stay(world, table):
    kept = set(drop_some(table).dead_letters)
    assert len(kept) == 1
    world.clock.advance(400 * DAY)
    assert table.upkeep.gc.run().orphan_files == 0
    assert letters(world) == kept


def test_letters_go_with_the_rows_that_are_beyond_retention(world, table):
    table.change.run(retention=30 * DAY)
    drop_some(table)
    world.clock.advance(30 * DAY)
    assert table.upkeep.gc.plan().orphan_files == 0
    world.clock.advance(2 * DAY)
    assert table.upkeep.gc.plan().orphan_files == 1
    assert table.upkeep.gc.run().orphan_files == 1
    assert letters(world) == set()


def test_letters_of_a_run_that_failed_go_after_the_grace_period(world, lake, table):
    kept = set(drop_some(table).dead_letters)
    lake.close()
    # Data, sidecar and letters are written, in some order; then nothing works any more.
    for nth in range(1, 8):
        fault = Fault(FaultKind.LOST, nth, onwards=True)
        with world.open(lambda store, fault=fault: FaultyStore(store, fault)) as broken, pytest.raises(WindrowError):
            drop_some(broken.table("events"))
        if letters(world) - kept:
            break
    failed = letters(world) - kept
    assert failed
    with world.open() as opened:
        gc = opened.table("events").upkeep.gc
        # The commit is open until its lease runs out.
        assert gc.run().orphan_files == 0
        world.clock.advance(3600)
        assert gc.run().young_files > 0
        assert failed <= letters(world)
        world.clock.advance(DAY)
        assert gc.run().orphan_files >= len(failed)
        assert letters(world) == kept
