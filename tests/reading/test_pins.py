"""A version that is read is held: shared by its readers, kept a while, prolonged, and let go in the end."""

from __future__ import annotations

import threading
import time

import pytest
from tests.proofs.worlds import World, compact, points, visible

from windrow.errors import MetastoreError, NotFound, SnapshotExpired
from windrow.reading.pins import Pins


class Clock:
    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


@pytest.fixture
def world(tmp_path):
    return World(tmp_path)


@pytest.fixture
def lake(world):
    with world.open() as opened:
        yield opened


@pytest.fixture
def table(lake):
    made = lake.create_table("events", sort="host|timestamp/V2", window="15m", mirror=False)
    made.ingest(points(1))
    return made


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def pins(world, lake, clock):
    made = Pins(lake.context.metastore, world.new_id, seconds=60, clock=clock)
    yield made
    made.close()


def held(table):
    return [pin.version for pin in table.context.metastore.pins(table.record().table_id)]


def move_on(world, clock, seconds):
    """Time goes by here and in the metastore."""
    clock.now += seconds
    world.clock.advance(seconds)


def replaced(table):
    """Merge what the table shows, and collect what nobody holds."""
    table.ingest(points(2))
    compact(table, visible(table))
    return table.upkeep.gc.run(grace=0)


class TestSharing:
    def test_readers_of_a_version_share_one_pin(self, table, pins):
        table_id = table.record().table_id
        with pins.hold(table_id, 1), pins.hold(table_id, 1):
            assert held(table) == [1]

    def test_the_next_reader_costs_no_write(self, table, pins, monkeypatch):
        table_id = table.record().table_id
        pins.hold(table_id, 1).close()
        monkeypatch.setattr(table.context.metastore, "pin", None)
        with pins.hold(table_id, 1):
            assert held(table) == [1]

    def test_threads_that_come_at_once_make_one(self, table, pins):
        table_id, holds = table.record().table_id, []
        threads = [threading.Thread(target=lambda: holds.append(pins.hold(table_id, 1))) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert (len(holds), held(table)) == (8, [1])

    def test_letting_go_twice_is_letting_go_once(self, table, pins):
        table_id = table.record().table_id
        first, second = pins.hold(table_id, 1), pins.hold(table_id, 1)
        first.close()
        first.close()
        pins.let_go()
        assert held(table) == [1]
        second.close()
        pins.let_go()
        assert held(table) == []

    def test_a_hold_that_nobody_closed_ends_with_its_object(self, table, pins):
        hold = pins.hold(table.record().table_id, 1)
        del hold
        pins.let_go()
        assert held(table) == []


class TestEnding:
    def test_a_newer_version_takes_the_place_of_one_that_nobody_reads(self, table, pins):
        table_id = table.record().table_id
        pins.hold(table_id, 1).close()
        table.ingest(points(2))
        with pins.hold(table_id, 2):
            assert held(table) == [2]

    def test_but_not_of_one_that_is_read(self, table, pins):
        table_id = table.record().table_id
        table.ingest(points(2))
        with pins.hold(table_id, 1), pins.hold(table_id, 2):
            assert held(table) == [1, 2]

    def test_a_pin_is_prolonged_while_it_is_read_and_a_while_after(self, world, table, pins, clock):
        hold = pins.hold(table.record().table_id, 1)
        for _ in range(5):
            move_on(world, clock, 40)
            pins.renew()
        assert held(table) == [1]
        hold.close()
        move_on(world, clock, 40)
        pins.renew()
        assert held(table) == [1]
        move_on(world, clock, 40)
        pins.renew()
        assert held(table) == []

    def test_a_thread_prolongs_in_time_and_ends_when_there_is_nothing_to_hold(self, table):
        metastore = table.context.metastore
        pins = Pins(metastore, table.context.new_id, seconds=0.15)
        renewed = threading.Event()
        renew = metastore.renew
        metastore.renew = lambda *args, **kwargs: (renewed.set(), renew(*args, **kwargs))[1]
        with pins.hold(table.record().table_id, 1):
            assert renewed.wait(10)
        deadline = time.monotonic() + 10
        while any(thread.name == "windrow pins" for thread in threading.enumerate()) and time.monotonic() < deadline:
            time.sleep(0.01)
        assert held(table) == []

    def test_a_closed_lake_holds_nothing(self, world, table):
        table.context.pins.hold(table.record().table_id, 1)
        table.context.pins.close()
        assert held(table) == []

    def test_collecting_garbage_lets_go_of_what_nobody_reads(self, table):
        table.context.pins.hold(table.record().table_id, 1).close()
        assert replaced(table).retired_splits == 2


class TestExpired:
    def test_a_version_that_is_not_kept_cannot_be_held(self, table, pins):
        replaced(table)
        with pytest.raises(SnapshotExpired, match="snapshot expired"):
            pins.hold(table.record().table_id, 1)

    def test_a_version_that_never_was_cannot_be_held(self, table, pins):
        with pytest.raises(NotFound, match="no version 9"):
            pins.hold(table.record().table_id, 9)

    def test_a_reader_that_was_stopped_for_too_long_is_told(self, world, table, pins, clock):
        with pins.hold(table.record().table_id, 1) as hold:
            hold.check()
            move_on(world, clock, 61)
            replaced(table)
            with pytest.raises(SnapshotExpired, match="snapshot expired"):
                hold.check()
            pins.renew()
            with pytest.raises(SnapshotExpired, match="snapshot expired"):
                pins.hold(table.record().table_id, 1)

    def test_a_pin_that_ran_out_is_made_anew_while_its_version_is_kept(self, world, table, pins, clock):
        pins.hold(table.record().table_id, 1).close()
        move_on(world, clock, 61)
        with pins.hold(table.record().table_id, 1) as hold:
            hold.check()
            assert held(table) == [1]


class TestWithoutWriting:
    def test_whoever_cannot_write_pins_reads_all_the_same(self, table, pins, monkeypatch, caplog):
        def refuse(*_, **__):
            raise MetastoreError("attempt to write a readonly database")

        monkeypatch.setattr(table.context.metastore, "pin", refuse)
        with pins.hold(table.record().table_id, 1) as hold:
            hold.check()
            pins.renew()
        assert "without a pin" in caplog.text

    def test_and_is_told_when_the_version_is_gone(self, table, pins, monkeypatch):
        def refuse(*_, **__):
            raise MetastoreError("attempt to write a readonly database")

        with monkeypatch.context() as patch:
            patch.setattr(table.context.metastore, "pin", refuse)
            hold = pins.hold(table.record().table_id, 1)
        replaced(table)
        with pytest.raises(SnapshotExpired, match="no longer kept"):
            hold.check()
