"""A lake that queries are asked of: ten points of two hosts in each of eight windows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pyarrow as pa
import pytest

import windrow
from windrow.cache import CacheSettings

START = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture(scope="module")
def lake(tmp_path_factory):
    folder = tmp_path_factory.mktemp("asked")
    with windrow.connect(folder / "lake", cache=CacheSettings(folder=folder)) as opened:
        table = opened.create_table("metrics", sort="host|timestamp/V2", window="15m", mirror=False)
        for number in range(8):
            times = [START + timedelta(minutes=15 * number, seconds=n) for n in range(10)]
            columns = {
                "host": [f"h{n % 2}" for n in range(10)],
                "timestamp": pa.array(times, pa.timestamp("us", "UTC")),
                "n": range(10 * number, 10 * number + 10),
                "price": pa.array([Decimal(n) for n in range(10)], pa.decimal128(8, 2)),
            }
            table.ingest(pa.table(columns))
        yield opened
