"""Threads and memory as users write them."""

from __future__ import annotations

import duckdb
import pytest

from windrow.errors import ConfigError
from windrow.model.limits import NO_LIMITS, Limits


@pytest.mark.parametrize(
    ("text", "size"),
    [("4GB", 4 * 10**9), ("512 MiB", 2**29), ("1.5gb", 1_500_000_000), ("1tib", 2**40), ("64000000 bytes", 64_000_000)],
)
def test_memory_is_read_as_duckdb_reads_it(text, size):
    assert Limits.of(None, text).memory == size
    with duckdb.connect() as ours, duckdb.connect() as theirs:
        ours.execute("set memory_limit = ?", [Limits.of(None, text).memory_text])
        theirs.execute("set memory_limit = ?", [text])
        setting = "select current_setting('memory_limit')"
        assert ours.execute(setting).fetchall() == theirs.execute(setting).fetchall()


def test_a_share_is_one_of_the_machine():
    whole, half = Limits.of(None, "100%").memory, Limits.of(None, "50%").memory
    assert half == whole // 2


@pytest.mark.parametrize("memory", ["much", "", "4", "0GB", "-1GB", "4XB", 4_000_000_000, True])
def test_what_is_no_size_is_refused(memory):
    with pytest.raises(ConfigError, match="memory_limit.*write it as 4GB"):
        Limits.of(None, memory)


@pytest.mark.parametrize("threads", [0, -1, 1.5, "2", True])
def test_what_is_no_number_of_threads_is_refused(threads):
    with pytest.raises(ConfigError, match="threads.*give 1 or more"):
        Limits.of(threads, None)


def test_a_default_stays_below_the_limit():
    assert (Limits.of(None, "1GB").within(10), Limits.of(None, "1GB").within(10**10)) == (10, 10**9)
    assert NO_LIMITS.within(10**10) == 10**10
    assert (Limits.of(3, None).workers, NO_LIMITS.workers >= 1) == (3, True)
