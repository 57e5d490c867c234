"""One virtual file: the rows of any number of files, and nothing else is read."""

from __future__ import annotations

from concurrent.futures import wait

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from tests.reading.samples import metrics, parquet, put_file

from windrow.cache import MemoryCache
from windrow.errors import NotFound, Replaced, StorageError
from windrow.planning.data_files import weight_of
from windrow.planning.scan_context import ScanContext
from windrow.planning.scan_plan import plan_files
from windrow.questions.where import parse_where
from windrow.reading.read_context import ReadContext
from windrow.reading.virtual_reader import VirtualReader
from windrow.storage import CountingStore, LocalStore, open_store
from windrow.storage.handles import Handle

CONDITIONS = {
    None: lambda table: pa.array([True] * len(table)),
    "metric = 'metric_07'": lambda table: pc.equal(table["metric"], "metric_07"),
    "metric = 'metric_07' and host = 'host_3'": lambda table: pc.and_kleene(
        pc.equal(table["metric"], "metric_07"), pc.equal(table["host"], "host_3")
    ),
    "value > 2.5 or host is null": lambda table: pc.or_kleene(
        pc.greater(table["value"], 2.5), pc.is_null(table["host"])
    ),
    "metric = 'no such metric'": lambda table: pa.array([False] * len(table)),
    "never is not null": lambda table: pa.array([False] * len(table)),
}


def in_order(table):
    return sorted(map(repr, table.to_pylist()))


@pytest.fixture(params=["local", "remote"])
def store(request, tmp_path):
    return LocalStore(tmp_path) if request.param == "local" else CountingStore(open_store("memory://"))


@pytest.fixture
def tables():
    """Every third file lacks a column, as after a change of schema."""
    made = [metrics(seed, 3000) for seed in range(7)]
    return [table.drop_columns("host") if number % 3 == 0 else table for number, table in enumerate(made)]


def planned(store, tables, condition=None, columns=None, threads=1, **options):
    files = [put_file(store, f"{number}.parquet", parquet(table, **options)) for number, table in enumerate(tables)]
    context = ScanContext("lake", store, threads=threads)
    return plan_files(context, files, predicate=condition and parse_where(condition), columns=columns)


def read(store, plan, **limits):
    parts = []
    for virtual in plan.virtual:
        with VirtualReader(virtual, ReadContext("lake", store, **limits)) as reader:
            parts.append(pq.ParquetFile(Handle(reader)).read())
            reader.finish()
    return pa.concat_tables(parts, promote_options="default") if parts else None


@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize("columns", [None, ["value", "metric", "host", "never"]], ids=["all columns", "some columns"])
def test_it_holds_every_row_that_matches(store, tables, condition, columns):
    whole = pa.concat_tables(tables, promote_options="default").select(columns or metrics(0, 1).column_names)
    plan = planned(store, tables, condition, columns)
    found = read(store, plan)
    expected = whole.filter(CONDITIONS[condition](whole))
    if found is None:
        assert len(expected) == 0
        return
    found = found.select(whole.column_names)
    assert found.num_rows == plan.rows
    assert in_order(found.filter(CONDITIONS[condition](found))) == in_order(expected)


def test_without_a_condition_rows_come_in_the_order_of_the_files(store, tables):
    found = read(store, planned(store, tables))
    assert found.equals(pa.concat_tables(tables, promote_options="default").select(found.column_names))


def test_each_step_counts_what_it_leaves(store, tables):
    steps = {step.step: (step.asked, step.kept) for step in planned(store, tables, "metric = 'metric_19'").steps}
    assert steps["statistics and nulls"] == (14, 7)
    assert steps["bloom filters"] == (7, 7)
    whole, needed = steps["columns and pages"]
    assert needed < whole / 2
    assert str(planned(store, tables, "metric = 'metric_19'").steps).startswith("step")


def test_chunks_that_are_null_everywhere_are_not_read(tables):
    store = CountingStore(open_store("memory://"))
    plan = planned(store, tables[1:2], columns=["never"])
    before = store.counts
    found = read(store, plan)
    assert found["never"].null_count == 3000
    assert (store.counts - before).bytes_read == 0
    assert plan.bytes == 0


def test_few_row_groups_are_cut_so_that_every_thread_has_one(store, tables):
    alone = tables[1]
    plan = planned(store, [alone], threads=8, row_group_size=10_000)
    [virtual] = plan.virtual
    assert virtual.row_groups == 8
    assert read(store, plan).equals(alone)
    assert planned(store, [alone], threads=8, row_group_size=10_000, write_page_index=False).virtual[0].row_groups == 1


def test_files_that_no_one_schema_holds_become_several_virtual_files(store):
    tables = [pa.table({"a": pa.array([1, 2], pa.int32())}), pa.table({"a": pa.array([3], pa.int64())})]
    plan = planned(store, tables)
    assert [each.rows for each in plan.virtual] == [2, 1]


def test_a_required_column_that_a_file_lacks_is_not_made_of_nulls(store):
    required = pa.schema([pa.field("a", pa.int64(), nullable=False), pa.field("b", pa.int64(), nullable=False)])
    tables = [pa.table({"a": [1], "b": [2]}, schema=required), pa.table({"a": [3]}, schema=pa.schema([required[0]]))]
    plan = planned(store, tables)
    assert len(plan.virtual) == 2
    assert read(store, plan).sort_by("a").to_pylist() == [{"a": 1, "b": 2}, {"a": 3, "b": None}]


