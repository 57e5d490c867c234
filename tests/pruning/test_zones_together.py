"""Zone maps of many splits, judged together: as each split is judged by itself, and never a row lost."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import numpy as np
import pyarrow as pa
from hypothesis import given
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
from windrow.model.zones import NULL, ColumnZone, SortColumnValue, ValueKind
from windrow.pruning.zones import Zones, prune_splits
from windrow.splits.zone_maps import zone_maps

SORT = SortSchema.parse("name|at|count&reading|day/V2")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
NAN, INFINITY = float("nan"), float("inf")
TYPES = {
    "name": pa.string(),
    "at": pa.timestamp("us", tz="UTC"),
    "count": pa.int64(),
    "reading": pa.float64(),
    "day": pa.date32(),
}
moments = st.integers(-3, 3).map(lambda us: EPOCH + timedelta(microseconds=us))
VALUES = {
    "name": st.text("abé\U0010ffff", max_size=2) | st.sampled_from(["x" * 70, "x" * 64 + "y"]),
    "at": moments,
    "count": st.integers(-3, 3) | st.sampled_from([-(2**63), 2**63 - 1]),
    "reading": st.sampled_from([-INFINITY, -1.5, -0.0, 0.0, 2.5, INFINITY, NAN]),
    "day": st.integers(-2, 2).map(lambda days: date(1970, 1, 1) + timedelta(days=days)),
}
LITERALS = {
    **VALUES,
    "count": VALUES["count"] | VALUES["reading"] | st.sampled_from([Decimal("1.5"), 2**70]),
    "reading": VALUES["reading"] | st.integers(-2, 3) | st.just(Decimal("2.5")),
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
    return st.one_of(*kinds, *([st.builds(StartsWith, named, VALUES["name"])] if column == "name" else []))


PREDICATES = st.recursive(
    st.one_of(*map(leaves, VALUES)),
    lambda inner: st.one_of(
        st.builds(And, st.lists(inner, max_size=3).map(tuple)),
        st.builds(Or, st.lists(inner, max_size=3).map(tuple)),
        st.builds(Not, inner),
    ),
    max_leaves=5,
)


def split(number, rows, zones=None):
    table = pa.Table.from_pylist(rows, schema=pa.schema(list(TYPES.items())))
    return SplitMetadata(
        split_id=f"s{number}",
        scope=CompactionScope("t", "default", 0, 0, SORT.canonical(), 900),
        window=Window(0, 900),
        key=f"s{number}.parquet",
        size_bytes=1,
        row_count=len(rows),
        created_at=0,
        commit_id="c",
        zones=zone_maps(table, SORT) if zones is None else zones,
    )


def kept(splits, predicate):
    return set(Zones(splits).prune(predicate, np.arange(len(splits))).tolist())


@given(st.lists(st.lists(ROWS, min_size=1, max_size=3), min_size=1, max_size=5), PREDICATES)
def test_a_split_that_holds_a_matching_row_stays(batches, predicate):
    splits = [split(number, rows) for number, rows in enumerate(batches)]
    wanted = {n for n, rows in enumerate(batches) if any(matches(predicate, row) for row in rows)}
    assert wanted <= kept(splits, predicate)


@given(
    st.lists(st.lists(ROWS, min_size=1, max_size=3), min_size=1, max_size=5),
    st.one_of(*(leaves(name) for name in ("name", "count", "reading"))),
)
def test_no_more_splits_stay_than_would_each_by_itself(batches, predicate):
    splits = [split(number, rows) for number, rows in enumerate(batches)]
    assert kept(splits, predicate) <= {n for n, each in enumerate(splits) if prune_splits(predicate, [each])}


def test_regular_expressions_of_zones_are_asked():
    rows = [[{"name": "aa1"}, {"name": "aa3"}], [{"name": "aa1"}, {"name": "bb3"}]]
    splits = [split(number, each) for number, each in enumerate(rows)]
    assert splits[0].zones[0].regex is not None
    assert kept(splits, Comparison("name", Op.EQUAL, "aa2x")) == {
        n for n, each in enumerate(splits) if prune_splits(Comparison("name", Op.EQUAL, "aa2x"), [each])
    }


def test_zones_of_another_kind_unknown_and_missing_ones_prove_nothing():
    other = (ColumnZone(SortColumnValue(ValueKind.U64, 2**63), SortColumnValue(ValueKind.U64, 2**64 - 1), 0),)
    unknown = (ColumnZone(NULL, NULL, 0),)
    row = [{"name": "a"}]
    splits = [split(0, row), split(1, row, other), split(2, row, unknown), split(3, row, ())]
    assert kept(splits, Comparison("name", Op.EQUAL, "z")) == {1, 2, 3}
    assert kept(splits, Comparison("nowhere", Op.EQUAL, "z")) == {0, 1, 2, 3}


def test_only_the_places_that_are_asked_about_are_judged():
    splits = [split(number, [{"count": number}]) for number in range(5)]
    zones = Zones(splits)
    asked = Comparison("count", Op.GREATER_OR_EQUAL, 2)
    assert zones.prune(asked, np.array([0, 3, 4])).tolist() == [3, 4]
    assert zones.tells(["count"], np.array([1, 2]))
    assert not zones.tells(["nowhere"], np.array([1, 2]))
