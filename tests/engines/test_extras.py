"""A call that needs an extra of the package names it."""

from __future__ import annotations

import pyarrow as pa
import pytest

import windrow
from windrow.errors import MissingDependency
from windrow.runners import session


@pytest.fixture
def without(monkeypatch):
    """Makes libraries look as if they were not installed."""

    def hide(module, *names):
        found = module.find_spec
        monkeypatch.setattr(module, "find_spec", lambda name: None if name in names else found(name))

    return hide


def test_frames_of_polars_need_an_extra(tmp_path, without):
    from windrow.engines import extras

    with windrow.connect(tmp_path / "lake") as lake:
        table = lake.create_table("metrics", sort="host|timestamp/V2")
        table.ingest(pa.table({"metric_name": ["m"], "host": ["a"], "timestamp": [0], "value": [1.0]}).cast(ROWS))
        assert table.scan().to_polars().collect().height == lake.sql("from metrics").to_polars().height == 1
        without(extras, "polars")
        for call in (table.scan().to_polars, lake.sql("from metrics").to_polars):
            with pytest.raises(MissingDependency, match=r"pip install 'windrow\[polars\]'"):
                call()


def test_spark_connect_needs_an_extra(without):
    without(session, "grpc")
    with pytest.raises(MissingDependency, match=r"grpc, which is not installed; run: pip install 'windrow\[connect\]'"):
        session._require_connect()


ROWS = pa.schema(
    [
        ("metric_name", pa.string()),
        ("host", pa.string()),
        ("timestamp", pa.timestamp("us", "UTC")),
        ("value", pa.float64()),
    ]
)
