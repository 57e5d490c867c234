"""Tricks are turned off by name, by a variable or for a block."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib import import_module

import pytest

from windrow.errors import ConfigError
from windrow.tricks import VARIABLE, Trick, is_on, parse_names, without

MODULES = {
    Trick.DUCKDB_SUBMIT: "windrow.engines.duckdb.submit",
    Trick.CALLER_VARIABLES: "windrow.engines.duckdb.callers",
    Trick.ZSTD_POINTERS: "windrow.parquet.zstd",
    Trick.FREED_MEMORY: "windrow.merging.heap",
    Trick.JAVA_LOG: "windrow.runners.java_log",
    Trick.IMMORTAL_OBJECTS: "windrow.immortal",
    Trick.RARE_COLLECTIONS: "windrow.cli.collector",
}


@pytest.mark.parametrize("trick", Trick)
def test_each_trick_has_a_module_that_states_what_it_buys(trick):
    assert "What it buys: " in import_module(MODULES[trick]).__doc__


def test_tricks_are_off_for_a_block():
    assert is_on(Trick.ZSTD_POINTERS)
    with without(Trick.ZSTD_POINTERS), without(Trick.JAVA_LOG):
        assert not is_on(Trick.ZSTD_POINTERS)
        assert not is_on(Trick.JAVA_LOG)
        assert is_on(Trick.DUCKDB_SUBMIT)
    assert is_on(Trick.ZSTD_POINTERS)


def test_names_are_parsed():
    assert parse_names("") == frozenset()
    assert parse_names("java-log, duckdb-submit") == {Trick.JAVA_LOG, Trick.DUCKDB_SUBMIT}
    assert parse_names("all") == set(Trick)


def test_an_unknown_name_is_an_error_that_lists_those_that_there_are():
    with pytest.raises(ConfigError, match=r"no trick 'magic'; choose from duckdb-submit, .*or all"):
        parse_names("java-log,magic")


WORK = """
import sys, windrow, pyarrow as pa
with windrow.connect(sys.argv[1], cache=None) as lake:
    table = lake.create_table("t", sort="host|timestamp/V2", window="1h", mirror=False)
    for batch in range(3):
        times = pa.array([10**15 + batch + 3 * n for n in range(9000)], pa.timestamp("us", "UTC"))
        table.ingest(pa.table({"host": [f"h{n % 7}" for n in range(9000)], "timestamp": times, "n": range(9000)}))
    assert table.compact.run().done == 1
    print(lake.sql("select count(*) as rows, sum(n) as n from t where host = 'h1'").to_dict())
"""


def test_a_lake_works_with_all_tricks_off_by_the_variable(tmp_path):
    given = {name: {**os.environ, VARIABLE: value} for name, value in (("with", ""), ("without", "all"))}
    found = {
        name: subprocess.run(
            [sys.executable, "-c", WORK, str(tmp_path / name)], env=env, capture_output=True, text=True, check=True
        ).stdout
        for name, env in given.items()
    }
    assert found["with"] == found["without"] != ""
