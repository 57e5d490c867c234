"""Anything that can be done to a table, in any order, compared after each step with a plain list of its rows.

Rows come late, without a timestamp, twice, with new columns; splits are merged, windows expire, garbage is collected,
the sort schema, the window and the cold window change, readers hold old versions, the lake is opened anew, and runs are
cut off at any operation of the store.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from threading import Event
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.proofs.worlds import NOON, Row, World, rows_of, visible

from windrow.compaction.compactor import Bounds
from windrow.errors import SnapshotExpired, WindrowError
from windrow.metastore import Pin
from windrow.table import Table
from windrow.testing.faulty import Fault, FaultKind, FaultyStore

SORTS = ("host|timestamp/V2", "timestamp+|host/V2", "timestamp&host/V2")
WINDOWS = ("5m", "15m", "1h")
COLD_WINDOWS = ("off", "2h", "3h", "6h")
"""Most of the rows are old enough for them: the clock begins hours after the last of the first two."""
MOST_REWRITES = 8
"""How often a row may be rewritten by the policies that are tried."""
_numbers = itertools.count()

minutes = st.one_of(st.none(), st.integers(-600, 60))
hosts = st.sampled_from(["a", "b", None])
batches = st.lists(st.tuples(minutes, hosts), min_size=1, max_size=3)
extras = st.sampled_from([None, "zone", "rack"])
KINDS = (FaultKind.ERROR, FaultKind.TORN, FaultKind.LOST, FaultKind.TIMEOUT)
faults = st.builds(Fault, st.sampled_from(KINDS), st.integers(1, 12))


class TableMachine(RuleBasedStateMachine):
    """One table and its model. A subclass says in `folder` where databases may lie."""

    folder: Path

    def __init__(self) -> None:
        super().__init__()
        place = self.folder / str(next(_numbers))
        place.mkdir()
        self.world = World(place)
        self.world.clock.now = int(NOON.timestamp() * 1e6)
        self.lake = self.world.open()
        self.rows: Counter[Row] = Counter()
        self.history: dict[int, Counter[Row]] = {0: Counter()}
        self.pins: list[Pin] = []
        self.value = 0

    def teardown(self) -> None:
        """In the end, every row is looked at."""
        result = self.table.upkeep.check(data=True)
        assert [each for each in result.findings if each.kind != "mirror"] == []
        assert self.table.upkeep.check(repair=True).sound
        self.lake.close()

    @property
    def table(self) -> Table:
        """The table."""
        return Table(self.lake.context, "events")

    @initialize(sort=st.sampled_from(SORTS), window=st.sampled_from(WINDOWS), cold=st.sampled_from(COLD_WINDOWS))
    def create(self, sort: str, window: str, cold: str) -> None:
        """A table is made; merges begin with two splits."""
        policy = {"merge_factor": 2, "max_merge_factor": 3}
        self.lake.create_table("events", sort=sort, window=window, cold_window=cold, policy=policy)

    def batch(self, drawn: list[tuple[int | None, str | None]], extra: str | None) -> pa.Table:
        """Return rows; each has a number of its own, unless it is a twin."""
        self.value += 1
        times = [None if minute is None else NOON + timedelta(minutes=minute) for minute, _ in drawn]
        columns: dict[str, Any] = {
            "host": pa.array([host for _, host in drawn], pa.string()),
            "timestamp": pa.array(times, pa.timestamp("us", "UTC")),
            "value": pa.array([self.value] * len(drawn), pa.int64()),
        }
        return pa.table(columns | ({extra: pa.array(["x"] * len(drawn))} if extra else {}))

    def came(self, rows: Counter[Row]) -> None:
        """The table has other rows now."""
        self.rows = rows
        self.history[self.table.version()] = rows

    @rule(drawn=batches, extra=extras)
    def ingest(self, drawn: list[tuple[int | None, str | None]], extra: str | None) -> None:
        """Points come: late, null, twins, and with columns that were not there before."""
        batch = self.batch(drawn, extra)
        self.table.ingest(batch)
        self.came(self.rows + rows_of([batch]))

    @rule(first=st.integers(-700, -600), extra=extras)
    def backfill(self, first: int, extra: str | None) -> None:
        """Old points of many windows come: into cold windows, where the table has such."""
        batch = self.batch([(first + 61 * number, "a") for number in range(12)], extra)
        self.table.ingest(batch)
        self.came(self.rows + rows_of([batch]))

    @rule(drawn=batches, fault=faults)
    def ingest_cut_off(self, drawn: list[tuple[int | None, str | None]], fault: Fault) -> None:
        """A run fails at some operation of the store: its rows are all there, or none is."""
        batch = self.batch(drawn, None)
        self.disturbed(fault, lambda table: table.ingest(batch))
        both = self.rows + rows_of([batch])
        self.came(both if self.world.rows(self.table) == both else self.rows)

    @rule(drawn=batches)
    def register(self, drawn: list[tuple[int | None, str | None]]) -> None:
        """A file joins as it is: unsorted, in no window."""
        batch, path = self.batch(drawn, None), self.world.folder / f"{self.value}.parquet"
        pq.write_table(batch, path)
        self.table.register.run(path)
        self.came(self.rows + rows_of([batch]))

    @rule(policy=st.sampled_from(["stable-log", "constant-write-amplification"]))
    def compact(self, policy: str) -> None:
        """Splits are merged; no row changes."""
        self.table.change.run(policy={"name": policy, "merge_factor": 2, "max_merge_factor": 3})
        self.table.compact.run(threads=1)
        self.came(self.rows)

    @rule(fault=faults)
    def compact_cut_off(self, fault: Fault) -> None:
        """A merge fails at some operation of the store; no row changes."""
        self.disturbed(fault, lambda table: replace(table.compact, sleep=_at_once).run(threads=1))
        self.came(self.rows)

    def disturbed(self, fault: Fault, act: Callable[[Table], object]) -> None:
        """Do something through a store that fails, in a process that then dies."""
        self.lake.close()
        faulty = FaultyStore(self.world.store, fault)
        with self.world.open(lambda _: faulty) as lake, suppress(WindrowError):
            act(lake.table("events"))
        faulty.land()
        self.lake = self.world.open()

    @rule(hours=st.integers(1, 12))
    def expire(self, hours: int) -> None:
        """Whole windows leave, and the splits of the overflow that are old."""
        before = self.world.clock.now - hours * 3_600_000_000
        old = [split for split in visible(self.table) if _leaves(split, before)]
        gone = self.world.read(old)
        self.table.upkeep.expire.run(retention=hours * 3600)
        self.came(self.rows - gone)

    @rule(grace=st.sampled_from([0, 60, 3600]))
    def collect(self, grace: int) -> None:
        """Garbage goes; what is visible or held stays."""
        result = self.table.upkeep.gc.run(grace=grace)
        assert result.failed_files == 0

    @rule(fault=faults)
    def collect_cut_off(self, fault: Fault) -> None:
        """Garbage collection is cut off; what is visible or held stays."""
        self.disturbed(fault, lambda table: table.upkeep.gc.run(grace=0))

    @rule(sort=st.sampled_from(SORTS), window=st.sampled_from(WINDOWS), cold=st.sampled_from(COLD_WINDOWS))
    def change(self, sort: str, window: str, cold: str) -> None:
        """New splits are sorted otherwise, in other windows; old ones stay as they are."""
        self.table.change.run(sort=sort, window=window, cold_window=cold)

    @rule()
    def compact_behind_another(self) -> None:
        """Two runs decide alike: what the first has merged, the second leaves alone."""
        late = replace(self.table.compact, sleep=_at_once)
        bounds = Bounds.of(None, 1)
        planned = list(late._planner(late._record(), None).merges())
        self.table.compact.run(threads=1)
        result = late._run(late._record(), None, bounds, None, Event()).run(planned)
        assert (result.done, result.failed) == (0, 0)
        self.came(self.rows)

    @rule(drawn=batches)
    def a_late_split_comes_while_merges_run(self, drawn: list[tuple[int | None, str | None]]) -> None:
        """What comes after the plan stays as it is, and is there beside what was merged."""
        noun, batch = self.table.compact, self.batch(drawn, None)
        planned = list(noun._planner(noun._record(), None).merges())
        self.table.ingest(batch)
        self.came(self.rows + rows_of([batch]))
        result = noun._run(noun._record(), None, Bounds.of(None, 1), None, Event()).run(planned)
        assert result.failed == result.skipped == 0
        self.came(self.rows)

    @rule(seconds=st.sampled_from([1, 100, 1000, 7200]))
    def wait(self, seconds: int) -> None:
        """Time goes by: leases and pins run out."""
        self.world.clock.advance(seconds)

    @rule(data=st.data())
    def pin(self, data: st.DataObject) -> None:
        """A reader holds a version that is kept."""
        record = self.table.record()
        version = data.draw(st.sampled_from([v for v in self.history if v >= record.oldest_version]))
        metastore = self.lake.context.metastore
        new = metastore.pin(record.table_id, version, pin_id=self.world.new_id(), owner="a reader", seconds=600)
        self.pins.append(new)

    @precondition(lambda self: self.pins)
    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        """A reader lets go."""
        self.lake.context.metastore.release(self.pins.pop(data.draw(st.integers(0, len(self.pins) - 1))))

    @rule()
    def open_again(self) -> None:
        """Another process takes over."""
        self.lake.close()
        self.lake = self.world.open()

    @invariant()
    def the_newest_version_has_the_rows_of_the_model(self) -> None:
        """Nothing is lost, nothing is doubled, no live file is deleted."""
        if list(self.lake.tables()):
            assert self.world.rows(self.table) == self.rows

    @invariant()
    def held_versions_are_what_they_were(self) -> None:
        """A pin that has not run out gives the rows of its version; one that ran out says so."""
        for pin in self.pins:
            pages = self.lake.context.metastore.splits(pin.table_id, pin)
            try:
                splits = [split for page in pages for split in page]
            except SnapshotExpired:
                assert pin.expires_at <= self.world.clock.now
                continue
            assert self.world.read(splits) == self.history[pin.version]

    @invariant()
    def every_split_lies_in_one_window_of_its_own_duration(self) -> None:
        """Fine windows and cold ones are beside each other; rows without a timestamp are in neither."""
        for split in visible(self.table) if list(self.lake.tables()) else ():
            window = split.window
            assert split.generation <= MOST_REWRITES
            if window is not None and not window.overflow:
                assert window.duration == split.scope.window_duration
                assert window.start * 10**6 <= split.time_min <= split.time_max < window.end * 10**6


def _at_once(_: float) -> None:
    """Proofs do not wait."""


def _leaves(split: Any, before: int) -> bool:
    if split.window is None or split.window.overflow:
        return bool(split.created_at < before)
    return bool(split.window.end * 1_000_000 <= before)
