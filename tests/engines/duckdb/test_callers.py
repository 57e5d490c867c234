"""Data frames of the caller are found by their names, or given in `tables`."""

from __future__ import annotations

import inspect

import pandas as pd
import pyarrow as pa
import pytest

import windrow
from windrow.engines.duckdb.callers import frames_named, words_of
from windrow.errors import WindrowError
from windrow.tricks import Trick, without

EVERYWHERE = pa.table({"n": [7]})


def test_variables_of_the_caller_and_of_his_module_are_found():
    hosts = pd.DataFrame({"host": ["h1"]})
    number = 3
    found = frames_named(words_of(f"select * from hosts, EVERYWHERE, missing where number = {number}"))
    assert found.keys() == {"hosts", "EVERYWHERE"}
    assert found["hosts"] is hosts


def test_without_the_trick_or_frames_nothing_is_found(monkeypatch):
    hosts = pd.DataFrame({"host": ["h1"]})
    with without(Trick.CALLER_VARIABLES):
        assert frames_named(words_of("select * from hosts")) == {}
    monkeypatch.setattr(inspect, "currentframe", lambda: None)
    assert frames_named(words_of("select * from hosts")) == {}
    assert len(hosts) == 1


def test_without_the_trick_tables_are_given(tmp_path):
    hosts = pa.table({"host": ["h1", "h2"]})
    with windrow.connect(tmp_path, cache=None) as lake:
        assert lake.sql("select count(*) as n from hosts").to_dict() == [{"n": 2}]
        with without(Trick.CALLER_VARIABLES):
            with pytest.raises(WindrowError, match="hosts"):
                lake.sql("select count(*) as n from hosts")
            assert lake.sql("select count(*) as n from hosts", tables={"hosts": hosts}).to_dict() == [{"n": 2}]


def test_a_frame_is_found_beside_a_table_that_is_named_with_its_schema(tmp_path):
    hosts = pa.table({"host": ["h1", "h2"]})
    with windrow.connect(tmp_path, cache=None) as lake:
        lake.create_table("metrics", sort="metric_name|timestamp/V2")
        query = "select count(*) as n from hosts, (select count(*) from main.metrics) as other"
        assert lake.sql(query).to_dict() == [{"n": 2}]
    assert len(hosts) == 2


def test_a_stream_reads_the_variables_of_whoever_made_it(tmp_path):
    def made(lake):
        hosts = pa.table({"host": ["h1", "h2"]})
        stream = lake.stream("select host from hosts")
        assert len(hosts) == 2
        return stream

    with windrow.connect(tmp_path, cache=None) as lake, made(lake) as batches:
        assert batches.read_all().num_rows == 2
