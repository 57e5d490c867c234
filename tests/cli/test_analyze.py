"""`windrow analyze` says what was learnt, and of columns that are not there that they are not."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq


def test_a_table_is_analyzed_once(call, events):
    first = call("analyze", "events", "--json").json
    assert first["rows"] == 2
    assert first["columns"] > 2
    assert call("analyze", "events", "--json").json["columns"] == 0
    assert "analyzed" in call("analyze", "events").out


def test_columns_are_named(call, events):
    splits = call("describe", "events", "--json").json["splits"]
    assert call("analyze", "events", "host", "--json").json["columns"] == splits
    answer = call("analyze", "events", "hots")
    assert answer.code == 3
    assert "no column 'hots'" in answer.err


def test_files_are_named_in_place_of_a_table(call, events, tmp_path):
    path = tmp_path / "raw.parquet"
    pq.write_table(pa.table({"n": range(100), "host": ["a", "b"] * 50}), path)
    assert call("analyze", str(path), "n", "--json").json["columns"] == 1
    rows = call("inspect", "statistics", str(path), "--json").json
    assert [(row["column"], row["distinct"], row["maximum"]) for row in rows] == [
        ("n", 100, "99"),
        ("host", None, None),
    ]
    assert call("analyze", str(path), "m").code == 3
    assert "no such file" in call("inspect", "statistics", str(tmp_path / "none.parquet")).err


def test_sketches_are_written_as_a_puffin_file(call, events, tmp_path):
    call("analyze", "events")
    rows = call("inspect", "statistics", "events", "--json").json
    answer = call("inspect", "statistics", "events", "--puffin", str(tmp_path / "events.puffin"), "--json")
    assert answer.json == rows
    data = (tmp_path / "events.puffin").read_bytes()
    assert data[:4] == data[-4:] == b"PFA1"
    assert data.count(b"windrow-datasketches-hll-v1") == len(rows)
