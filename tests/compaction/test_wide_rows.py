"""Rows of hundreds of columns, which two batches share in part."""

import numpy as np
import pyarrow as pa
import pytest

import windrow
from windrow.reading.decoded_rows import MOST_COLUMNS

COLUMNS = MOST_COLUMNS + 50
KINDS = [pa.float64(), pa.int64(), pa.string(), pa.bool_()]


def batch(seed, names):
    random = np.random.default_rng(seed)
    times = pa.array(random.integers(0, 3_600_000_000, 40), pa.timestamp("us"))
    numbers = pa.array(random.integers(0, 9, 40))
    values = {name: numbers.cast(KINDS[place % len(KINDS)]) for place, name in enumerate(names)}
    return pa.table({"sensor": pa.array([f"s{seed}"] * 40), "timestamp": times, **values})


@pytest.fixture
def table(tmp_path):
    lake = windrow.connect(tmp_path / "lake")
    table = lake.create_table("wide", sort="sensor|timestamp/V2", window="1h")
    shared = [f"shared{number:04d}" for number in range(COLUMNS // 2)]
    for seed in (1, 2):
        table.ingest(batch(seed, [*shared, *(f"own{seed}{number:04d}" for number in range(COLUMNS // 2))]))
    return table


def test_wide_rows_are_the_same_before_and_after_a_merge_and_when_they_are_read_again(table):
    query = "select * from wide order by sensor, timestamp"
    lake = windrow.connect(table.context.url)
    before = lake.sql(query).to_arrow()
    assert (before.num_rows, before.num_columns) == (80, 2 + 3 * (COLUMNS // 2))
    assert before["own10000"].null_count == before["own20000"].null_count == 40
    assert lake.sql(query).to_arrow().equals(before)
    assert table.compact.run().splits_out == 1
    assert lake.sql(query).to_arrow().equals(before)
    assert lake.sql(query).to_arrow().equals(before)
    assert table.scan().to_arrow().sort_by([("sensor", "ascending"), ("timestamp", "ascending")]).equals(before)
