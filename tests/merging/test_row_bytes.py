"""How many rows a batch has follows from what its columns take, not from what footers tell of them."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from windrow.merging.inputs import open_inputs
from windrow.merging.merge import Merge, MergeOptions
from windrow.model.sort_schema import SortSchema
from windrow.storage import open_store

SCHEMA = SortSchema.parse("timestamp+/V2")
ROWS, INPUTS = 150_000, 2


def merge_of_maps(folder, text, budget):
    for number in range(INPUTS):
        keys = pa.array(["zone", "build"] * ROWS)
        items = pa.array([text.format(place % 50) for place in range(2 * ROWS)])
        offsets = np.arange(ROWS + 1, dtype=np.int32) * 2
        times = pa.array(np.arange(ROWS) * INPUTS + number).cast(pa.timestamp("ms"))
        rows = pa.table({"timestamp": times, "tags": pa.MapArray.from_arrays(offsets, keys, items)})
        pq.write_table(rows, folder / f"{number}.parquet", row_group_size=32_768)
    inputs = open_inputs(open_store(str(folder)), [f"{number}.parquet" for number in range(INPUTS)])
    return Merge.of(inputs, SCHEMA, MergeOptions(memory_budget=budget))


@pytest.fixture
def batches(monkeypatch):
    """The rows of all batches that are loaded."""
    loaded = []
    own = Merge._batch

    def batch(self, batch, at, cuts):
        loaded.append(batch.rows)
        return own(self, batch, at, cuts)

    monkeypatch.setattr(Merge, "_batch", batch)
    return loaded


def test_short_texts_in_maps_go_in_large_batches(tmp_path, batches):
    merge = merge_of_maps(tmp_path, "{}", 512 * 2**20)
    merge.run()
    merge.close()
    assert batches == [INPUTS * ROWS]
    assert merge.rows_at_once >= 2_000_000


def test_the_first_batch_is_small_where_texts_in_maps_are_long(tmp_path, batches):
    merge = merge_of_maps(tmp_path, "{}" + 200 * "x", 512 * 2**20)
    merge.run()
    merge.close()
    assert batches[0] < INPUTS * ROWS
    assert sum(output.rows for output in merge.outputs) == INPUTS * ROWS
