"""Tables that are renamed, dropped and forgotten."""

from __future__ import annotations

import pytest

from windrow.errors import AlreadyExists, InvalidInput, NotFound, Outcome
from windrow.metastore import CommitState, Metastore
from windrow.testing.metastore_cases.samples import (
    SETTINGS,
    TABLE,
    FakeClock,
    OpenAgain,
    a_split,
    a_table,
    add,
    begin,
    everything,
    ids,
)

__all__ = ["NamingCases"]


class NamingCases:
    """What becomes of a table's name, its folder and its rows."""

    def test_a_table_is_renamed_and_keeps_its_folder(self, metastore: Metastore, open_again: OpenAgain) -> None:
        a_table(metastore)
        add(metastore, "c1")
        renamed = metastore.rename_table(TABLE, "readings")
        assert (renamed.name, renamed.folder, renamed.version) == ("readings", "metrics", 1)
        assert open_again().tables() == [renamed]
        assert ids(metastore, 1) == ["c1"]
        with pytest.raises(NotFound, match="'metrics'"):
            metastore.table("metrics")

    def test_the_same_name_again_changes_nothing(self, metastore: Metastore) -> None:
        table = a_table(metastore)
        assert metastore.rename_table(TABLE, "metrics") == table

    def test_a_name_may_change_its_case(self, metastore: Metastore) -> None:
        a_table(metastore)
        assert metastore.rename_table(TABLE, "Metrics").name == "Metrics"

    @pytest.mark.parametrize("name", ["events", "EVENTS"])
    def test_a_name_that_is_taken_is_refused_whatever_its_case(self, metastore: Metastore, name: str) -> None:
        a_table(metastore)
        a_table(metastore, "events", "other")
        before = everything(metastore)
        with pytest.raises(AlreadyExists, match="'events' exists already"):
            metastore.rename_table(TABLE, name)
        with pytest.raises(InvalidInput, match="is not a table name"):
            metastore.rename_table(TABLE, "../x")
        assert everything(metastore) == before

    def test_a_commit_that_is_open_is_published_under_the_new_name(self, metastore: Metastore) -> None:
        a_table(metastore)
        begin(metastore, "c1")
        metastore.rename_table(TABLE, "readings")
        assert metastore.publish("c1", add=[a_split("s1", "c1")]).version == 1

    def test_a_new_table_of_the_old_name_gets_another_folder(self, metastore: Metastore) -> None:
        a_table(metastore)
        metastore.rename_table(TABLE, "readings")
        new = a_table(metastore, "METRICS", "other")
        assert (new.name, new.folder) == ("METRICS", "METRICS-other")
        assert metastore.folders() == {"metrics", "METRICS-other"}

    def test_a_dropped_table_gives_its_name_free(self, metastore: Metastore, open_again: OpenAgain) -> None:
        a_table(metastore)
        dropped = metastore.drop_table(TABLE)
        assert (dropped.name, dropped.folder) == ("metrics", "metrics")
        assert open_again().tables() == []
        with pytest.raises(NotFound, match="'metrics'"):
            metastore.table("metrics")
        new = a_table(metastore, "metrics", "other")
        assert (new.name, new.folder) == ("metrics", "metrics-other")
        assert [each.table_id for each in metastore.dropped_tables()] == [TABLE]

    def test_dropping_twice_is_dropping_once(self, metastore: Metastore, clock: FakeClock) -> None:
        a_table(metastore)
        first = metastore.drop_table(TABLE)
        clock.advance(60)
        assert metastore.drop_table(TABLE) == first

    def test_nothing_is_written_into_a_dropped_table(self, metastore: Metastore, open_again: OpenAgain) -> None:
        a_table(metastore)
        begin(metastore, "c1")
        open_again().drop_table(TABLE)
        assert metastore.commit("c1").state is CommitState.ABORTED
        refused = "'metrics' was dropped"
        with pytest.raises(NotFound, match=refused) as failed:
            metastore.publish("c1", add=[a_split("s1", "c1")])
        assert failed.value.outcome is Outcome.NOT_COMMITTED
        with pytest.raises(NotFound, match=refused):
            begin(metastore, "c2")
        with pytest.raises(NotFound, match=refused):
            metastore.change_settings(TABLE, SETTINGS)
        with pytest.raises(NotFound, match=refused):
            metastore.rename_table(TABLE, "readings")
        with pytest.raises(NotFound, match=refused):
            metastore.pin(TABLE, 0, pin_id="p", owner="reader", seconds=60)

    def test_what_was_published_before_stays_published(self, metastore: Metastore) -> None:
        a_table(metastore)
        published = add(metastore, "c1")
        metastore.drop_table(TABLE)
        assert metastore.publish("c1", add=[a_split("c1", "c1")]) == published

    def test_a_reader_that_holds_a_version_goes_on(self, metastore: Metastore, clock: FakeClock) -> None:
        a_table(metastore)
        add(metastore, "c1")
        pin = metastore.pin(TABLE, 1, pin_id="p", owner="reader", seconds=60)
        metastore.drop_table(TABLE)
        assert ids(metastore, metastore.renew(pin, seconds=120)) == ["c1"]
        assert metastore.dropped_tables()[0].held_by == ("pin of reader on version 1",)
        clock.advance(121)
        assert metastore.dropped_tables()[0].held_by == ()

    def test_writers_that_may_not_know_and_the_grace_period_hold_its_files(
        self, metastore: Metastore, clock: FakeClock
    ) -> None:
        a_table(metastore)
        begin(metastore, "c1")
        metastore.drop_table(TABLE)
        assert metastore.dropped_tables(grace=3600)[0].held_by == (
            "1 commits whose writers may still be at work",
            "the grace period",
        )
        clock.advance(61)
        assert metastore.dropped_tables(grace=3600)[0].held_by == ("the grace period",)
        clock.advance(3600)
        assert metastore.dropped_tables(grace=3600)[0].held_by == ()

    def test_a_dropped_table_is_forgotten_with_all_that_it_had(self, metastore: Metastore) -> None:
        a_table(metastore)
        add(metastore, "c1")
        with pytest.raises(InvalidInput, match="drop it first"):
            metastore.forget_table(TABLE)
        metastore.drop_table(TABLE)
        assert metastore.forget_table(TABLE)
        assert not metastore.forget_table(TABLE)
        assert metastore.dropped_tables() == []
        assert metastore.folders() == frozenset()
        again = a_table(metastore)
        assert (again.folder, again.version) == ("metrics", 0)
        assert ids(metastore, 0) == []
        add(metastore, "c1")

    def test_forgetting_a_table_leaves_the_others(self, metastore: Metastore) -> None:
        a_table(metastore, "events", "other")
        before = everything(metastore)
        a_table(metastore)
        add(metastore, "c1")
        metastore.drop_table(TABLE)
        metastore.forget_table(TABLE)
        assert everything(metastore) == before
