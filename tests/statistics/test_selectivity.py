"""Which share of rows conditions select: by the sample, by distinct counts and bounds, by neither."""

from __future__ import annotations

import math
from datetime import date, timedelta

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow.model.predicate import And, Between, Comparison, In, IsNotNull, IsNull, Not, Op, Or, StartsWith
from windrow.statistics.join_graph import Filter
from windrow.statistics.selectivity import Share, evaluate_predicates, selected_share, share_by_statistics
from windrow.statistics.table_statistics import ColumnStatistics, DistinctCount, TableStatistics, exact_statistics

ROWS = 10_000
GENERATOR = np.random.default_rng(7)
CITY = GENERATOR.integers(0, 50, ROWS)
TABLE = pa.table(
    {
        "id": np.arange(ROWS),
        "city": [f"city-{each:02}" for each in CITY],
        "country": [f"country-{each // 5}" for each in CITY],
        "day": [date(2024, 1, 1) + timedelta(days=int(each)) for each in GENERATOR.integers(0, 366, ROWS)],
        "maybe": pa.array([None if each % 4 else each for each in range(ROWS)], pa.int64()),
        "nothing": pa.nulls(ROWS, pa.int64()),
        "nan": np.full(ROWS, math.nan),
    }
)
KNOWN = exact_statistics(TABLE, GENERATOR.choice(ROWS, 1024, replace=False).tolist())
UNSAMPLED = exact_statistics(TABLE)


def columns_of(sql):
    return tuple(name for name in TABLE.column_names if name in sql)


def evaluated(rows, filters):
    connection = duckdb.connect()
    connection.register("rows", rows)
    return [
        connection.sql(f"select coalesce(({each.sql}), false) as found from rows").fetchnumpy()["found"].astype(bool)
        for each in filters
    ]


def condition(sql, predicate=None):
    return Filter(sql, columns_of(sql), predicate)


def truth(*filters):
    return float(np.logical_and.reduce(evaluated(TABLE, filters)).mean())


@pytest.mark.parametrize(
    ("predicate", "share"),
    [
        (Comparison("city", Op.EQUAL, "city-07"), 1 / 50),
        (Comparison("city", Op.EQUAL, "nowhere"), 0.0),
        (Comparison("city", Op.NOT_EQUAL, "city-07"), 1.0),
        (Comparison("id", Op.LESS, 2500), 0.25),
        (Comparison("id", Op.GREATER_OR_EQUAL, ROWS), 0.0),
        (Between("day", date(2024, 1, 1), date(2024, 3, 31)), 90 / 365),
        (In("city", ("city-01", "city-02", "city-03")), 3 / 50),
        (IsNull("maybe"), 0.75),
        (IsNotNull("maybe"), 0.25),
        (Comparison("maybe", Op.LESS, 5000), 0.125),
        (Comparison("nothing", Op.EQUAL, 1), 0.0),
        (IsNull("nothing"), 1.0),
        (And((Comparison("id", Op.LESS, 5000), IsNull("maybe"))), 0.375),
        (Or((Comparison("id", Op.LESS, 5000), IsNull("maybe"))), 0.875),
        (Not(Comparison("id", Op.LESS, 2500)), 0.75),
    ],
)
def test_distinct_counts_and_bounds_tell_a_share(predicate, share):
    assert share_by_statistics(UNSAMPLED, predicate).value == pytest.approx(share, abs=0.01)


@pytest.mark.parametrize(
    "predicate", [Comparison("nan", Op.LESS, 1.0), Comparison("missing", Op.EQUAL, 1), Comparison("id", Op.LESS, "x")]
)
def test_what_they_do_not_tell_is_unknown(predicate):
    assert share_by_statistics(UNSAMPLED, predicate) is None


def test_without_a_sample_the_unknown_is_a_vague_guess():
    assert selected_share(UNSAMPLED, [condition("city like '%7'")], evaluated) == Share(0.2, is_vague=True)


def test_guesses_of_distinct_counts_stay_vague():
    guessed = DistinctCount(10, is_vague=True)
    table = TableStatistics(100, {"city": ColumnStatistics(guessed)})
    predicate = Comparison("city", Op.EQUAL, "a")
    assert selected_share(table, [condition("city = 'a'", predicate)]) == Share(0.1, is_vague=True)


