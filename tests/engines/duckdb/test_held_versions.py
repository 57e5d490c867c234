"""A query reads one version, whatever becomes of its files meanwhile."""

from __future__ import annotations

import threading

import pytest
from tests.proofs.worlds import World, compact, points, visible

import windrow
from windrow.errors import SnapshotExpired
from windrow.storage.wrapping import StoreWrapper

QUERY = "select count(*) as n, sum(value) as total from events where value >= {}"


class Meanwhile(StoreWrapper):
    """Does something else when the first byte of data is asked for."""

    def __init__(self, store):
        super().__init__(store)
        self.then = None
        self._lock = threading.Lock()

    def around(self, call, run):
        if call.verb == "get_ranges" and call.key.endswith(".parquet"):
            with self._lock:
                then, self.then = self.then, None
            if then is not None:
                then()
        return run()

    def around_list(self, call, listing):
        return listing


@pytest.fixture
def world(tmp_path):
    return World(tmp_path)


@pytest.fixture
def meanwhile(world):
    return Meanwhile(world.store)


@pytest.fixture
def reader(world, meanwhile):
    with world.open(lambda _: meanwhile) as opened:
        opened.create_table("events", sort="host|timestamp/V2", window="15m", mirror=False)
        yield opened


def merge_and_collect(world):
    """What others do: merge everything and delete what nobody holds."""
    with world.open() as other:
        table = other.table("events")
        compact(table, visible(table))
        return table.upkeep.gc.run(grace=0)


def rounds():
    return pytest.mark.parametrize("count", [25, pytest.param(500, marks=pytest.mark.long)])


@rounds()
def test_a_query_whose_files_are_replaced_and_collected_returns_the_rows_of_its_version(
    world, reader, meanwhile, count
):
    events, collected = reader.table("events"), []
    for number in range(1, count + 1):
        events.ingest(points(1, 2, 3))
        meanwhile.then = lambda: collected.append(merge_and_collect(world).retired_splits)
        (row,) = reader.sql(QUERY.format(-number)).to_dict()
        assert row == {"n": 3 * number, "total": 3 * number}
    assert len(collected) == count
    # What was held then is collected later: nothing is left over.
    assert sum(collected) + reader.table("events").upkeep.gc.run(grace=0).retired_splits == 2 * count - 1


@rounds()
def test_queries_beside_writers_mergers_and_collectors_see_whole_batches(tmp_path, count):
    with windrow.connect(tmp_path) as lake:
        table = lake.create_table("events", sort="host|timestamp/V2", window="15m", mirror=False)
        table.ingest(points(1, 2, 3))
        stop = threading.Event()
        problems = []

        def work():
            try:
                with windrow.connect(tmp_path) as other:
                    mine = other.table("events")
                    while not stop.is_set():
                        mine.ingest(points(1, 2, 3))
                        compact(mine, visible(mine))
                        mine.upkeep.gc.run(grace=0)
            except BaseException as error:
                problems.append(error)

        worker = threading.Thread(target=work)
        worker.start()
        seen = 0
        try:
            for number in range(count):
                (row,) = lake.sql(QUERY.format(-number)).to_dict()
                assert row["n"] == row["total"] >= seen
                assert row["n"] % 3 == 0
                seen = row["n"]
        finally:
            stop.set()
            worker.join()
        assert not problems


def test_a_query_that_outlives_its_pin_says_that_the_snapshot_expired(world, reader, meanwhile):
    reader.table("events").ingest(points(1, 2, 3))

    def stopped_for_long():
        world.clock.advance(3600)
        merge_and_collect(world)

    reader.table("events").ingest(points(4))
    meanwhile.then = stopped_for_long
    with pytest.raises(SnapshotExpired, match="snapshot expired"):
        reader.sql(QUERY.format(0))
    (row,) = reader.sql(QUERY.format(-1)).to_dict()
    assert row["n"] == 4


def test_an_old_version_is_read_until_its_grace_period_ends(world, reader):
    events = reader.table("events")
    events.ingest(points(1, 2, 3))
    old = events.at(version=1)
    events.ingest(points(4))
    with old.relation().hold() as hold:
        hold.check()
    merge_and_collect(world)
    reader.context.pins.let_go()
    merge_and_collect(world)
    with pytest.raises(SnapshotExpired, match="version 1 .* is no longer kept"):
        old.relation().hold()
