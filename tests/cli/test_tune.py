"""Experiments from the command line."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq


def test_a_table_is_tried_and_left_alone(call, metrics, here):
    before = call("inspect", "commits", metrics, "--json").json
    out = call("tune", metrics, "--plot", "tune.svg").out
    assert "in the order of arrival, written alike" in out
    assert "the order of arrival is reconstructed by time; --arrived FILE" in out
    assert "fan-in, measured:" in out
    assert "advice:" in out
    assert (here / "tune.svg").read_text().startswith("<svg")
    assert call("inspect", "commits", metrics, "--json").json == before


def test_bad_input_is_refused(call, metrics):
    assert call("tune", "nothing").code == 3
    assert call("tune", metrics, "--rows", "1").code == 2
    answer = call("tune", metrics, "--plot", "no/such/folder.svg")
    assert (answer.code, "name another file" in answer.err) == (2, True)


def test_sorting_is_compared_with_rows_as_they_came(call, metrics, here):
    rows = pa.table(
        {
            "metric_name": ["cpu"] * 100,
            "host": sorted(f"h{number % 10}" for number in range(100)),
            "timestamp": pa.array([1_700_000_000 + number for number in range(100)], pa.timestamp("s", tz="UTC")),
            "value": [1.0] * 100,
        }
    )
    pq.write_table(rows.slice(0, 50), "first.parquet")
    pyarrow.csv.write_csv(rows.slice(50), "second.csv")
    answer = call("tune", metrics, "--arrived", "first.parquet", "--arrived", "second.csv", "--json").json
    assert (answer["sorting"]["arrival"], answer["sorting"]["rows"]) == ("as given", 100)
    (here / "torn.parquet").write_bytes(b"torn")
    assert "--arrived: torn.parquet cannot be read" in call("tune", metrics, "--arrived", "torn.parquet").err