@pytest.mark.parametrize(
    "sql",
    [
        "city like '%7'",
        "substr(city, 6) in ('01', '02')",
        "id % 7 = 3",
        "nan > 1",
        "maybe is null",
        "maybe > 5000",
        "day between date '2024-05-01' and date '2024-06-30'",
    ],
)
def test_any_condition_is_tried_on_the_sample(sql):
    assert selected_share(KNOWN, [condition(sql)], evaluated).value == pytest.approx(truth(condition(sql)), rel=0.4)


def test_correlated_conditions_count_as_they_are():
    both = [condition("country = 'country-3'"), condition("city between 'city-15' and 'city-19'")]
    assert selected_share(KNOWN, both, evaluated).value == pytest.approx(truth(*both), rel=0.4)


def test_a_rare_value_has_the_share_of_its_distinct_count():
    predicate = Comparison("id", Op.EQUAL, 77)
    share = selected_share(KNOWN, [condition("id = 77", predicate)], evaluated).value
    assert 1 / ROWS / 2 <= share <= 1 / ROWS * 10


def test_where_no_row_matches_independent_columns_multiply():
    day, city = Comparison("day", Op.EQUAL, date(2024, 2, 3)), Comparison("city", Op.EQUAL, "city-07")
    both = [condition("day = date '2024-02-03'", day), condition("city = 'city-07'", city)]
    share = selected_share(KNOWN, both, evaluated).value
    assert 1 / 366 / 50 / 3 < share < 1 / 366 / 50 * 20


def test_a_function_that_matches_nothing_is_less_than_one_row_of_the_sample():
    assert 0 < selected_share(KNOWN, [condition("city like '%x'")], evaluated).value < 1 / 1024


def test_a_sample_that_is_the_table_is_exact():
    table = exact_statistics(TABLE.slice(0, 50), range(50))
    assert selected_share(table, [condition("id < 3")], evaluated) == Share(3 / 50)


def test_columns_that_the_sample_lacks_are_told_by_their_statistics():
    table = TableStatistics(ROWS, UNSAMPLED.columns, KNOWN.sample.drop_columns(["id"]))
    filters = [condition("id < 2500", Comparison("id", Op.LESS, 2500)), condition("country = 'country-3'")]
    assert selected_share(table, filters, evaluated).value == pytest.approx(0.25 * 0.1, rel=0.4)


def test_predicates_need_no_engine():
    filters = [condition("city = 'city-07'", Comparison("city", Op.EQUAL, "city-07")), condition("city like '%7'")]
    mask, none = evaluate_predicates(TABLE, filters)
    assert none is None
    assert mask.tolist() == evaluated(TABLE, filters[:1])[0].tolist()


def test_no_condition_selects_everything():
    assert selected_share(KNOWN, [], evaluated) == Share(1.0)


VALUES = st.lists(st.none() | st.integers(-5, 5) | st.sampled_from([2**60, -(2**60)]), min_size=1, max_size=30)
PREDICATES = st.recursive(
    st.builds(Comparison, st.just("v"), st.sampled_from(list(Op)), st.integers(-6, 6))
    | st.builds(IsNull, st.just("v"))
    | st.builds(lambda low, more: Between("v", low, low + more), st.integers(-6, 6), st.integers(0, 4))
    | st.builds(In, st.just("v"), st.lists(st.integers(-6, 6), max_size=3).map(tuple)),
    lambda parts: (
        st.builds(lambda a, b: And((a, b)), parts, parts)
        | st.builds(lambda a, b: Or((a, b)), parts, parts)
        | st.builds(Not, parts)
    ),
    max_leaves=4,
)


@given(VALUES, PREDICATES)
def test_a_share_is_between_nothing_and_everything(values, predicate):
    table = pa.table({"v": pa.array(values, pa.int64())})
    share = share_by_statistics(exact_statistics(table), predicate)
    assert share is None or 0 <= share.value <= 1
    whole = selected_share(exact_statistics(table, range(len(values))), [Filter("", ("v",), predicate)])
    assert whole.value == evaluate_predicates(table, [Filter("", ("v",), predicate)])[0].mean()


@given(st.text(max_size=5), st.text(min_size=1, max_size=3))
def test_text_has_a_place_between_bounds(prefix, other):
    column = ColumnStatistics(DistinctCount(100), 0, min(prefix + "a", other), max(prefix + "a", other))
    share = share_by_statistics(TableStatistics(100, {"t": column}), StartsWith("t", other))
    assert share is None or 0 <= share.value <= 1
