"""Points are late, or from the future, by the arrival time of their batch alone."""

from __future__ import annotations

from fractions import Fraction

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow.ingest.late import ArrivalRule

PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
ticks = st.lists(st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1), st.integers(-5000, 5000)), max_size=30)
bounds = st.one_of(st.none(), st.integers(0, 100))


def numbers(table):
    return table["number"].to_pylist()


@given(
    ticks=ticks,
    unit=st.sampled_from(list(PER_SECOND)),
    arrived=st.integers(-(10**7), 10**7),
    oldest=bounds,
    newest=bounds,
)
def test_it_agrees_with_exact_fractions(ticks, unit, arrived, oldest, newest):
    rows = pa.table({"t": pa.array(ticks, pa.timestamp(unit)), "number": range(len(ticks))})
    judged = ArrivalRule(arrived, oldest, newest).judge(rows, "t", None)
    age = {
        number: None if tick is None else Fraction(arrived, 10**6) - Fraction(tick, PER_SECOND[unit])
        for number, tick in enumerate(ticks)
    }
    late = [n for n, each in age.items() if each is not None and oldest is not None and each > oldest]
    future = [n for n, each in age.items() if each is not None and newest is not None and -each > newest]
    assert numbers(judged.late) == late
    assert numbers(judged.future) == future
    assert numbers(judged.taken) == [n for n in age if n not in late and n not in future]


def test_a_replay_is_decided_by_the_recorded_arrival():
    rows = pa.table({"t": pa.array([0], pa.int64())})
    assert ArrivalRule(3600 * 10**6, 3600).judge(rows, "t", "s").taken.num_rows == 1
    assert ArrivalRule(3600 * 10**6 + 1, 3600).judge(rows, "t", "s").late.num_rows == 1


@pytest.mark.parametrize("rule", [ArrivalRule(0, None, None), ArrivalRule(0, 10, 10)])
def test_no_rows_are_no_trouble(rule):
    assert rule.judge(pa.table({"t": pa.array([], pa.timestamp("us"))}), "t", None).taken.num_rows == 0
