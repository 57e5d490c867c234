"""Data frames of the caller are found by their names, or given in `tables`."""

from __future__ import annotations

import inspect

import pandas as pd
import pyarrow as pa
import pytest

import windrow
from windrow.engines.duckdb.callers import named_frames
from windrow.errors import WindrowError
from windrow.tricks import Trick, without

EVERYWHERE = pa.table({"n": [7]})


def asked(query):
    return named_frames(query)


def test_variables_of_the_caller_and_of_his_module_are_found():
    hosts = pd.DataFrame({"host": ["h1"]})
    number = 3
    found = asked(f"select * from hosts, EVERYWHERE, missing where number = {number}")
    assert found.keys() == {"hosts", "EVERYWHERE"}
    assert found["hosts"] is hosts


def test_without_the_trick_or_frames_nothing_is_found(monkeypatch):
    hosts = pd.DataFrame({"host": ["h1"]})
    with without(Trick.CALLER_VARIABLES):
        assert asked("select * from hosts") == {}
    monkeypatch.setattr(inspect, "currentframe", lambda: None)
    assert asked("select * from hosts") == {}
    assert len(hosts) == 1


def test_without_the_trick_tables_are_given(tmp_path):
    hosts = pa.table({"host": ["h1", "h2"]})
    with windrow.connect(tmp_path, cache=None) as lake:
        assert lake.sql("select count(*) as n from hosts").to_dict() == [{"n": 2}]
        with without(Trick.CALLER_VARIABLES):
            with pytest.raises(WindrowError, match="hosts"):
                lake.sql("select count(*) as n from hosts")
            assert lake.sql("select count(*) as n from hosts", tables={"hosts": hosts}).to_dict() == [{"n": 2}]
