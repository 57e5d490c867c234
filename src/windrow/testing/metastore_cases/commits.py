"""Commits from opening to their end: leases, attempts, aborts, reading back."""

from __future__ import annotations

import math

import pytest

from windrow.errors import Conflict, InvalidInput, LeaseExpired, NotFound, Outcome
from windrow.metastore import CommitKind, CommitState, Metastore
from windrow.testing.metastore_cases.samples import (
    TABLE,
    FakeClock,
    OpenAgain,
    a_split,
    a_table,
    add,
    begin,
    everything,
)

__all__ = ["CommitCases"]


class CommitCases:
    """A commit is opened under a lease, kept alive, and ends published or aborted."""

    def test_an_open_commit_can_be_read_back(self, metastore: Metastore, open_again: OpenAgain) -> None:
        a_table(metastore)
        record = begin(metastore, "c1", CommitKind.COMPACT)
        assert (record.commit_id, record.table_id, record.kind) == ("c1", TABLE, CommitKind.COMPACT)
        assert (record.state, record.attempt, record.version) == (CommitState.OPEN, 1, None)
        assert record.lease_expires_at == record.opened_at + 60_000_000
        assert open_again().commit("c1") == record

    def test_an_open_commit_shows_nothing(self, metastore: Metastore) -> None:
        a_table(metastore)
        begin(metastore, "c1")
        assert metastore.table("metrics").version == 0
        assert list(metastore.changes(TABLE, 0)) == []

    def test_a_published_commit_says_what_it_did(self, metastore: Metastore, settable_clock: FakeClock) -> None:
        a_table(metastore)
        begin(metastore, "c1")
        settable_clock.advance(5)
        splits = [a_split("s1", "c1", rows=7), a_split("s2", "c1")]
        metastore.publish("c1", add=splits, summary={"late": 3, "name": "ä"})
        record = metastore.commit("c1")
        assert (record.state, record.version, record.published_at) == (CommitState.PUBLISHED, 1, settable_clock.now)
        assert (record.added, record.removed, record.rows_added, record.rows_removed) == (2, 0, 17, 0)
        assert record.summary == {"late": 3, "name": "ä"}

    def test_commits_are_listed_newest_first(self, metastore: Metastore, settable_clock: FakeClock) -> None:
        a_table(metastore)
        a_table(metastore, "events", "table-2")
        begin(metastore, "elsewhere", table_id="table-2")
        for commit_id in ("c3", "c1", "c2"):
            settable_clock.advance(1)
            begin(metastore, commit_id)
        assert [record.commit_id for record in metastore.commits(TABLE)] == ["c2", "c1", "c3"]
        assert [record.commit_id for record in metastore.commits(TABLE, limit=2)] == ["c2", "c1"]

    @pytest.mark.usefixtures("settable_clock")
    def test_commits_of_one_moment_are_listed_by_id(self, metastore: Metastore) -> None:
        a_table(metastore)
        for commit_id in ("B", "a", "b", "A"):
            begin(metastore, commit_id)
        assert [record.commit_id for record in metastore.commits(TABLE)] == ["b", "a", "B", "A"]

    def test_what_was_never_opened_is_not_found(self, metastore: Metastore) -> None:
        a_table(metastore)
        for call in (metastore.commit, metastore.abort, metastore.publish):
            with pytest.raises(NotFound, match="no commit ghost; open it first"):
                call("ghost")
        with pytest.raises(NotFound, match="no commit ghost"):
            metastore.heartbeat("ghost", lease=1)
        with pytest.raises(NotFound, match="no such table"):
            begin(metastore, "c1", table_id="ghost")

    @pytest.mark.parametrize("commit_id", ["", "x" * 65, "a\nb", "\0", "\ud800"])
    def test_an_id_is_printable(self, metastore: Metastore, commit_id: str) -> None:
        a_table(metastore)
        with pytest.raises(InvalidInput, match="commit id"):
            begin(metastore, commit_id)

    @pytest.mark.parametrize("lease", [0, -1, math.inf, -math.inf, math.nan, 1e30])
    def test_a_lease_is_some_seconds(self, metastore: Metastore, lease: float) -> None:
        a_table(metastore)
        with pytest.raises(InvalidInput, match="lease: expected seconds"):
            metastore.open_commit(TABLE, CommitKind.INGEST, commit_id="c1", lease=lease)
        begin(metastore, "c2")
        with pytest.raises(InvalidInput, match="lease: expected seconds"):
            metastore.heartbeat("c2", lease=lease)

    # Taking over

    def test_opening_again_takes_over_and_fences_the_old_attempt_out(
        self, metastore: Metastore, open_again: OpenAgain, settable_clock: FakeClock
    ) -> None:
        a_table(metastore)
        begin(metastore, "c1")
        settable_clock.advance(10)
        successor = open_again()
        assert begin(successor, "c1").attempt == 2
        with pytest.raises(LeaseExpired, match="taken over by attempt 2") as refused:
            metastore.publish("c1", attempt=1, add=[a_split("s1", "c1")])
        assert refused.value.outcome is Outcome.NOT_COMMITTED
        with pytest.raises(LeaseExpired, match="taken over by attempt 2"):
            metastore.heartbeat("c1", attempt=1, lease=60)
        with pytest.raises(LeaseExpired, match="taken over by attempt 2"):
            metastore.abort("c1", attempt=1)
        assert successor.publish("c1", attempt=2, add=[a_split("s1", "c1")]).version == 1

    def test_an_attempt_that_never_was_cannot_publish(self, metastore: Metastore) -> None:
        a_table(metastore)
        begin(metastore, "c1")
        with pytest.raises(LeaseExpired, match="attempt 1; this is attempt 2"):
            metastore.publish("c1", attempt=2, add=[a_split("s1", "c1")])

    def test_opening_a_published_commit_changes_nothing(self, metastore: Metastore) -> None:
        a_table(metastore)
        add(metastore, "c1")
        before = everything(metastore)
        assert begin(metastore, "c1") == metastore.commit("c1")
        assert everything(metastore) == before

    def test_an_id_belongs_to_one_table_and_kind(self, metastore: Metastore) -> None:
        a_table(metastore)
        a_table(metastore, "events", "table-2")
        begin(metastore, "c1")
        before = everything(metastore)
        with pytest.raises(Conflict, match="belongs to another table or is of kind ingest"):
            begin(metastore, "c1", table_id="table-2")
        with pytest.raises(Conflict, match="belongs to another table or is of kind ingest"):
            begin(metastore, "c1", CommitKind.COMPACT)
        assert everything(metastore) == before

    # Leases

    def test_a_heartbeat_prolongs_the_lease(self, metastore: Metastore, settable_clock: FakeClock) -> None:
        a_table(metastore)
        begin(metastore, "c1")
        for _ in range(3):
            settable_clock.advance(59)
            record = metastore.heartbeat("c1", lease=60)
            assert record.lease_expires_at == settable_clock.now + 60_000_000
        assert metastore.publish("c1", add=[a_split("s1", "c1")]).version == 1

    def test_a_lease_that_ran_out_ends_the_commit(self, metastore: Metastore, settable_clock: FakeClock) -> None:
        a_table(metastore)
        begin(metastore, "c1")
        settable_clock.advance(62.5)
        before = everything(metastore)
        with pytest.raises(LeaseExpired, match=r"lease of commit c1 ran out 2\.5 s ago"):
            metastore.publish("c1", add=[a_split("s1", "c1")])
        with pytest.raises(LeaseExpired, match="ran out"):
            metastore.heartbeat("c1", lease=60)
        assert everything(metastore) == before

    def test_a_lease_holds_up_to_its_last_moment(self, metastore: Metastore, settable_clock: FakeClock) -> None:
        a_table(metastore)
        begin(metastore, "c1")
        settable_clock.now = metastore.commit("c1").lease_expires_at - 1
        metastore.heartbeat("c1", lease=1)
        settable_clock.now = metastore.commit("c1").lease_expires_at
        with pytest.raises(LeaseExpired, match="ran out"):
            metastore.publish("c1", add=[a_split("s1", "c1")])

    def test_what_the_first_opening_noted_is_kept_for_later_attempts_and_in_the_end(self, metastore: Metastore) -> None:
        a_table(metastore)
        for noted in ({"arrived_at": 5, "late": 1}, {"arrived_at": 6}, None):
            opened = metastore.open_commit(TABLE, CommitKind.INGEST, commit_id="c1", lease=60, summary=noted)
            assert opened.summary == {"arrived_at": 5, "late": 1}
        metastore.publish("c1", attempt=3, add=[a_split("s1", "c1")], summary={"late": 2})
        assert metastore.commit("c1").summary == {"arrived_at": 5, "late": 2}

    def test_a_lease_that_ran_out_can_be_taken_over(self, metastore: Metastore, settable_clock: FakeClock) -> None:
        a_table(metastore)
        begin(metastore, "c1")
        settable_clock.advance(1000)
        assert begin(metastore, "c1").attempt == 2
        assert metastore.publish("c1", attempt=2, add=[a_split("s1", "c1")]).version == 1

    # Giving up

    def test_an_aborted_commit_cannot_be_published(self, metastore: Metastore) -> None:
        a_table(metastore)
        begin(metastore, "c1")
        metastore.abort("c1")
        metastore.abort("c1", attempt=1)
        assert metastore.commit("c1").state is CommitState.ABORTED
        with pytest.raises(LeaseExpired, match="c1 is aborted; start a new one"):
            metastore.publish("c1", add=[a_split("s1", "c1")])
        with pytest.raises(LeaseExpired, match="c1 is aborted"):
            metastore.heartbeat("c1", lease=1)

    def test_a_published_commit_is_final(self, metastore: Metastore) -> None:
        a_table(metastore)
        add(metastore, "c1")
        before = everything(metastore)
        with pytest.raises(Conflict, match="published as version 1 and cannot be aborted") as refused:
            metastore.abort("c1")
        assert (refused.value.outcome, refused.value.retryable) == (Outcome.COMMITTED, False)
        with pytest.raises(LeaseExpired, match="c1 is published"):
            metastore.heartbeat("c1", lease=60)
        assert everything(metastore) == before
