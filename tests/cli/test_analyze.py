"""`windrow analyze` says what was learnt, and of columns that are not there that they are not."""

from __future__ import annotations


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
