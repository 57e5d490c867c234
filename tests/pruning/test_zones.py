"""Splits by their zone maps: one that holds a matching row is never left out, and plain cases are."""

from __future__ import annotations

import operator
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from windrow.model.predicate import (
    And,
    Between,
    Comparison,
    In,
    IsNotNull,
    IsNull,
    Not,
    Op,
    Or,
    StartsWith,
    matches,
)
from windrow.model.scope import CompactionScope
from windrow.model.sort_schema import SortSchema
from windrow.model.split import SplitMetadata
from windrow.model.window import Window
from windrow.model.zones import NULL, ColumnZone, SortColumnValue
from windrow.pruning.zones import prune_splits
from windrow.splits.zone_maps import zone_maps

SORT = SortSchema.parse("name|at|count&reading|note|day|flag/V2")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
NAN, INFINITY = float("nan"), float("inf")
TYPES = {
    "name": pa.string(),
    "at": pa.timestamp("us", tz="UTC"),
    "count": pa.int64(),
    "reading": pa.float64(),
    "note": pa.string(),
    "day": pa.date32(),
    "flag": pa.bool_(),
}

moments = st.integers(-3, 3).map(lambda us: EPOCH + timedelta(microseconds=us))
# Longer than any bound is kept, so that bounds are shortened.
tails = st.sampled_from(["", "a", "b", "y" * 64 + "a", "y" * 64 + "b", "\U0010ffff" * 65])
VALUES = {
    "name": st.text("abé\U0010ffff", max_size=2),
    "at": moments,
    "count": st.integers(-3, 3) | st.sampled_from([-(2**63), 2**63 - 1]),
    "reading": st.sampled_from([-INFINITY, -1.5, -0.0, 0.0, 1.0, 2.5, INFINITY, NAN]),
    "note": st.tuples(st.sampled_from(["", "x", "x" * 64]), tails).map("".join),
    "day": st.integers(-2, 2).map(lambda days: date(1970, 1, 1) + timedelta(days=days)),
    "flag": st.booleans(),
}
LITERALS = {
    **VALUES,
    "at": moments | moments.map(lambda moment: moment.astimezone(timezone(timedelta(hours=5)))) | VALUES["day"],
    "count": VALUES["count"] | VALUES["reading"] | st.sampled_from([Decimal("1.5"), Decimal("NaN"), 2**70]),
    "reading": VALUES["reading"] | st.integers(-2, 3) | st.sampled_from([Decimal("2.5"), Decimal("Infinity")]),
    "day": VALUES["day"] | moments,
}

ROWS = st.fixed_dictionaries({name: st.none() | values for name, values in VALUES.items()})


def leaves(column):
    literals, named = LITERALS[column], st.just(column)
    kinds = [
        st.builds(Comparison, named, st.sampled_from(Op), literals),
        st.builds(In, named, st.lists(literals, max_size=3).map(tuple)),
        st.builds(Between, named, literals, literals),
        st.builds(IsNull, named),
        st.builds(IsNotNull, named),
    ]
    if TYPES[column] == pa.string():
        kinds.append(st.builds(StartsWith, named, literals))
    return st.one_of(kinds)


def combined(parts):
    several = st.lists(parts, max_size=3).map(tuple)
    return st.one_of(st.builds(And, several), st.builds(Or, several), st.builds(Not, parts))


PREDICATES = st.recursive(st.sampled_from(sorted(VALUES)).flatmap(leaves), combined, max_leaves=5)


def split_with(zones, row_count, sort=SORT):
    scope = CompactionScope("table", "default", 0, 0, sort.canonical(), 900)
    return SplitMetadata("s", scope, Window(0, 900), "s.parquet", 1, row_count, 0, "c", zones=tuple(zones))


def split_of(rows, types=TYPES):
    """Return a split with the zone maps that the writer gives it."""
    columns = {name: pa.array([row.get(name) for row in rows], kind) for name, kind in types.items()}
    return split_with(zone_maps(pa.table(columns), SORT), len(rows))


def may_match(predicate, split):
    return prune_splits(predicate, [split]) == [split]


@given(predicate=PREDICATES, rows=st.lists(ROWS, min_size=1, max_size=4))
@example(Comparison("reading", Op.GREATER, 100.0), [{"reading": 1.0}, {"reading": NAN}])
@example(Comparison("reading", Op.EQUAL, NAN), [{"reading": NAN}])
@example(Comparison("note", Op.GREATER, "x" * 64 + "y" * 64), [{"note": "x" * 64 + "y" * 64 + "a"}])
@example(Comparison("note", Op.GREATER, "y"), [{"note": "\U0010ffff" * 65}])
@example(StartsWith("name", "a"), [{"name": "ab"}])
@example(Not(StartsWith("name", "a")), [{"name": "b"}])
@example(Not(In("count", (1, 2))), [{"count": 1}, {"count": 3}])
def test_a_split_that_holds_a_matching_row_is_never_left_out(predicate, rows):
    if any(matches(predicate, row) for row in rows):
        assert may_match(predicate, split_of(rows))


OPERATORS = {
    Op.EQUAL: operator.eq,
    Op.NOT_EQUAL: operator.ne,
    Op.LESS: operator.lt,
    Op.LESS_OR_EQUAL: operator.le,
    Op.GREATER: operator.gt,
    Op.GREATER_OR_EQUAL: operator.ge,
}


