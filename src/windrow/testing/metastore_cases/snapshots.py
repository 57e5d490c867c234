"""Old versions, what changed between them, and the pins that hold them."""

from __future__ import annotations

import math

import pytest

from windrow.errors import AlreadyExists, InvalidInput, NotFound, SnapshotExpired
from windrow.metastore import CommitKind, Metastore, Pin
from windrow.testing.metastore_cases.samples import (
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

__all__ = ["HistoryCases", "PinCases"]


def three_versions(metastore: Metastore) -> None:
    """Add s1 and s2, merge them into m, add s3."""
    a_table(metastore)
    add(metastore, "c1", a_split("s1", "c1", 0, 3), a_split("s2", "c1", 0, 4))
    begin(metastore, "c2", CommitKind.COMPACT)
    metastore.publish("c2", add=[a_split("m", "c2", 0, 7, replaces=("s1", "s2"))], replace=["s1", "s2"])
    add(metastore, "c3", a_split("s3", "c3", 900))


class HistoryCases:
    """Every version stays what it was."""

    def test_every_version_lists_its_own_splits(self, metastore: Metastore, open_again: OpenAgain) -> None:
        three_versions(metastore)
        for client in (metastore, open_again()):
            assert [ids(client, version) for version in range(4)] == [[], ["s1", "s2"], ["m"], ["m", "s3"]]

    @pytest.mark.parametrize("version", [-1, 4, 2**62])
    def test_a_version_that_is_not_there_is_not_found(self, metastore: Metastore, version: int) -> None:
        three_versions(metastore)
        with pytest.raises(NotFound, match=f"'metrics' has no version {version}; the newest is 3"):
            ids(metastore, version)
        with pytest.raises(NotFound, match="has no version"):
            metastore.windows(TABLE, version)
        with pytest.raises(NotFound, match="has no version"):
            metastore.pin(TABLE, version, pin_id="p", owner="me", seconds=1)

    def test_a_moment_has_the_version_that_was_newest_then(
        self, metastore: Metastore, settable_clock: FakeClock
    ) -> None:
        a_table(metastore)
        start = settable_clock.now
        for number in (1, 2, 3):
            settable_clock.advance(10)
            add(metastore, f"c{number}")
        seconds = (-5, 0, 9.999999, 10, 15, 20, 29.999999, 30, 10**6)
        found = [metastore.version_at(TABLE, start + int(second * 1_000_000)) for second in seconds]
        assert found == [0, 0, 0, 1, 1, 2, 2, 3, 3]

    def test_an_open_or_aborted_commit_has_no_moment(self, metastore: Metastore, settable_clock: FakeClock) -> None:
        a_table(metastore)
        begin(metastore, "c1")
        begin(metastore, "c2")
        metastore.abort("c2")
        assert metastore.version_at(TABLE, settable_clock.now + 1) == 0

    def test_changes_tell_what_came_and_went(self, metastore: Metastore) -> None:
        three_versions(metastore)
        changes = [
            (
                change.version,
                change.commit_id,
                change.kind,
                [split.split_id for split in change.added],
                [split.split_id for split in change.removed],
            )
            for change in metastore.changes(TABLE, 0)
        ]
        assert changes == [
            (1, "c1", CommitKind.INGEST, ["s1", "s2"], []),
            (2, "c2", CommitKind.COMPACT, ["m"], ["s1", "s2"]),
            (3, "c3", CommitKind.INGEST, ["s3"], []),
        ]
        assert [change.published_at for change in metastore.changes(TABLE, 2)] == [metastore.commit("c3").published_at]

    def test_changes_hold_whole_splits(self, metastore: Metastore) -> None:
        three_versions(metastore)
        (change,) = metastore.changes(TABLE, 1, 2)
        assert change.added == (a_split("m", "c2", 0, 7, replaces=("s1", "s2")),)
        assert change.removed == (a_split("s1", "c1", 0, 3), a_split("s2", "c1", 0, 4))

    @pytest.mark.parametrize(
        ("after", "upto", "versions"), [(0, 1, [1]), (1, None, [2, 3]), (3, None, []), (1, 9, [2, 3])]
    )
    def test_changes_are_those_after_one_version_up_to_another(
        self, metastore: Metastore, after: int, upto: int | None, versions: list[int]
    ) -> None:
        three_versions(metastore)
        assert [change.version for change in metastore.changes(TABLE, after, upto)] == versions

    def test_changes_after_a_version_that_is_not_there_are_not_found(self, metastore: Metastore) -> None:
        three_versions(metastore)
        with pytest.raises(NotFound, match="has no version 4"):
            list(metastore.changes(TABLE, 4))


def hold(metastore: Metastore, version: int, pin_id: str = "p1", seconds: float = 60) -> Pin:
    """Pin a version."""
    return metastore.pin(TABLE, version, pin_id=pin_id, owner="a reader", seconds=seconds)


class PinCases:
    """A pin holds a version while its reader reads."""

    def test_a_pinned_version_is_read_by_its_pin(self, metastore: Metastore, open_again: OpenAgain) -> None:
        three_versions(metastore)
        pin = hold(metastore, 1)
        assert ids(open_again(), pin) == ["s1", "s2"]
        assert metastore.windows(TABLE, pin) == metastore.windows(TABLE, 1)
        assert (pin.pin_id, pin.table_id, pin.version, pin.owner) == ("p1", TABLE, 1, "a reader")

    def test_pins_are_listed_oldest_version_first(self, metastore: Metastore, settable_clock: FakeClock) -> None:
        three_versions(metastore)
        pins = [hold(metastore, version, pin_id) for version, pin_id in ((3, "a"), (1, "b"), (1, "B"), (2, "z"))]
        assert metastore.pins(TABLE) == [pins[2], pins[1], pins[3], pins[0]]
        settable_clock.advance(60)
        assert metastore.pins(TABLE) == []

    def test_a_renewed_pin_holds_on(self, metastore: Metastore, settable_clock: FakeClock) -> None:
        three_versions(metastore)
        pin = hold(metastore, 1)
        settable_clock.advance(59)
        renewed = metastore.renew(pin, seconds=60)
        assert renewed.expires_at == settable_clock.now + 60_000_000
        settable_clock.advance(59)
        assert metastore.pins(TABLE) == [renewed]
        assert ids(metastore, pin) == ["s1", "s2"]

    def test_an_expired_pin_is_an_error_not_a_shorter_list(
        self, metastore: Metastore, settable_clock: FakeClock
    ) -> None:
        three_versions(metastore)
        pin = hold(metastore, 1)
        settable_clock.now = pin.expires_at - 1
        assert ids(metastore, pin) == ["s1", "s2"]
        settable_clock.now = pin.expires_at
        with pytest.raises(SnapshotExpired, match="snapshot expired: the pin of a reader on version 1"):
            ids(metastore, pin)
        with pytest.raises(SnapshotExpired, match="snapshot expired"):
            metastore.windows(TABLE, pin)
        with pytest.raises(SnapshotExpired, match="snapshot expired"):
            metastore.renew(pin, seconds=60)

    def test_a_pin_that_expires_between_two_pages_ends_the_listing(
        self, metastore: Metastore, settable_clock: FakeClock
    ) -> None:
        three_versions(metastore)
        pages = metastore.splits(TABLE, hold(metastore, 1), page_size=1)
        assert [split.split_id for split in next(pages)] == ["s1"]
        settable_clock.advance(61)
        with pytest.raises(SnapshotExpired, match="snapshot expired"):
            next(pages)

    def test_a_released_pin_holds_nothing(self, metastore: Metastore) -> None:
        three_versions(metastore)
        pin = hold(metastore, 1)
        metastore.release(pin)
        metastore.release(pin)
        assert metastore.pins(TABLE) == []
        with pytest.raises(SnapshotExpired, match="snapshot expired"):
            ids(metastore, pin)
        with pytest.raises(SnapshotExpired, match="snapshot expired"):
            metastore.renew(pin, seconds=60)

    def test_a_pin_holds_its_own_table_alone(self, metastore: Metastore) -> None:
        three_versions(metastore)
        a_table(metastore, "events", "table-2")
        pin = hold(metastore, 0)
        with pytest.raises(InvalidInput, match="the pin of a reader holds table table-1"):
            list(metastore.splits("table-2", pin))
        assert metastore.pins("table-2") == []

    def test_a_pin_id_is_given_once(self, metastore: Metastore) -> None:
        three_versions(metastore)
        hold(metastore, 1)
        before = everything(metastore)
        with pytest.raises(AlreadyExists, match="pin id p1 is taken"):
            hold(metastore, 2)
        assert everything(metastore) == before

    @pytest.mark.parametrize("pin_id", ["", "x" * 65, "a\tb"])
    def test_a_pin_id_is_printable(self, metastore: Metastore, pin_id: str) -> None:
        a_table(metastore)
        with pytest.raises(InvalidInput, match="pin id"):
            hold(metastore, 0, pin_id)

    @pytest.mark.parametrize("seconds", [0, -1, math.inf, math.nan])
    def test_a_pin_holds_for_some_seconds(self, metastore: Metastore, seconds: float) -> None:
        a_table(metastore)
        with pytest.raises(InvalidInput, match="pin: expected seconds"):
            hold(metastore, 0, seconds=seconds)
        pin = hold(metastore, 0)
        with pytest.raises(InvalidInput, match="pin: expected seconds"):
            metastore.renew(pin, seconds=seconds)
