"""A stream over a table that is larger than its budget takes no more memory than that."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import windrow

BUDGET = 128 * 2**20


def read_apart(**place):
    program = [sys.executable, str(Path(__file__).with_name("stream_memory.py")), json.dumps(place)]
    return json.loads(subprocess.run(program, check=True, capture_output=True, text=True).stdout)


def registered(lake, path):
    table = lake.create_table("points", sort="timestamp/V2")
    table.register.run(path)
    return table


def write_texts(path, rows):
    """Long texts of a small dictionary: little in the file, much in memory."""
    texts = pa.DictionaryArray.from_arrays(np.arange(rows, dtype=np.int32) % 100, [f"{n:03d}" * 60 for n in range(100)])
    numbers = np.arange(rows)
    table = pa.table({"timestamp": pa.array(numbers, pa.timestamp("us")), "number": numbers, "text": texts})
    pq.write_table(table, path, row_group_size=50_000)


def test_a_local_table_of_four_times_the_budget(tmp_path):
    rows = 3_000_000
    write_texts(tmp_path / "points.parquet", rows)
    with windrow.connect(tmp_path / "lake") as lake:
        registered(lake, tmp_path / "points.parquet")
    found = read_apart(lake=str(tmp_path / "lake"), budget=BUDGET)
    assert found["rows"] == rows
    assert found["bytes"] > 4 * BUDGET
    assert found["grew"] < BUDGET


@pytest.mark.long
@pytest.mark.s3
def test_a_table_in_a_bucket_of_four_times_the_budget(tmp_path, s3_url, s3_options):
    from windrow.storage import open_store

    random = np.random.default_rng(1)
    rows = 4 * BUDGET // 24
    path = tmp_path / "points.parquet"
    columns = {"timestamp": pa.array(np.arange(rows), pa.timestamp("us")), "number": random.integers(0, 2**62, rows)}
    pq.write_table(pa.table(columns | {"value": random.normal(size=rows)}), path, row_group_size=100_000)
    open_store(s3_url, options=s3_options).put("points.parquet", path.read_bytes())
    place = {"metastore": f"sqlite:///{tmp_path}/windrow.db", "store_options": s3_options}
    with windrow.connect(f"{s3_url}/lake", **place) as lake:
        registered(lake, f"{s3_url}/points.parquet")
    found = read_apart(lake=f"{s3_url}/lake", budget=BUDGET, **place)
    assert found["rows"] == rows
    assert found["bytes"] >= 4 * BUDGET
    # Beside what was fetched, for which the budget is, there is what DuckDB decodes.
    assert found["grew"] < 2 * BUDGET
