"""Listings and sums, compared with the same questions to a plain list."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import product
from typing import Any

import pytest

from windrow.errors import InvalidInput
from windrow.metastore import CommitKind, Metastore, SplitQuery, WindowSummary
from windrow.model.predicate import Comparison, In, Op, Predicate, StartsWith
from windrow.model.scope import CompactionScope
from windrow.model.split import SplitMetadata
from windrow.model.window import Window
from windrow.model.zones import ColumnZone
from windrow.testing.metastore_cases.samples import TABLE, OpenAgain, a_split, a_table, add, begin, ids, scope, zone

__all__ = ["ListingCases", "order", "sums"]

HOUR = 3600
US = 1_000_000
SCOPES = (
    scope(),
    scope(duration=HOUR),
    scope(source_id="kafka"),
    scope(partition_id=-(2**63)),
    scope(partition_id=1),
    scope(sort_schema="host|timestamp&region|zone/V2"),
)
REGISTERED = scope(duration=0, sort_schema="")
GHOST = Comparison("ghost", Op.EQUAL, "c")
"""A test of a column that no split has."""
COLD = (2 * HOUR, 5 * HOUR, 24 * HOUR, 168 * HOUR)
STARTS = (-HOUR, 0, HOUR, 2 * HOUR, 1_699_999_200)


def random_splits(seed: int, count: int) -> list[SplitMetadata]:
    """Return splits in all kinds of windows, among them windows of several durations that start together."""
    rng = random.Random(seed)  # noqa: S311 - repeatable, not secret
    return [_random_split(rng, f"{rng.choice('abAB')}{number:03d}") for number in range(count)]


def _random_split(rng: random.Random, split_id: str) -> SplitMetadata:
    rows, kind = rng.randint(1, 9), rng.random()
    if kind < 0.15:
        low = rng.choice([None, rng.randint(-HOUR, 3 * HOUR) * US])
        high = None if low is None else low + rng.randint(0, HOUR) * US
        fields: dict[str, Any] = {"window": None, "scope": REGISTERED, "zones": (), "time_min": low, "time_max": high}
        return a_split(split_id, "c1", 0, rows, **fields)
    where = rng.choice(SCOPES)
    zones = [_hosts(rng), *([zone(1, 2)] * (2 + where.sort_schema.count("zone")))]
    fields = {
        "scope": where,
        "zones": tuple(zones),
        "generation": rng.randint(0, 4),
        "size_bytes": rng.randint(1, 2**40),
    }
    if kind < 0.3:
        window = Window.overflow_of(where.window_duration)
        return a_split(split_id, "c1", 0, rows, window=window, time_min=None, time_max=None, **fields)
    if rng.random() < 0.3:
        where = fields["scope"] = replace(where, window_duration=rng.choice(COLD))
    window = Window.of(rng.choice(STARTS), where.window_duration)
    first = rng.randrange(window.start * US, window.end * US)
    last = rng.randrange(first, window.end * US)
    return a_split(split_id, "c1", 0, rows, window=window, time_min=first, time_max=last, **fields)


def _hosts(rng: random.Random) -> ColumnZone:
    low, high = sorted(rng.choices("abcdef", k=2))
    return zone(low, high)


def order(split: SplitMetadata) -> tuple[int, int, str]:
    """Return the place of a split in a listing: without a window, overflow, by time, cold ones by time; then by id."""
    window = split.window
    if window is None:
        return 0, 0, split.split_id
    return 1 + (not window.overflow) + window.is_cold, window.start, split.split_id


def expected(splits: Iterable[SplitMetadata], query: SplitQuery) -> list[str]:
    """Return the ids that a listing without a predicate must give."""
    return [split.split_id for split in sorted(splits, key=order) if _wanted(split, query)]


def _wanted(split: SplitMetadata, query: SplitQuery) -> bool:
    return (
        query.window in (None, split.window)
        and query.scope in (None, split.scope)
        and (query.time_range is None or _overlaps(split, *query.time_range))
    )


def _overlaps(split: SplitMetadata, low: int, high: int) -> bool:
    if split.window is not None and split.window.overflow:
        return False
    if split.time_min is None or split.time_max is None:
        return True
    return split.time_max >= low and split.time_min < high


def sums(splits: Iterable[SplitMetadata]) -> list[WindowSummary]:
    """Return the windows of splits, counted."""
    groups = defaultdict(list)
    for split in splits:
        groups[split.window].append(split)
    return [
        WindowSummary(
            window,
            len(group),
            sum(split.row_count for split in group),
            sum(split.size_bytes for split in group),
            max(split.generation for split in group),
        )
        for window, group in sorted(groups.items(), key=lambda each: _in_time(each[0]))
    ]


def _in_time(window: Window | None) -> tuple[int, int, int]:
    """Cold windows are among the others here."""
    return (0, 0, 0) if window is None else (1 + (not window.overflow), window.start, window.duration)


def _queries(splits: list[SplitMetadata]) -> Iterator[SplitQuery]:
    windows: list[Window | None] = [None, Window(-HOUR, 60), Window(0, 60)]
    windows += sorted({split.window for split in splits if split.window is not None})
    ranges = [None, (0, US), (-HOUR * US, 0), (0, 0), (5, 3), (900 * US - 1, 900 * US), (-(10**15), 2 * 10**15)]
    ranges += [(low * US, low * US + 1) for low in (*STARTS, 2700, HOUR - 60)]
    scopes: list[CompactionScope | None] = [None, *SCOPES, REGISTERED, scope(source_id="ghost")]
    scopes += [scope(duration=duration) for duration in COLD]
    yield from (SplitQuery(time_range=span, window=window) for span, window in product(ranges, windows))
    yield from (SplitQuery(window=window, scope=where) for window, where in product(windows, scopes))
    yield from (SplitQuery(time_range=span, scope=where) for span, where in product(ranges, scopes))


class ListingCases:
    """A listing gives exactly the splits that a question asks for, in order."""

    @pytest.mark.parametrize("seed", [1, 2])
    def test_every_question_gives_what_a_plain_list_gives(self, metastore: Metastore, seed: int) -> None:
        splits = random_splits(seed, 60)
        a_table(metastore)
        add(metastore, "c1", *splits)
        for query in _queries(splits):
            assert ids(metastore, 1, query, page_size=7) == expected(splits, query), query

    def test_recorded_splits_are_those_that_are_or_were_visible(self, metastore: Metastore) -> None:
        a_table(metastore)
        a_table(metastore, "events", "table-2")
        add(metastore, "c1", *(a_split(f"s{number}", "c1") for number in range(1200)))
        add(metastore, "c2", replace=["s1"])
        assert metastore.recorded_splits(TABLE, ["s0", "s1", "c2", "ghost", "s0"]) == {"s0", "s1", "c2"}
        assert len(metastore.recorded_splits(TABLE, [f"s{number}" for number in range(3000)])) == 1200
        assert metastore.recorded_splits("table-2", ["s0"]) == metastore.recorded_splits(TABLE, []) == set()

    def test_all_page_sizes_give_the_same(self, metastore: Metastore) -> None:
        splits = random_splits(3, 23)
        a_table(metastore)
        add(metastore, "c1", *splits)
        query = SplitQuery(time_range=(0, HOUR * US))
        for size in (*range(1, 26), 1000):
            assert ids(metastore, 1, page_size=size) == expected(splits, SplitQuery())
            assert ids(metastore, 1, query, page_size=size) == expected(splits, query)
            assert all(1 <= len(page) <= size for page in metastore.splits(TABLE, 1, page_size=size))

    def test_windows_are_summed(self, metastore: Metastore, open_again: OpenAgain) -> None:
        splits = random_splits(4, 60)
        a_table(metastore)
        add(metastore, "c1", *splits)
        begin(metastore, "c2", CommitKind.EXPIRE)
        metastore.publish("c2", replace=[split.split_id for split in splits[:30]])
        for client in (metastore, open_again()):
            assert sorted(map(repr, client.windows(TABLE, 1))) == sorted(map(repr, sums(splits)))
            assert sorted(map(repr, client.windows(TABLE, 2))) == sorted(map(repr, sums(splits[30:])))

    def test_windows_come_in_order_of_time(self, metastore: Metastore) -> None:
        a_table(metastore)
        add(metastore, "c1", *(a_split(f"s{start}", "c1", start) for start in (1800, -900, 0, 900)))
        found = [summary.window for summary in metastore.windows(TABLE, 1)]
        assert found == [Window(start, 900) for start in (-900, 0, 900, 1800)]

    @pytest.mark.parametrize(
        "predicate",
        [
            Comparison("host", Op.EQUAL, "c"),
            In("host", ("c",)),
            StartsWith("host", "c"),
            GHOST,
        ],
    )
    def test_a_predicate_leaves_out_only_what_cannot_match(self, metastore: Metastore, predicate: Predicate) -> None:
        splits = random_splits(5, 60)
        a_table(metastore)
        add(metastore, "c1", *splits)
        expected = [split.split_id for split in sorted(splits, key=order) if _may_hold_c(split) or predicate == GHOST]
        assert 0 < sum(map(_may_hold_c, splits)) < len(splits)
        for size in (1, 7, 1000):
            assert ids(metastore, 1, SplitQuery(predicate=predicate), page_size=size) == expected

    def test_a_listing_is_not_disturbed_by_later_commits(self, metastore: Metastore, open_again: OpenAgain) -> None:
        a_table(metastore)
        add(metastore, "c1", *(a_split(f"s{number}", "c1") for number in range(6)))
        pages = metastore.splits(TABLE, 1, page_size=2)
        seen = [split.split_id for split in next(pages)]
        begin(open_again(), "c2", CommitKind.EXPIRE)
        metastore.publish("c2", replace=["s0", "s3", "s5"], add=[a_split("s4x", "c2")])
        assert seen + [split.split_id for page in pages for split in page] == [f"s{number}" for number in range(6)]

    def test_tables_are_listed_apart(self, metastore: Metastore) -> None:
        a_table(metastore)
        a_table(metastore, "events", "table-2")
        add(metastore, "c1")
        begin(metastore, "c2", table_id="table-2")
        metastore.publish("c2", add=[a_split("other", "c2", scope=scope("table-2"))])
        assert ids(metastore, 1) == ["c1"]
        assert ids(metastore, 1, table_id="table-2") == ["other"]
        assert [summary.splits for summary in metastore.windows("table-2", 1)] == [1]

    def test_windows_at_the_ends_of_time_are_listed(self, metastore: Metastore) -> None:
        a_table(metastore)
        least, greatest = (start // 900 * 900 for start in (-(2**63) + 900, 2**63 - 1))
        ends = (("a", least), ("z", greatest))
        splits = [a_split(name, "c1", start, time_min=None, time_max=None) for name, start in ends]
        add(metastore, "c1", *splits)
        assert ids(metastore, 1) == ["a", "z"]
        assert ids(metastore, 1, SplitQuery(window=Window(greatest, 900))) == ["z"]
        assert ids(metastore, 1, SplitQuery(time_range=(0, US))) == []

    @pytest.mark.parametrize("size", [0, -1])
    def test_a_page_holds_something(self, metastore: Metastore, size: int) -> None:
        a_table(metastore)
        with pytest.raises(InvalidInput, match="page_size: expected 1 or more"):
            list(metastore.splits(TABLE, 0, page_size=size))

    def test_a_scope_of_another_table_is_refused(self, metastore: Metastore) -> None:
        a_table(metastore)
        with pytest.raises(InvalidInput, match="scope is one of table table-2"):
            ids(metastore, 0, SplitQuery(scope=scope("table-2")))


def _may_hold_c(split: SplitMetadata) -> bool:
    if not split.zones:
        return True
    low, high = split.zones[0].minimum.value, split.zones[0].maximum.value
    return isinstance(low, str) and isinstance(high, str) and low <= "c" <= high
