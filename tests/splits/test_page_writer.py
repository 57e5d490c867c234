"""Both page writers write the same split: for any type, the same rows, bounds, order and description."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from windrow.model.scope import CompactionScope
from windrow.model.settings import TableSettings
from windrow.model.window import Window
from windrow.parquet.footer import read_footer
from windrow.sidecar import Sidecar
from windrow.sidecar.check import check_against
from windrow.splits import page_writer, writer
from windrow.splits.writer import SplitName, write_split
from windrow.storage import open_store

ROWS = 700
START = datetime(2024, 1, 1, tzinfo=UTC)
KINDS = {
    "int8": (pa.int8(), lambda n: n % 100 - 50),
    "uint16": (pa.uint16(), lambda n: 65_000 + n % 500),
    "int32": (pa.int32(), lambda n: -n),
    "uint32": (pa.uint32(), lambda n: 2**32 - 1 - n),
    "int64": (pa.int64(), lambda n: n * 7**10),
    "uint64": (pa.uint64(), lambda n: 2**64 - 1 - n),
    "float16": (pa.float16(), lambda n: np.float16(n % 7)),
    "float32": (pa.float32(), lambda n: float("nan") if n % 11 == 0 else n / 3),
    "float64": (pa.float64(), lambda n: -0.0 if n % 3 else n / 7),
    "truth": (pa.bool_(), lambda n: n % 3 == 0),
    "text": (pa.string(), lambda n: f"t{n % 9}"),
    "large text": (pa.large_string(), lambda n: f"t{n % 9}"),
    "text view": (pa.string_view(), lambda n: f"t{n % 9}"),
    "text that does not repeat": (pa.string(), lambda n: f"text {n}"),
    "bytes": (pa.binary(), lambda n: bytes([n % 5])),
    "seconds": (pa.timestamp("s", "UTC"), lambda n: START + timedelta(seconds=n)),
    "nanoseconds": (pa.timestamp("ns"), lambda n: n * 1001),
    "date": (pa.date32(), lambda n: date(2024, 1, 1 + n % 28)),
    "time": (pa.time32("s"), lambda n: time(n % 24)),
    "microseconds of a day": (pa.time64("us"), lambda n: time(n % 24, 1, 2, 3)),
    "length of time": (pa.duration("ms"), lambda n: timedelta(seconds=n)),
    "decimal": (pa.decimal128(12, 2), lambda n: Decimal(n) / 4),
    "list": (pa.list_(pa.int32()), lambda n: [n] * (n % 3)),
    "struct.with.dots": (pa.struct({"a": pa.string()}), lambda n: {"a": f"{n % 4}"}),
    "map": (pa.map_(pa.string(), pa.string()), lambda n: [("k", f"{n % 4}")]),
    "number.with.dots": (pa.int64(), lambda n: n % 3),
    "nothing": (pa.null(), lambda _: None),
    "codes": (pa.dictionary(pa.int8(), pa.string()), lambda n: f"c{n % 5}"),
}
SETTINGS = TableSettings.of(sort="host-|timestamp/V2", window="15m", bloom_filters=["host", "column"])
SCOPE = CompactionScope("t1", "default", 0, 0, SETTINGS.sort.canonical(), 900)


def rows(kind, value, name="column"):
    hosts = [None if n % 13 == 0 else f"host-{n % 40:02d}" for n in range(ROWS)]
    values = [None if n % 10 == 0 else value(n) for n in range(ROWS)]
    times = [START + timedelta(milliseconds=n * 997) for n in range(ROWS)]
    column = pa.array(values, kind.value_type).cast(kind) if pa.types.is_dictionary(kind) else pa.array(values, kind)
    return pa.table({"timestamp": pa.array(times, pa.timestamp("ms", "UTC")), "host": hosts, name: column})


def written(folder, table, monkeypatch, *, ours):
    monkeypatch.setattr(writer, "OUR_PAGES", 0 if ours else ROWS + 1)
    for module in (writer, page_writer):
        monkeypatch.setattr(module, "ROW_GROUP_ROWS", 300)
        monkeypatch.setattr(module, "GRANULE_ROWS", 100)
    store = open_store(str(folder))
    ids = {column: place + 1 for place, column in enumerate(table.column_names)}
    name = SplitName("metrics", "c1-1-0", "c1", 5)
    split = write_split(store, table, SETTINGS, SCOPE, Window.of(1704067200, 900), name, ids)
    data = store.get(split.key)
    sidecar = Sidecar.of(store.get(split.sidecar.key), name="sidecar")
    assert not list(check_against(sidecar, read_footer(data, name="file"), len(data)))
    return split, pq.ParquetFile(pa.BufferReader(data))


def told(file):
    """What the footer says of each chunk, as far as readers rely on it; zeros have two signs."""
    found = []
    for group in range(file.metadata.num_row_groups):
        for place in range(file.metadata.num_columns):
            chunk = file.metadata.row_group(group).column(place)
            bounds = chunk.statistics
            known = bounds is not None and bounds.has_min_max
            least, most = (bounds.min, bounds.max) if known else (None, None)
            found.append((chunk.path_in_schema, chunk.num_values, least, most, chunk.has_offset_index))
    return found


@pytest.mark.parametrize("name", KINDS)
def test_any_type_is_written_alike(name, tmp_path, monkeypatch):
    table = rows(*KINDS[name], name="column" if "dots" not in name else name)
    one, by_arrow = written(tmp_path / "arrow", table, monkeypatch, ours=False)
    other, by_us = written(tmp_path / "ours", table, monkeypatch, ours=True)
    assert by_us.schema_arrow.equals(by_arrow.schema_arrow, check_metadata=True)
    assert by_us.read().equals(by_arrow.read()) or np.array_equal(*columns(by_us, by_arrow), equal_nan=True)
    assert by_us.metadata.row_group(0).sorting_columns == by_arrow.metadata.row_group(0).sorting_columns
    assert (one.zones, one.row_count, one.time_min) == (other.zones, other.row_count, other.time_min)
    assert told(by_us) == told(by_arrow)


def columns(one, other):
    return one.read()["column"].to_numpy(), other.read()["column"].to_numpy()
