"""The memory budget of an ingest holds for all of it, whatever the data and the threads."""

from __future__ import annotations

import pyarrow as pa
import pytest
from benchmarks.memory import CONSTANT, MIB, TIMES, measured

import windrow
from windrow.errors import InvalidInput
from windrow.ingest.chunks import chunks_of
from windrow.ingest.spill import cut_down
from windrow.runners.local import run_locally

BUDGET = 8 * MIB


@pytest.mark.parametrize(("way", "threads"), [("arrow", 64), ("files", 2)])
def test_twenty_times_the_budget_takes_the_budget_and_a_constant(tmp_path, way, threads):
    found = measured(way, tmp_path, TIMES * BUDGET, BUDGET, threads)
    assert found["done"] > 1_000_000
    assert found["peak"] < BUDGET + CONSTANT


@pytest.mark.long
@pytest.mark.parametrize(("way", "threads"), [("arrow", 2), ("arrow", 64), ("files", 2), ("files", 64)])
def test_larger_budgets_hold_too(tmp_path, way, threads):
    found = measured(way, tmp_path, TIMES * 128 * MIB, 128 * MIB, threads)
    assert found["peak"] < 128 * MIB + CONSTANT


def numbers(count, rows=10):
    for _ in range(count):
        yield pa.record_batch({"a": pa.array(range(rows), pa.int64())})


def test_a_batch_beyond_the_budget_is_taken_in_slices():
    rows = pa.record_batch({"a": pa.array(range(25), pa.int64())})
    assert [each.num_rows for each in cut_down([rows], 80)] == [10, 10, 5]
    assert [each.num_rows for each in cut_down([rows], 1)] == [1] * 25


def test_a_stream_is_read_as_tasks_take_it():
    read = []

    def stream():
        for batch in numbers(100):
            read.append(batch.num_rows)
            yield batch

    first = next(iter(chunks_of(stream(), 10**6)))
    next(iter(first))
    assert len(read) == 1


def test_a_task_that_fails_stops_the_tasks_that_wait_for_the_stream():
    def work(chunk, number):
        with chunk:
            for _ in chunk:
                if number == 1:
                    raise InvalidInput("no more")
            yield str(number)

    with pytest.raises(InvalidInput, match="no more"):
        run_locally(chunks_of(numbers(1000), 400), work, threads=4)


def test_a_stream_that_fails_is_reported():
    def stream():
        yield from numbers(3)
        raise OSError("the line is dead")

    def work(chunk, number):
        with chunk:
            yield str(sum(batch.num_rows for batch in chunk))

    with pytest.raises(OSError, match="the line is dead"):
        run_locally(chunks_of(stream(), 100), work, threads=3)


def test_threads_are_checked_before_anything_is_written(tmp_path):
    with windrow.connect(str(tmp_path / "lake")) as lake:
        table = lake.create_table("events", sort="host|timestamp/V2")
        with pytest.raises(InvalidInput, match="threads"):
            table.ingest(pa.table({"timestamp": [1], "host": ["a"]}), threads=0)
        assert table.version() == 0
