"""A call that needs an extra of the package names it, and the command that installs it."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pyarrow as pa
import pytest

import windrow
from windrow import extras
from windrow.cli.sparks import wants_spark
from windrow.errors import MissingDependency
from windrow.ingest.otlp_protobuf import _library
from windrow.metastore import SqlMetastore
from windrow.runners.session import spark_session


@pytest.fixture
def without(monkeypatch):
    """Makes libraries look as if they were not installed."""

    def hide(*names):
        found = extras.find_spec
        monkeypatch.setattr(extras, "find_spec", lambda name: None if name in names else found(name))

    return hide


def missing(library, extra):
    command = rf"{library}, which is not installed; run: pip install 'windrow\[{extra}\]'"
    return pytest.raises(MissingDependency, match=command)


@pytest.mark.parametrize("extra", ["pandas", "polars"])
def test_data_frames_need_an_extra(tmp_path, without, extra):
    with windrow.connect(tmp_path / "lake") as lake:
        table = lake.create_table("metrics", sort="host|timestamp/V2")
        table.ingest(pa.table({"metric_name": ["m"], "host": ["a"], "timestamp": [0], "value": [1.0]}).cast(ROWS))
        calls = [getattr(each, f"to_{extra}") for each in (table.scan(), lake.sql("from metrics"))]
        assert all(len(pa.table(frame.collect() if hasattr(frame := call(), "collect") else frame)) for call in calls)
        without(extra)
        for call in calls:
            with missing(extra, extra):
                call()


def test_spark_needs_an_extra(without):
    without("pyspark", "grpc")
    with missing("pyspark", "spark"):
        spark_session()
    assert not wants_spark("auto", 2, 1)
    assert wants_spark("spark", 0, 1)


def test_spark_connect_needs_an_extra(without, monkeypatch):
    from pyspark.sql import SparkSession

    monkeypatch.setattr(SparkSession, "getActiveSession", lambda: None)
    without("grpc")
    with missing("Spark Connect needs grpc", "connect"):
        spark_session("sc://localhost")


def test_a_metastore_in_postgres_needs_an_extra(without):
    without("psycopg")
    with missing("psycopg", "postgres"):
        SqlMetastore("postgresql://localhost/windrow")


def test_otlp_as_protobuf_needs_an_extra(without):
    without("opentelemetry.proto")
    _library.cache_clear()
    with missing("opentelemetry.proto", "otlp"):
        _library()


def test_a_library_whose_package_is_missing_is_missing():
    assert not extras._is_there("windrow_nothing.part")


def test_every_extra_is_one_of_the_package_and_all_brings_each():
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
    offered = project["optional-dependencies"]
    assert offered.keys() - {"all"} == extras._EXTRAS.keys()
    assert offered["all"] == [f"windrow[{','.join(sorted(extras._EXTRAS))}]"]


ROWS = pa.schema(
    [
        ("metric_name", pa.string()),
        ("host", pa.string()),
        ("timestamp", pa.timestamp("us", "UTC")),
        ("value", pa.float64()),
    ]
)
