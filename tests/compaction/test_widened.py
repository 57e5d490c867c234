"""Splits in which a column was narrower are merged with those in which it is wider."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa

import windrow

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def test_a_window_whose_column_was_widened_is_merged(tmp_path):
    with windrow.connect(tmp_path) as lake:
        table = lake.create_table("metrics", sort="host|timestamp/V2", window="15m", policy={"merge_factor": 2})
        for number, kind in enumerate([pa.int32(), pa.int64(), pa.int32()]):
            values = pa.array([number, number + 10], kind)
            table.ingest(pa.table({"host": ["a", "b"], "timestamp": [NOON, NOON], "value": values}))
        result = table.compact.run(threads=1)
        assert (result.done, result.failed, result.splits_out) == (1, 0, 1)
        found = lake.sql("select value from metrics order by value").to_arrow()
        assert found["value"].type == pa.int64()
        assert found["value"].to_pylist() == [0, 1, 2, 10, 11, 12]
        assert table.upkeep.check(data=True).sound
