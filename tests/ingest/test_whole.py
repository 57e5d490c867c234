"""Ingest as a whole against a plain oracle: whatever comes in, every accepted row is stored once, where it belongs.

The oracle knows Python's own values, sorts nothing and hashes with another library. Every split that is written is read
back, and the rules of windows, order and series are checked on its rows, its footer and what the metastore says of it.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import siphash24
from hypothesis import given, settings
from hypothesis import strategies as st

from windrow.errors import InvalidInput
from windrow.lake import open_lake
from windrow.model.invariants import require
from windrow.model.sort_schema import SortSchema
from windrow.model.split import SplitMetadata
from windrow.model.window import Window

SORT = "metric_name|host|timeseries_id|timestamp&region/V2"
WINDOW = 900
HOUR = 3600
NOW = 10 * HOUR * 10**6
"""When batches arrive, in microseconds; so early that times before the epoch are not far."""
MOMENT = pa.timestamp("us", "UTC")

TEXTS = st.sampled_from(["", "a", "b", "ä\0", "z" * 40])
EDGES = [-WINDOW, 0, WINDOW, 9 * HOUR, 9 * HOUR + WINDOW, 10 * HOUR, 11 * HOUR]
"""Ends of windows; two of them are the bounds of the rules of late and future rows."""
TIMES = st.builds(lambda edge, step: edge * 10**6 + step, st.sampled_from(EDGES), st.sampled_from([0, -1, 1]))
FLOATS = st.sampled_from([0.0, -0.0, 1.5, math.nan, math.inf, -math.inf]) | st.floats(width=32)

COLUMNS = {
    "metric_name": (st.sampled_from(["cpu", "mem", ""]), [pa.string(), pa.dictionary(pa.int8(), pa.string())]),
    "timestamp": (TIMES | st.none(), [MOMENT]),
    "value": (FLOATS, [pa.float64(), pa.float32()]),
}
OPTIONAL = {
    "host": (TEXTS | st.none(), [pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())]),
    "region": (TEXTS | st.none(), [pa.string()]),
    "metric_type": (st.integers(0, 4) | st.none(), [pa.uint8(), pa.int64()]),
    "count": (st.integers(-128, 127) | st.none(), [pa.int8(), pa.int64(), pa.null()]),
    "flag": (st.booleans() | st.none(), [pa.bool_()]),
    "note": (TEXTS | st.none(), [pa.string(), pa.null()]),
}
"""Columns that a batch may lack, and the types in which they may come."""


@dataclass(frozen=True)
class Batch:
    """Rows as a producer has them, and how they are sent."""

    rows: pa.Table
    drop_late: bool
    future: int | None
    by_file: bool


@st.composite
def batches(draw, needed=()):
    chosen = COLUMNS | {name: OPTIONAL[name] for name in OPTIONAL if name in needed or draw(st.booleans())}
    count = draw(st.sampled_from([0, 1, 2, 3, 10, 25]))
    columns = {}
    for name, (values, types) in chosen.items():
        kind = draw(st.sampled_from(types))
        drawn = [None] * count if pa.types.is_null(kind) else draw(st.lists(values, min_size=count, max_size=count))
        columns[name] = (
            pa.array(drawn, pa.string()).cast(kind) if pa.types.is_dictionary(kind) else pa.array(drawn, kind)
        )
    rows = pa.table(columns)
    if draw(st.booleans()):
        rows = pa.concat_tables([rows, rows.slice(0, count // 2)])  # duplicates
    return Batch(rows, draw(st.booleans()), draw(st.sampled_from([None, 0, HOUR])), draw(st.booleans()))


PARTITIONS = st.sampled_from([(), ("host",), ("region", "host")])


# The oracle


def plain_rows(rows):
    """Return rows as dictionaries of what is set, times as microseconds."""
    times = rows.set_column(rows.column_names.index("timestamp"), "timestamp", rows["timestamp"].cast(pa.int64()))
    return [{name: value for name, value in row.items() if value is not None} for row in times.to_pylist()]


def is_text(kind):
    return "string" in str(kind)


def judged(batch):
    """Return the rows that are accepted, each with its series id, and how many are late or ahead."""
    tags = {field.name for field in batch.rows.schema if is_text(field.type)} - {"metric_name"}
    late = ahead = 0
    taken = []
    for row in plain_rows(batch.rows):
        time = row.get("timestamp")
        if batch.drop_late and time is not None and time < NOW - HOUR * 10**6:
            late += 1
        elif batch.future is not None and time is not None and time > NOW + batch.future * 10**6:
            ahead += 1
        else:
            taken.append(row | {"timeseries_id": series_id(row, tags)})
    return taken, late, ahead


def series_id(row, tags):
    head = row["metric_name"].encode() + b"\xff" + bytes([row.get("metric_type", 0)])
    return hashed(head + tag_bytes(row, sorted(tags, key=str.encode)), signed=True)


def partition_id(row, columns):
    return hashed(tag_bytes(row, columns), signed=False) % 2**63 if columns else 0


def tag_bytes(row, names):
    return b"".join(name.encode() + b"\xff" + row[name].encode() + b"\xff" for name in names if name in row)


def hashed(message, *, signed):
    return int.from_bytes(siphash24.siphash24(message, key=bytes(16)).digest(), "little", signed=signed)


def window_of(row):
    time = row.get("timestamp")
    return Window.overflow_of(WINDOW) if time is None else Window(time // 10**6 // WINDOW * WINDOW, WINDOW)


def multiset(rows):
    """Count rows; NaN equals itself here, and 0.0 and -0.0 differ."""
    return Counter(tuple(sorted((name, repr(value)) for name, value in row.items())) for row in rows)


# What must be true of a table


def check_split(table, split):
    """Check all rules of windows, order and series on a split; return its rows."""
    with pq.ParquetFile(table.context.store.path(split.key)) as file:
        stored, metadata = file.read(), file.metadata
    rows = plain_rows(stored)
    schema = SortSchema.parse(split.scope.sort_schema)
    times = [row["timestamp"] for row in rows if "timestamp" in row]
    require(
        "TW-1",
        window=split.window,
        time_min_us=min(times, default=None),
        time_max_us=max(times, default=None),
        null_timestamps=len(rows) - len(times),
    )
    require("TW-2", duration=split.window.duration)
    require("TW-3", windows_in=set(map(window_of, rows)), windows_out=[split.window])
    assert {partition_id(row, table.settings().partition_by) for row in rows} == {split.scope.partition_id}
    require("SS-1", table=stored, schema=schema)
    require("SS-2", table=stored, schema=schema)
    nulls = {name: zone.null_count for name, zone in zip(schema.column_names, split.zones, strict=True)}
    require("SS-3", schema=schema, file_columns=stored.column_names, null_counts=nulls, row_count=len(rows))
    told = {key.decode(): value.decode() for key, value in metadata.metadata.items()}
    require("SS-4", schema_before=table.settings().sort.canonical(), schema_after=told["windrow.sort_schema"])
    sorting = [
        (metadata.schema.column(each.column_index).path, each.descending, each.nulls_first)
        for each in metadata.row_group(0).sorting_columns
    ]
    require(
        "SS-5",
        metastore=split.scope.sort_schema,
        key_value=told["windrow.sort_schema"],
        sorting_columns=sorting,
        file_columns=stored.column_names,
    )
    require("DM-1", table=stored, required=["metric_name", "timeseries_id"])
    tags = [field.name for field in stored.schema if is_text(field.type)]
    require("DM-4", table=stored, tags=set(tags) - {"metric_name"})
    described = SplitMetadata.from_key_value(
        told, key=split.key, size_bytes=split.size_bytes, etag=split.etag, digest=split.digest
    )
    assert replace(described, sidecar=split.sidecar, zones=split.zones) == split
    assert tuple(described.zones) == tuple(split.zones)
    assert split.row_count == len(rows)
    return rows


def check_table(table, expected):
    """The splits hold the expected rows, no more and no fewer, and queries see as many."""
    record = table.record()
    splits = [split for page in table.context.metastore.splits(record.table_id, record.version) for split in page]
    stored = [row for split in splits for row in check_split(table, split)]
    require("DM-2", points_accepted=len(expected), points_written=len(stored))
    require("DM-3", points_accepted=len(expected), points_written=len(stored))
    ids = [[row["timeseries_id"] for row in rows] for rows in (expected, stored)]
    require("DM-5", ids_in=ids[0], ids_out=ids[1])
    assert multiset(stored) == multiset(expected)
    windows = table.context.metastore.windows(record.table_id, record.version)
    assert {each.window: each.rows for each in windows} == Counter(map(window_of, expected))


class Lakes:
    """One lake for all examples, with a table for each."""

    def __init__(self, folder):
        self.folder = folder
        self.lake = open_lake(folder / "lake", now=lambda: NOW)
        self.numbers = itertools.count()

    def table(self, partition_by):
        name = f"t{next(self.numbers)}"
        return self.lake.create_table(name, sort=SORT, window=WINDOW, partition_by=list(partition_by))

    def ingest(self, table, batch):
        rows = batch.rows
        if batch.by_file:
            rows = self.folder / "batch.parquet"
            pq.write_table(batch.rows, rows)
        return table.ingest(rows, drop_late=batch.drop_late, future=batch.future, most_dropped=1)


@pytest.fixture(scope="module")
def lakes(tmp_path_factory):
    made = Lakes(tmp_path_factory.mktemp("whole"))
    yield made
    made.lake.close()


def run(lakes, data):
    partition_by = data.draw(PARTITIONS)
    table = lakes.table(partition_by)
    expected = []
    for batch in data.draw(st.lists(batches(needed=partition_by), min_size=1, max_size=3)):
        taken, late, ahead = judged(batch)
        if not taken:
            version = table.version()
            if batch.rows.num_rows:
                with pytest.raises(InvalidInput, match="would be dropped"):
                    lakes.ingest(table, batch)
            else:
                assert lakes.ingest(table, batch).rows == 0
            assert table.version() == version
            continue
        result = lakes.ingest(table, batch)
        assert (result.rows, result.late, result.future) == (len(taken), late, ahead)
        assert result.windows == len(set(map(window_of, taken)))
        expected += taken
    check_table(table, expected)
    if expected:
        (counted,) = lakes.lake.sql(f"select count(*) as n, count(timestamp) as t from {table.name}").to_dict()
        assert counted == {"n": len(expected), "t": sum("timestamp" in row for row in expected)}


@given(st.data())
def test_every_accepted_row_is_stored_once_where_it_belongs(lakes, data):
    run(lakes, data)


@pytest.mark.long
@settings(max_examples=3000)
@given(st.data())
def test_every_accepted_row_is_stored_once_where_it_belongs_at_length(lakes, data):
    run(lakes, data)
