"""Work in this process: reports in order, bounded in what is taken, the first error ends it."""

from __future__ import annotations

import threading

import pytest

from windrow.runners.local import run_locally


def test_reports_come_in_the_order_of_the_units():
    heard = []
    fast_was_heard = threading.Event()

    def work(unit, number):
        assert unit == "fast" or fast_was_heard.wait(60)
        yield f"{unit} {number}"
        yield "end"

    def hear(report):
        heard.append(report)
        fast_was_heard.set()

    assert run_locally(["slow", "fast"], work, hear, threads=2) == ["slow 0", "end", "fast 1", "end"]
    assert heard == ["fast 1", "end", "slow 0", "end"], "what is done first is heard first"


def test_no_more_units_are_taken_than_threads_are_free():
    taken, finished = [], []

    def units():
        for number in range(20):
            taken.append(number)
            yield number

    def work(unit, number):
        assert len(taken) - len(finished) <= 2
        yield str(unit)
        finished.append(number)

    assert run_locally(units(), work, threads=2) == [str(number) for number in range(20)]


def test_the_first_error_is_raised_and_the_rest_does_not_start():
    started = []

    def work(unit, _):
        started.append(unit)
        if unit == 1:
            raise ValueError("broken")
        yield "fine"

    with pytest.raises(ValueError, match="broken"):
        run_locally(range(100), work, threads=1)
    assert started == [0, 1]


def test_nothing_to_do_is_done():
    assert run_locally([], lambda unit, number: iter([])) == []
