"""What statistics may cost is a share of the CPU of queries, counted once."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow.learning.earnings import Earnings
from windrow.learning.log import QueryCpu


class Clocks:
    """The CPU of a process, and of the one thread of it that learns."""

    def __init__(self):
        self.process = self.thread = 0.0

    def others(self, seconds):
        self.process += seconds

    def own(self, seconds):
        self.process += seconds
        self.thread += seconds

    def account(self, share=0.2):
        return Earnings(share, spent=lambda: self.thread, clock=lambda: self.process)


@pytest.fixture
def clocks():
    return Clocks()


def test_a_query_earns_a_share_and_work_costs_what_it_takes(clocks):
    account = clocks.account()
    clocks.others(10)
    account.earn(QueryCpu(0, 10, 10))
    assert account.balance == pytest.approx(2)
    assert account.work(clocks.own, 0.5) == pytest.approx(0.5)
    assert account.balance == pytest.approx(1.5)


def test_of_queries_that_ran_at_once_none_counts_twice(clocks):
    account = clocks.account()
    for query in (QueryCpu(0, 10, 10), QueryCpu(2, 9, 7), QueryCpu(5, 12, 7)):
        account.earn(query)
    assert account.balance == pytest.approx(0.2 * 12)


def test_a_stream_earns_what_was_used_while_it_worked(clocks):
    account = clocks.account()
    account.earn(QueryCpu(0, 100, 3))
    assert account.balance == pytest.approx(0.6)


def test_what_the_account_itself_used_earns_nothing(clocks):
    account = clocks.account()
    clocks.others(4)
    account.work(clocks.own, 2)
    clocks.others(4)
    account.earn(QueryCpu(0, 10, 10))
    assert account.balance == pytest.approx(0.2 * 8 - 2)


@given(st.lists(st.tuples(st.floats(0, 5), st.floats(0, 5), st.floats(0, 3)), max_size=30))
def test_no_more_is_earned_than_a_share_of_all_cpu_of_others(steps):
    clocks = Clocks()
    account = clocks.account()
    used = 0.0
    for rest, query, work in steps:
        clocks.others(rest)
        began = clocks.process
        clocks.others(query)
        used += query
        account.earn(QueryCpu(began, clocks.process, query))
        account.work(clocks.own, work)
    assert account.balance + clocks.thread <= 0.2 * used + 1e-6


def test_work_that_fails_is_paid_for_too(clocks):
    account = clocks.account()

    def fail():
        clocks.own(1)
        raise ValueError("failed")

    with pytest.raises(ValueError, match="failed"):
        account.work(fail)
    assert account.balance == pytest.approx(-1)
