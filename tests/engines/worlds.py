"""A table with most of what a table can have, in a folder or a bucket, and the same rows as plain Arrow."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import windrow

SORT = "metric_name|host|timeseries_id|timestamp/V2"
NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)
RESIDUAL = pa.map_(pa.string(), pa.string())


def nanoseconds(seconds, more=0):
    return int((NOON + timedelta(seconds=seconds)).timestamp()) * 10**9 + more


def points(seed, rows, /, **columns):
    """Points with NaN, nulls and nanoseconds; `columns` come on top."""
    random = np.random.default_rng(seed)
    values = random.normal(size=rows).round(2)
    values[:: max(rows // 5, 1)] = float("nan")
    seconds = random.integers(0, 3600, rows).tolist()
    table = pa.table(
        {
            "metric_name": [f"metric_{n}" for n in random.integers(0, 6, rows)],
            "host": pa.array([f"h{n}" for n in random.integers(0, 9, rows)], mask=random.random(rows) < 0.2),
            "timestamp": pa.array([nanoseconds(s, n) for n, s in enumerate(seconds)], pa.timestamp("ns", "UTC")),
            "value": values,
        }
    )
    for name, column in columns.items():
        table = table.append_column(name, column)
    return table


def batches(rows=120):
    """What is brought in: the second batch has more columns and wider ones, the third keeps attributes in a map."""
    random = np.random.default_rng(9)
    small = pa.array(random.integers(-50, 50, rows), pa.int32())
    large = pa.array(random.integers(-(2**60), 2**60, rows), pa.int64())
    prices = [Decimal(int(n)).scaleb(-3) for n in random.integers(-(10**6), 10**6, rows)]
    days = [None if n % 7 == 0 else date(2024, 4, 1) + timedelta(days=n % 60) for n in range(rows)]
    clocks = pa.array(random.integers(0, 86_400_000, rows).tolist(), pa.time32("ms"))
    local = pa.array([nanoseconds(n) // 10**6 for n in range(rows)], pa.timestamp("ms"))
    rare = [[("zone", f"z{n % 3}"), ("rack", f"r{n % 5}")] if n % 2 else [] for n in range(rows)]
    states = pa.array([None if n % 3 else n % 2 == 0 for n in range(rows)])
    return [
        points(1, rows, number=small),
        points(2, rows, number=large, price=pa.array(prices, pa.decimal128(12, 3)), day=pa.array(days), seen=local),
        points(3, rows, attributes=pa.array(rare, RESIDUAL), on=states),
        points(
            4,
            rows,
            zone=pa.array([f"z{n % 4}" for n in range(rows)]),
            blob=pa.array([bytes([n]) for n in range(rows)]),
            clock=clocks,
        ),
    ]


def foreign(folder, rows=60):
    """A file that others wrote, in small row groups."""
    path = folder / "foreign.parquet"
    pq.write_table(points(5, rows, number=pa.array(range(rows), pa.int32())), path, row_group_size=20)
    return path


def fill(lake, folder):
    """Make the table `metrics` in a lake; gives the rows that it has then."""
    table = lake.create_table("metrics", sort=SORT, window="15m", timestamp_precision="ns")
    given = batches()
    for batch in given:
        table.ingest(batch)
    path = foreign(folder)
    table.register.run(path)
    return [*given, pq.read_table(path)]


def connect(place):
    return windrow.connect(place["url"], metastore=place.get("metastore"), store_options=place.get("store_options"))


def plain(tables):
    """The rows as a query sees them: every column in all of them, and an attribute under its name wherever it is."""
    whole = pa.concat_tables(tables, promote_options="permissive")
    kept = [dict(each or []) for each in whole["attributes"].to_pylist()]
    zones = [own or rest.get("zone") for own, rest in zip(whole["zone"].to_pylist(), kept, strict=True)]
    whole = whole.set_column(whole.schema.get_field_index("zone"), "zone", pa.array(zones, pa.string()))
    return whole.append_column("rack", pa.array([rest.get("rack") for rest in kept], pa.string()))


def told(rows, columns, *, finest="ns"):
    """Rows of any engine as texts that can be compared: NaN is like NaN, and times are counts of nanoseconds."""
    return sorted("|".join(row) for row in zip(*(_told(rows[name], finest) for name in columns), strict=True))


def _told(column, finest):
    kind = column.type
    if pa.types.is_timestamp(kind):
        counts = column.cast(pa.timestamp("ns", kind.tz)).cast(pa.int64()).to_pylist()
        cut = 1000 if finest == "us" else 1
        return [str(None if each is None else each // cut * cut) for each in counts]
    if pa.types.is_time(kind):
        return [str(each) for each in column.cast(pa.time64("us")).to_pylist()]
    return [_text(value) for value in column.to_pylist()]


def _text(value):
    if isinstance(value, list):
        return str(sorted((each["key"], each["value"]) if isinstance(each, dict) else each for each in value))
    return repr(value)
