"""Conditions on patterns of text: pruned by their prefixes, matched in decoded rows, and answered as DuckDB answers."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import duckdb
import pyarrow as pa
import pytest

import windrow
from windrow.cache import CacheSettings

START = datetime(2026, 1, 1, tzinfo=UTC)
HOSTS = [
    *("Web-1", "web-2", "WEB-3", "db-1", "DB-2", "a\nb", ""),
    *("\u212aafka", "kafka", "\u0130stanbul", "istanbul", None),
]
CONDITIONS = [
    "regexp_matches(host, '^web-')",
    "regexp_matches(host, '^web-2?')",
    "regexp_matches(host, '(?i)^WEB')",
    "regexp_matches(host, 'b$')",
    "regexp_matches(host, '^a.b')",
    "not regexp_matches(host, '^web-')",
    "host ~ 'web-.'",
    "host !~ 'web'",
    "host ilike 'web-%'",
    "host ilike 'KAFKA'",
    "host ilike 'i%'",
    "host ilike '_b-%'",
    "host not ilike 'WEB%'",
    "host ilike 'web-%' and regexp_matches(host, '[12]$')",
    "host ilike 'db%' or host is null",
]


@pytest.fixture(scope="module")
def rows():
    return pa.table(
        {
            "host": pa.array([HOSTS[n % len(HOSTS)] for n in range(240)]),
            "n": pa.array(range(240), pa.int64()),
            "ts": pa.array([START + timedelta(seconds=n) for n in range(240)], pa.timestamp("us", "UTC")),
        }
    )


@pytest.fixture(scope="module")
def lake(rows, tmp_path_factory):
    folder = tmp_path_factory.mktemp("patterns")
    with windrow.connect(folder / "lake", cache=CacheSettings(folder=folder / "cache")) as lake:
        table = lake.create_table("t", sort="host|ts/V2", timestamp="ts", mirror=False)
        for host in HOSTS[:-1]:
            table.ingest(rows.filter(pa.compute.equal(rows["host"], host)))
        table.ingest(rows.filter(pa.compute.is_null(rows["host"])))
        yield lake


@pytest.fixture(scope="module")
def native(rows):
    with duckdb.connect() as connection:
        connection.register("arrived", rows)
        connection.execute("create table t as from arrived")
        yield connection


@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_query_answers_as_over_a_native_table(lake, native, condition):
    query = f"select n from t where {condition} order by n"
    wanted = [n for (n,) in native.execute(query).fetchall()]
    # The second answer comes out of rows that are kept decoded.
    assert [lake.sql(query).to_arrow()["n"].to_pylist() for _ in range(3)] == [wanted] * 3


@pytest.mark.parametrize("condition", [each for each in CONDITIONS if "~" not in each])
def test_a_scan_selects_the_same_rows(lake, native, condition):
    wanted = [n for (n,) in native.execute(f"select n from t where {condition} order by n").fetchall()]
    found = lake.table("t").scan(where=condition, columns=["n"]).to_arrow()
    assert sorted(found["n"].to_pylist()) == wanted


@pytest.mark.parametrize(
    ("condition", "splits"),
    [
        ("regexp_matches(host, '^web-')", 1),
        ("regexp_matches(host, '^db-|^web')", 11),
        ("not regexp_matches(host, '^web-')", 11),
        ("host ilike 'WEB-%'", 3),
        ("host ilike 'kafka'", 2),
        ("host ilike '%b%'", 11),
    ],
)
def test_prefixes_leave_splits_out(lake, condition, splits):
    """Of twelve splits with one host each; the one of null matches nothing."""
    left = [step.kept for step in lake.table("t").plan(condition).steps if step.step == "zone maps"]
    assert left == [splits]
