"""What garbage collection relies on: versions that last, splits that are marked and forgotten, orphans."""

from __future__ import annotations

import pyarrow as pa
import pytest

from windrow.errors import LeaseExpired, SnapshotExpired
from windrow.metastore import CommitKind, CommitState, Metastore, Orphans, Retired
from windrow.testing.metastore_cases.samples import (
    TABLE,
    FakeClock,
    OpenAgain,
    a_split,
    a_table,
    add,
    begin,
    ids,
)

__all__ = ["CollectingCases"]

HOUR = 3600


def an_hour_each(metastore: Metastore, clock: FakeClock) -> None:
    """Version 1 adds s1 and s2, 2 merges them into m, 3 adds s3; an hour lies between two versions."""
    a_table(metastore)
    add(metastore, "c1", a_split("s1", "c1", 0, 3), a_split("s2", "c1", 0, 4))
    clock.advance(HOUR)
    begin(metastore, "c2", CommitKind.COMPACT)
    metastore.publish("c2", add=[a_split("m", "c2", 0, 7)], replace=["s1", "s2"])
    clock.advance(HOUR)
    add(metastore, "c3", a_split("s3", "c3", 900))


def drop(metastore: Metastore, grace: float = 0, upto: int | None = None) -> int:
    """Drop versions; `horizon` gave the same before."""
    oldest = metastore.horizon(TABLE, grace=grace, upto=upto)
    assert metastore.drop_versions(TABLE, grace=grace, upto=upto) == oldest
    return oldest


def claimed(metastore: Metastore, limit: int = 10) -> list[str]:
    """Mark splits, and return their ids."""
    return sorted(split.split_id for split in metastore.claim(TABLE, limit=limit))