@given(
    ticks=st.lists(st.integers(-3000, 3000), min_size=1, max_size=3),
    op=st.sampled_from(Op),
    microseconds=st.integers(-4, 4),
)
@example([1], Op.GREATER, 0)
@example([-1], Op.LESS, 0)
def test_times_finer_than_microseconds_are_never_left_out(ticks, op, microseconds):
    types = TYPES | {"at": pa.timestamp("ns")}
    split = split_of([{"at": tick} for tick in ticks], types)
    if any(OPERATORS[op](tick, microseconds * 1000) for tick in ticks):
        assert may_match(Comparison("at", op, EPOCH + timedelta(microseconds=microseconds)), split)


# What a zone proves

LOW, HIGH = EPOCH, EPOCH + timedelta(hours=1)
ROWS_OF_A_SPLIT = [
    {"name": "cpu", "at": LOW, "count": 5, "reading": 1.0, "day": date(2024, 5, 1), "flag": True},
    {"name": "disk", "at": HIGH, "count": 9, "reading": 2.0, "day": date(2024, 5, 2), "flag": True},
]
LEFT_OUT = [
    Comparison("name", Op.EQUAL, "network"),
    Comparison("name", Op.EQUAL, "daemon"),
    Comparison("name", Op.LESS, "cpu"),
    Comparison("name", Op.GREATER, "disl"),
    In("name", ("a", "network")),
    In("name", ()),
    StartsWith("name", "net"),
    StartsWith("name", "dz"),
    Between("name", "e", "z"),
    Comparison("at", Op.LESS, LOW),
    Comparison("at", Op.GREATER, HIGH + timedelta(microseconds=1)),
    Between("at", HIGH + timedelta(seconds=1), HIGH + timedelta(days=1)),
    Comparison("count", Op.LESS, 5),
    Comparison("count", Op.GREATER_OR_EQUAL, 9.5),
    Not(Comparison("count", Op.GREATER_OR_EQUAL, 5)),
    Comparison("reading", Op.LESS, 1.0),
    Comparison("reading", Op.EQUAL, 3.0),
    Comparison("day", Op.GREATER, date(2024, 6, 1)),
    Comparison("flag", Op.EQUAL, False),
    IsNull("name"),
    IsNotNull("note"),
    Comparison("note", Op.NOT_EQUAL, "x"),
    And((Comparison("name", Op.EQUAL, "cpu"), Comparison("count", Op.GREATER, 100))),
    Or((Comparison("name", Op.EQUAL, "network"), Comparison("count", Op.GREATER, 100))),
    Or(()),
]
KEPT = [
    Comparison("name", Op.EQUAL, "cpu"),
    Comparison("name", Op.NOT_EQUAL, "cpu"),
    Comparison("at", Op.GREATER, HIGH),
    Comparison("count", Op.LESS, 5.5),
    Comparison("reading", Op.GREATER, 100.0),
    Comparison("reading", Op.EQUAL, NAN),
    Comparison("elsewhere", Op.EQUAL, "x"),
    IsNull("note"),
    IsNull("elsewhere"),
    Not(StartsWith("name", "cpu")),
    And(()),
]


@pytest.mark.parametrize("predicate", LEFT_OUT, ids=str)
def test_a_split_that_cannot_match_is_left_out(predicate):
    assert not any(matches(predicate, row) for row in ROWS_OF_A_SPLIT)
    assert not may_match(predicate, split_of(ROWS_OF_A_SPLIT))


@pytest.mark.parametrize("predicate", KEPT, ids=str)
def test_what_is_not_known_may_match(predicate):
    assert may_match(predicate, split_of(ROWS_OF_A_SPLIT))


def test_an_expression_leaves_out_what_bounds_cannot():
    bounds = SortColumnValue.of("cpu"), SortColumnValue.of("network")
    plain = split_with([ColumnZone(*bounds, 0)], 2)
    precise = split_with([ColumnZone(*bounds, 0, "cpu|network")], 2)
    disk = Comparison("name", Op.EQUAL, "disk")
    assert may_match(disk, plain)
    assert not may_match(disk, precise)
    assert not may_match(In("name", ("disk", "memory")), precise)
    assert may_match(In("name", ("disk", "network")), precise)


@pytest.mark.parametrize("regex", ["(", "(?<=a)b", "a{1001}", r"(a)\1"])
def test_an_expression_that_cannot_be_used_proves_nothing(regex, capfd):
    zone = ColumnZone(SortColumnValue.of("a"), SortColumnValue.of("z"), 0, regex)
    assert may_match(Comparison("name", Op.EQUAL, "b"), split_with([zone], 1))
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("low", [NULL, SortColumnValue.of(1)])
@pytest.mark.parametrize("high", [NULL, SortColumnValue.of(9)])
def test_each_bound_counts_by_itself(low, high):
    split = split_with([ColumnZone(low, high, 0)], 1)
    assert may_match(Comparison("name", Op.LESS, 0), split) == (low is NULL)
    assert may_match(Comparison("name", Op.GREATER, 10), split) == (high is NULL)
    assert may_match(StartsWith("name", "a"), split)


@pytest.mark.parametrize("low", [2**63, 5])
def test_numbers_of_64_bits_are_compared_whatever_their_sign(low):
    split = split_with([ColumnZone(SortColumnValue.of(low), SortColumnValue.of(2**64 - 1), 0)], 1)
    assert not may_match(Comparison("name", Op.LESS, 5), split)
    assert not may_match(Comparison("name", Op.EQUAL, 2**64), split)
    assert may_match(Comparison("name", Op.EQUAL, 2**64 - 2), split)


def test_of_no_splits_none_are_left():
    assert prune_splits(Comparison("name", Op.EQUAL, "x"), []) == []


def test_a_split_without_zones_may_match():
    bare = split_with([], 1)
    registered = replace(bare, scope=replace(bare.scope, sort_schema=""))
    for split in (bare, registered):
        assert may_match(Comparison("name", Op.EQUAL, "x"), split)