def test_nested_columns_keep_their_shape(store):
    rows = 5000
    table = pa.table(
        {
            "key": pa.array(np.arange(rows)),
            "tags": pa.array(
                [[("k", str(n % 5))] if n % 3 else None for n in range(rows)], pa.map_("string", "string")
            ),
            "list": pa.array([[n] * (n % 4) if n % 7 else None for n in range(rows)]),
            "struct": pa.array([{"x": n, "y": [n]} if n % 5 else None for n in range(rows)]),
        }
    )
    lacking = table.select(["key"])
    found = read(store, planned(store, [table, lacking], threads=4))
    expected = pa.concat_tables([table, lacking], promote_options="default")
    assert found.to_pylist() == expected.to_pylist()


def test_an_empty_file_adds_nothing(store, tables):
    plan = planned(store, [tables[1].slice(0, 0), tables[1]])
    assert read(store, plan).equals(tables[1])
    assert planned(store, [tables[1].slice(0, 0)]).virtual == []


def test_names_tell_contents_apart(store, tables):
    one, other = planned(store, tables), planned(store, tables, "metric = 'metric_07'")
    again = planned(store, tables)
    assert one.virtual[0].name != other.virtual[0].name
    if store.local is not None:
        assert one.virtual[0].name != again.virtual[0].name, "the files were written again"


def test_remote_ranges_are_fetched_once_however_they_are_read(tables):
    store = CountingStore(open_store("memory://"))
    plan = planned(store, tables, "metric = 'metric_07'", ["value"])
    before = store.counts
    [virtual] = plan.virtual
    with VirtualReader(virtual, ReadContext("lake", store, parallel=2, in_flight=20_000)) as reader:
        whole = reader.read_at(0, reader.size)
        assert whole[:4] == whole[-4:] == b"PAR1"
        for address in range(0, reader.size, 977):
            assert reader.read_at(address, min(977, reader.size - address)) == whole[address : address + 977]
    fetched = (store.counts - before).bytes_read
    assert fetched >= plan.bytes


@pytest.mark.parametrize("in_flight", [1, 100_000, 200_000])
def test_no_more_is_in_flight_than_allowed(tables, in_flight):
    store = CountingStore(open_store("memory://"))
    plan = planned(store, tables)
    [virtual], largest = plan.virtual, max(len(parquet(table)) for table in tables)
    before = store.counts.bytes_read
    with VirtualReader(virtual, ReadContext("lake", store, parallel=3, in_flight=in_flight)) as reader:
        reader.read_at(int(virtual.chunks[0, 0]), 1)
        wait(reader._remote._ahead._fetched.values())
        fetched = store.counts.bytes_read - before
    assert fetched <= in_flight + 2 * largest < sum(file.identity.size for file in virtual.files)
    assert read(store, plan, parallel=3, in_flight=in_flight).num_rows == 7 * 3000


def test_a_gigabyte_may_be_in_flight_unless_it_is_set():
    assert ReadContext("lake", open_store("memory://")).in_flight == 2**30


def test_parsed_sidecars_are_kept_by_what_they_weigh(store, tables):
    files = [put_file(store, f"{number}.parquet", parquet(table)) for number, table in enumerate(tables)]
    parsed = MemoryCache(10**6, weigh=weight_of)
    context = ScanContext("lake", store, parsed=parsed)
    for _ in range(2):
        plan_files(context, files)
    assert (parsed.metrics.total().misses, parsed.metrics.total().hits) == (7, 7)
    assert parsed.weight > sum(len(parquet(table)) for table in tables) / 50


class TestFilesThatChange:
    """Between plan and read, or while they are read."""

    @pytest.fixture
    def plan(self, store, tables):
        return planned(store, tables)

    def test_a_replaced_file_is_noticed(self, store, tables, plan):
        store.put("3.parquet", parquet(tables[4]))
        with pytest.raises((Replaced, OSError), match="replaced"):
            read(store, plan)

    def test_a_file_that_is_gone_is_noticed(self, store, plan):
        store.delete("3.parquet")
        with pytest.raises((NotFound, OSError), match=r"3\.parquet"):
            read(store, plan)

    def test_a_truncated_file_is_noticed(self, store, plan):
        store.put("3.parquet", store.get("3.parquet")[:-100])
        with pytest.raises((StorageError, OSError), match="replaced"):
            read(store, plan)

    def test_a_local_file_that_is_written_to_while_it_is_read_is_noticed(self, tmp_path, tables):
        store = LocalStore(tmp_path)
        [virtual] = planned(store, tables).virtual
        with VirtualReader(virtual, ReadContext("lake", store)) as reader:
            reader.read_at(0, 100_000)
            path = tmp_path / "0.parquet"
            path.write_bytes(bytes(path.stat().st_size))
            with pytest.raises(Replaced, match=r"0\.parquet"):
                reader.finish()

    def test_the_reader_keeps_what_went_wrong(self, store, plan):
        store.delete("0.parquet")
        with VirtualReader(plan.virtual[0], ReadContext("lake", store)) as reader:
            with pytest.raises(NotFound):
                reader.read_at(4, 10)
            assert isinstance(reader.failure, NotFound)