class CollectingCases:
    """Nothing that a reader or a writer can need is ever given away."""

    @pytest.mark.parametrize(
        ("grace", "oldest"), [(0, 3), (1, 2), (HOUR, 2), (HOUR + 1, 1), (2 * HOUR, 1), (2 * HOUR + 1, 0), (10**6, 0)]
    )
    def test_versions_are_kept_that_were_the_newest_within_the_grace_period(
        self, metastore: Metastore, settable_clock: FakeClock, grace: float, oldest: int
    ) -> None:
        an_hour_each(metastore, settable_clock)
        assert drop(metastore, grace) == metastore.table("metrics").oldest_version == oldest

    def test_what_was_published_and_collected_holds_together(
        self, metastore: Metastore, settable_clock: FakeClock
    ) -> None:
        an_hour_each(metastore, settable_clock)
        metastore.reserve_columns(TABLE, pa.schema([("host", pa.string()), ("later", pa.int64())]))
        begin(metastore, "c4")
        metastore.publish("c4", add=[a_split("s4", "c4", 900)], columns=["host"])
        for grace in (10**6, 2 * HOUR, 0):
            drop(metastore, grace)
            metastore.forget(TABLE, claimed(metastore, 1))
            assert (metastore.integrity(), metastore.problems(TABLE)) == ([], [])

    def test_a_pin_keeps_its_version_until_it_runs_out(self, metastore: Metastore, settable_clock: FakeClock) -> None:
        an_hour_each(metastore, settable_clock)
        pin = metastore.pin(TABLE, 1, pin_id="p", owner="a reader", seconds=60)
        assert drop(metastore) == 1
        assert ids(metastore, pin) == ["s1", "s2"]
        settable_clock.now = pin.expires_at
        assert drop(metastore) == 3

    def test_no_version_beyond_a_bound_is_dropped(self, metastore: Metastore, settable_clock: FakeClock) -> None:
        an_hour_each(metastore, settable_clock)
        assert drop(metastore, upto=2) == 2

    def test_versions_do_not_come_back(self, metastore: Metastore, settable_clock: FakeClock) -> None:
        an_hour_each(metastore, settable_clock)
        assert [drop(metastore), drop(metastore, 10**6), drop(metastore, upto=1)] == [3, 3, 3]

    def test_a_dropped_version_cannot_be_read_or_pinned(self, metastore: Metastore, settable_clock: FakeClock) -> None:
        an_hour_each(metastore, settable_clock)
        drop(metastore)
        with pytest.raises(SnapshotExpired, match="snapshot expired"):
            ids(metastore, 2)
        with pytest.raises(SnapshotExpired, match="snapshot expired"):
            metastore.pin(TABLE, 2, pin_id="p", owner="me", seconds=1)
        assert ids(metastore, 3) == ["m", "s3"]

    def test_splits_that_no_kept_version_shows_are_marked_and_forgotten(
        self, metastore: Metastore, settable_clock: FakeClock, open_again: OpenAgain
    ) -> None:
        an_hour_each(metastore, settable_clock)
        assert claimed(metastore) == []
        assert drop(metastore, upto=1) == 1
        assert claimed(metastore) == []
        assert drop(metastore, upto=2) == 2
        assert metastore.retired(TABLE, 2) == Retired(2, 2007)
        assert claimed(metastore, limit=1) == ["s1"]
        assert claimed(open_again()) == ["s1", "s2"]
        assert metastore.forget(TABLE, ["s1", "m", "s3", "ghost"]) == 1
        assert claimed(metastore) == ["s2"]
        assert metastore.forget(TABLE, ["s2"]) == 1
        assert metastore.retired(TABLE, 3) == Retired(0, 0)
        assert [ids(metastore, version) for version in (2, 3)] == [["m"], ["m", "s3"]]
        assert [change.version for change in metastore.changes(TABLE, 2)] == [3]

    def test_what_is_not_marked_is_not_forgotten(self, metastore: Metastore, settable_clock: FakeClock) -> None:
        an_hour_each(metastore, settable_clock)
        drop(metastore)
        assert metastore.forget(TABLE, ["s1", "s2", "m", "s3"]) == 0
        assert ids(metastore, 3) == ["m", "s3"]

    def test_a_split_of_another_table_is_left_alone(self, metastore: Metastore, settable_clock: FakeClock) -> None:
        an_hour_each(metastore, settable_clock)
        a_table(metastore, "events", "table-2")
        drop(metastore)
        assert metastore.claim("table-2", limit=10) == []
        assert claimed(metastore) == ["s1", "s2"]
        assert metastore.forget("table-2", ["s1", "s2"]) == 0

    def test_a_commit_whose_lease_ran_out_is_ended_and_cannot_be_published(
        self, metastore: Metastore, settable_clock: FakeClock
    ) -> None:
        a_table(metastore)
        begin(metastore, "late")
        settable_clock.advance(30)
        begin(metastore, "busy")
        add(metastore, "done")
        settable_clock.advance(30)
        assert [commit.commit_id for commit in metastore.expired_commits(TABLE)] == ["late"]
        assert metastore.end_expired(TABLE) == ["late"]
        assert metastore.end_expired(TABLE) == []
        # Even when the clock is set back.
        settable_clock.advance(-50)
        with pytest.raises(LeaseExpired, match="late is aborted"):
            metastore.publish("late", add=[a_split("late-1", "late")])
        states = {commit.commit_id: commit.state for commit in metastore.commits(TABLE)}
        assert states == {
            "late": CommitState.ABORTED,
            "busy": CommitState.OPEN,
            "done": CommitState.PUBLISHED,
        }

    def test_an_orphan_is_no_split_and_its_commit_has_ended(self, metastore: Metastore) -> None:
        a_table(metastore)
        a_table(metastore, "events", "table-2")
        add(metastore, "c1", a_split("c1-1-0", "c1"))
        begin(metastore, "open")
        begin(metastore, "gone")
        begin(metastore, "gone-1")
        metastore.abort("gone")
        begin(metastore, "theirs", table_id="table-2")
        metastore.abort("theirs")
        found = ["c1-1-0", "c1-2-0", "open-1-0", "gone-2-0", "gone-1-0", "who-1-0", "theirs-1-0", "c1", "x"]
        assert metastore.orphans(TABLE, found) == Orphans(
            dead=frozenset(["c1-2-0", "gone-2-0"]), unknown=frozenset(["who-1-0", "theirs-1-0", "c1", "x"])
        )
        assert metastore.orphans(TABLE, []) == Orphans(frozenset(), frozenset())
        assert "open-1-0" in metastore.orphans(TABLE, found, ended=["open"]).dead

    def test_a_retired_split_is_no_orphan_before_it_is_forgotten(self, metastore: Metastore) -> None:
        a_table(metastore)
        add(metastore, "c1", a_split("c1-1-0", "c1"))
        begin(metastore, "c2", CommitKind.EXPIRE)
        metastore.publish("c2", replace=["c1-1-0"])
        drop(metastore)
        assert metastore.orphans(TABLE, ["c1-1-0"]).dead == frozenset()
        assert claimed(metastore) == ["c1-1-0"]
        assert metastore.orphans(TABLE, ["c1-1-0"]).dead == frozenset()
        metastore.forget(TABLE, ["c1-1-0"])
        assert metastore.orphans(TABLE, ["c1-1-0"]).dead == {"c1-1-0"}
