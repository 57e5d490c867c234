"""A budget is shared among what runs at once."""

from __future__ import annotations

import os

import pytest

from windrow.errors import InvalidInput
from windrow.runners.memory import Shares, check_threads, default_budget, shares

MIB = 2**20


@pytest.mark.parametrize(
    ("budget", "threads", "shared"),
    [
        (1024 * MIB, 2, Shares(2, 512 * MIB)),
        (1024 * MIB, 64, Shares(16, 64 * MIB)),
        (100 * MIB, 64, Shares(1, 100 * MIB)),
        (0, 64, Shares(1, 0)),
    ],
)
def test_fewer_tasks_run_at_once_where_the_budget_is_small(budget, threads, shared):
    assert shares(budget, threads) == shared
    assert shared.tasks * shared.size <= budget


def test_the_default_grows_with_the_threads_up_to_half_of_the_machine():
    assert default_budget(MIB, 3) == 3 * MIB
    assert default_budget(2**60, 3) == os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2


@pytest.mark.parametrize("threads", [0, -1, True, 1.5, "2"])
def test_what_is_no_number_of_threads_is_refused(threads):
    with pytest.raises(InvalidInput, match="threads: .* is not a number of threads"):
        check_threads(threads)
