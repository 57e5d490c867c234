"""A written split is sorted, describes itself, and is refused when it would break an invariant."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from windrow.errors import InvalidInput, InvariantViolation
from windrow.model.ordering import is_sorted
from windrow.model.predicate import Comparison, Op
from windrow.model.scope import CompactionScope
from windrow.model.settings import TableSettings
from windrow.model.split import SplitMetadata
from windrow.model.window import Window
from windrow.parquet.footer import read_footer
from windrow.sidecar import Sidecar
from windrow.sidecar.check import check_against
from windrow.sidecar.pruning import SidecarPruner
from windrow.splits import writer
from windrow.splits.writer import SplitName, write_split
from windrow.storage import open_store
from windrow.testing.recording import RecordingStore

SETTINGS = TableSettings.of(sort="host-|missing|timestamp&region/V2", window="15m")
SCOPE = CompactionScope("t1", "default", 7, 0, SETTINGS.sort.canonical(), 900)
NAME = SplitName("metrics", "c1-1-0", "c1", 5)
FIELD_IDS = {"value": 1, "host": 2, "timestamp": 3, "region": 9}


def rows(minutes=range(10), hosts="abcde"):
    return pa.table(
        {
            "value": [float(minute) for minute in minutes],
            "region": ["eu"] * len(minutes),
            "timestamp": [datetime(2024, 1, 1, 0, minute, tzinfo=UTC) for minute in minutes],
            "host": [hosts[minute % len(hosts)] if minute % 4 else None for minute in minutes],
        }
    )


@pytest.fixture
def store(tmp_path):
    return open_store(str(tmp_path))


@pytest.fixture
def written(store):
    window = Window.of(1704067200, 900)
    split = write_split(store, rows(), SETTINGS, SCOPE, window, NAME, FIELD_IDS)
    return split, pq.ParquetFile(pa.BufferReader(store.get(split.key)))


def test_the_rows_are_sorted_and_none_is_lost(written):
    table = written[1].read()
    assert is_sorted(table, SETTINGS.sort)
    assert sorted(table["value"].to_pylist()) == [float(minute) for minute in range(10)]


def test_sort_columns_come_first(written):
    assert written[1].schema_arrow.names == ["host", "timestamp", "region", "value"]


def test_the_footer_names_the_order_with_nulls_greatest(written):
    declared = written[1].metadata.row_group(0).sorting_columns
    assert [(each.column_index, each.descending, each.nulls_first) for each in declared] == [
        (0, True, True),
        (1, True, True),
    ]


def test_field_ids_are_set(written):
    ids = {f.name: f.metadata[b"PARQUET:field_id"] for f in written[1].schema_arrow}
    assert ids == {"host": b"2", "timestamp": b"3", "region": b"9", "value": b"1"}


@pytest.mark.parametrize("ours", [False, True])
def test_columns_that_parquet_tells_by_itself_need_no_arrow_schema(store, monkeypatch, ours):
    monkeypatch.setattr(writer, "OUR_PAGES", 0 if ours else 1 << 20)
    split = write_split(store, rows(), SETTINGS, SCOPE, Window.of(1704067200, 900), NAME, FIELD_IDS)
    file = pq.ParquetFile(pa.BufferReader(store.get(split.key)))
    assert b"ARROW:schema" not in file.metadata.metadata
    assert file.schema_arrow.field("timestamp").type == pa.timestamp("us", "UTC")
    assert file.schema_arrow.field("host").type == pa.string()


@pytest.mark.parametrize("ours", [False, True])
def test_a_type_that_parquet_does_not_have_is_read_back(store, monkeypatch, ours):
    monkeypatch.setattr(writer, "OUR_PAGES", 0 if ours else 1 << 20)
    table = rows().set_column(0, "value", pa.array(range(10), pa.duration("ms")))
    split = write_split(store, table, SETTINGS, SCOPE, Window.of(1704067200, 900), NAME, FIELD_IDS)
    file = pq.ParquetFile(pa.BufferReader(store.get(split.key)))
    assert file.schema_arrow.field("value").type == pa.duration("ms")
    assert file.schema_arrow.field("value").metadata == {b"PARQUET:field_id": b"1"}
    assert file.read().schema == file.schema_arrow


def test_the_file_says_of_itself_what_the_metastore_will_know(written):
    split, file = written
    pairs = {key.decode(): value.decode() for key, value in file.metadata.metadata.items()}
    told = SplitMetadata.from_key_value(
        pairs, key=split.key, size_bytes=split.size_bytes, etag=split.etag, digest=split.digest
    )
    assert told == replace(split, sidecar=None), "all but where its sidecar lies, which can be made again"
    assert pairs["windrow.sort_schema"] == "host-|missing|timestamp&region/V2"


def test_the_file_lies_in_the_folder_of_its_tenant_and_window(written):
    assert written[0].key == "metrics/partition_id=7/window_start=1704067200/c1-1-0.parquet"


def test_it_has_a_page_index(written):
    assert written[1].metadata.row_group(0).column(0).has_offset_index


def test_a_sidecar_lies_beside_it_and_agrees_with_it(written, store):
    split = written[0]
    assert split.sidecar.key == "metrics/partition_id=7/window_start=1704067200/_c1-1-0.pm"
    data = store.get(split.key)
    sidecar = Sidecar.of(store.get(split.sidecar.key), name=split.sidecar.key)
    assert split.sidecar.length == len(sidecar.buffer)
    assert check_against(sidecar, read_footer(data, name=split.key), len(data)) == []
    assert sidecar.describes(split.size_bytes, split.etag)


def test_the_data_is_stored_before_its_sidecar(store):
    recorded = RecordingStore(store)
    split = write_split(recorded, rows(), SETTINGS, SCOPE, Window.of(1704067200, 900), NAME, FIELD_IDS)
    assert [call.key for call in recorded.calls] == [split.key, split.sidecar.key]


def test_the_sidecar_knows_the_first_key_of_every_granule(store):
    count = 20_000
    times = pa.array([1704067200_000_000 + n % 900_000_000 for n in range(count)], pa.timestamp("us", "UTC"))
    many = pa.table(
        {
            "host": pa.array([f"h{n % 7}" if n % 11 else None for n in range(count)]),
            "timestamp": times,
            "value": pa.array(range(count)),
        }
    )
    split = write_split(store, many, SETTINGS, SCOPE, Window.of(1704067200, 900), NAME, FIELD_IDS)
    index = Sidecar.of(store.get(split.sidecar.key)).extensions.granules(0)
    read = pq.ParquetFile(pa.BufferReader(store.get(split.key))).read()
    starts = index.first_rows.tolist()
    assert starts == [0, 4096, 8192, 12288, 16384]
    hosts, times = index.keys
    assert hosts.values() == [host and host.encode() for host in read["host"].take(starts).to_pylist()]
    first = read["timestamp"].cast(pa.int64()).take(starts).to_pylist()
    assert times.values() == [time.to_bytes(8, "little") for time in first]


def test_rows_of_another_window_are_refused_and_nothing_is_written(store):
    with pytest.raises(InvariantViolation, match="TW-1"):
        write_split(store, rows(range(20)), SETTINGS, SCOPE, Window.of(1704067200, 900), NAME, FIELD_IDS)
    assert list(store.list()) == []


def test_no_rows_are_no_split(store):
    with pytest.raises(InvalidInput, match="would have no rows"):
        write_split(store, rows([]), SETTINGS, SCOPE, Window.of(1704067200, 900), NAME, FIELD_IDS)
    assert list(store.list()) == []


def test_a_column_without_a_field_id_is_refused(store):
    ids = {name: number for name, number in FIELD_IDS.items() if name != "region"}
    with pytest.raises(InvalidInput, match="'region'"):
        write_split(store, rows(), SETTINGS, SCOPE, Window.of(1704067200, 900), NAME, ids)


def test_bloom_filters_of_chosen_columns_are_in_the_sidecar_and_prune(store):
    settings = SETTINGS.changed(bloom_filters=["host", "value", "missing", "flag"])
    table = rows().append_column("flag", pa.array([True] * 10))
    split = write_split(store, table, settings, SCOPE, Window.of(1704067200, 900), NAME, FIELD_IDS | {"flag": 12})
    sidecar = Sidecar.of(store.get(split.sidecar.key))
    assert sidecar.row_group_count == 1
    for absent, present in [(Comparison("host", Op.EQUAL, "bb"), Comparison("host", Op.EQUAL, "b"))]:
        assert [step.kept for step in SidecarPruner(absent).explain(sidecar) if step.step != "granule keys"] == [
            1,
            1,
            0,
        ]
        assert SidecarPruner(present).prune(sidecar).tolist() == [True]
    assert SidecarPruner(Comparison("value", Op.EQUAL, 4.5)).prune(sidecar).tolist() == [False]


@pytest.mark.parametrize("kind", ["int8", "uint32", "double", "string", "large_string", "binary", "bool", "date32"])
def test_any_column_may_be_chosen_for_a_bloom_filter(store, kind):
    settings = SETTINGS.changed(bloom_filters=["column"])
    table = rows().append_column("column", pa.nulls(10, kind))
    split = write_split(store, table, settings, SCOPE, Window.of(1704067200, 900), NAME, FIELD_IDS | {"column": 12})
    assert split.row_count == 10
