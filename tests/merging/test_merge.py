"""Sorted files become sorted files with the same rows, whatever they hold and however little memory there is."""

import weakref
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from windrow.errors import Damaged, InvariantViolation, WindrowError
from windrow.merging import merge as merging
from windrow.merging.batch import Batch
from windrow.merging.hashing import row_hashes
from windrow.merging.output import Layout
from windrow.model.ordering import is_sorted, sort_indices
from windrow.model.sort_schema import SortSchema
from windrow.parquet.page_reader import Fixed

SCHEMA = SortSchema.parse("host|timestamp+/V2")


def rows(hosts, times, **more):
    table = pa.table({"host": pa.array(hosts, pa.string()), "timestamp": pa.array(times, pa.timestamp("ms")), **more})
    return table.take(pa.array(sort_indices(table, SCHEMA)))


def assert_same_rows(found, expected):
    """The same values, to the bit, in the same order."""
    assert found.num_rows == expected.num_rows
    names = sorted(expected.column_names)
    assert sorted(found.column_names) == names
    wrong = np.flatnonzero(row_hashes(found, names) != row_hashes(expected, names))
    assert not wrong.size, (
        int(wrong[0]),
        found.slice(wrong[0], 1).to_pylist(),
        expected.slice(wrong[0], 1).to_pylist(),
    )


def check(case, duckdb_order, merge_files, read_all):
    expected = case.expected()
    layout = Layout(case.row_group_rows, case.granule_rows)
    options = {"outputs": case.outputs, "layout": layout}
    by_runs = merge_files(case.files, case.schema, memory_budget=case.budget, **options)
    plainly = merge_files(case.files, case.schema, memory_budget=case.budget, plain=True, **options)
    if not expected.num_rows:
        assert by_runs == plainly == []
        return
    assert_same_rows(duckdb_order(pa.concat_tables(case.tables, promote_options="default"), case.schema), expected)
    assert_same_rows(read_all(by_runs), expected)
    assert_same_rows(read_all(plainly), expected)
    assert [len(read_all([data])) for data in by_runs] == [len(read_all([data])) for data in plainly]
    assert merge_files(case.files, case.schema, **options) == by_runs


@pytest.mark.parametrize("block", range(20))
def test_run_path_and_plain_path_and_duckdb_agree(block, random_case, duckdb_order, merge_files, read_all):
    for seed in range(25 * block, 25 * block + 25):
        check(random_case(seed), duckdb_order, merge_files, read_all)


@pytest.mark.long
@pytest.mark.parametrize("block", range(200))
def test_they_agree_at_length(block, random_case, duckdb_order, merge_files, read_all):
    for seed in range(1000 + 100 * block, 1000 + 100 * block + 100):
        check(random_case(seed), duckdb_order, merge_files, read_all)


def test_rows_that_tie_keep_the_order_of_the_inputs(merge_files, parquet, read_all):
    files = [parquet(rows(["a"] * 3, [7, 7, 7], value=[10 * n + 1, 10 * n + 2, 10 * n + 3])) for n in range(3)]
    merged = read_all(merge_files(files, SCHEMA))
    assert merged["value"].to_pylist() == [1, 2, 3, 11, 12, 13, 21, 22, 23]


def test_columns_are_united_and_missing_ones_are_null(merge_files, parquet, read_all):
    files = [parquet(rows(["a"], [1], x=[1])), parquet(rows(["b"], [2], y=["t"])), parquet(rows(["c"], [3], z=[None]))]
    merged = read_all(merge_files(files, SCHEMA))
    assert merged.column_names == ["host", "timestamp", "x", "y", "z"]
    assert merged.select(["x", "y", "z"]).to_pylist() == [
        {"x": 1, "y": None, "z": None},
        {"x": None, "y": "t", "z": None},
        {"x": None, "y": None, "z": None},
    ]


def test_a_missing_sort_column_is_null_and_sorts_last(merge_files, parquet, read_all):
    without = pa.table({"timestamp": pa.array([1], pa.timestamp("ms"))})
    merged = read_all(merge_files([parquet(without), parquet(rows(["z"], [9]))], SCHEMA))
    assert merged["host"].to_pylist() == ["z", None]


def test_text_types_unite_and_numbers_do_not(merge_files, parquet, read_all):
    coded = rows(["a"], [1], tag=pa.array(["x"]).dictionary_encode())
    large = rows(["b"], [1], tag=pa.array(["y"], pa.large_string()))
    assert read_all(merge_files([parquet(coded), parquet(large)], SCHEMA))["tag"].to_pylist() == ["x", "y"]
    with pytest.raises(
        InvariantViolation, match=r"MC-4.*'tag' is string in input-0.parquet and int64 in input-1.parquet"
    ):
        merge_files([parquet(coded), parquet(rows(["b"], [1], tag=[1]))], SCHEMA)


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize(
    ("narrow", "wide", "united"),
    [
        (pa.int8(), pa.int32(), pa.int32()),
        (pa.int32(), pa.int64(), pa.int64()),
        (pa.uint32(), pa.int32(), pa.int64()),
        (pa.uint16(), pa.uint64(), pa.uint64()),
        (pa.int32(), pa.float64(), pa.float64()),
        (pa.float32(), pa.float64(), pa.float64()),
        (pa.decimal128(5, 2), pa.decimal128(12, 2), pa.decimal128(12, 2)),
        (pa.timestamp("ms", "UTC"), pa.timestamp("us", "UTC"), pa.timestamp("us", "UTC")),
    ],
    ids=str,
)
def test_a_column_that_was_widened_has_the_wider_type(merge_files, parquet, read_all, narrow, wide, united, plain):
    tables = [
        rows([host] * 3, [1, 2, 3], number=pa.array([1, None, 3], kind))
        for host, kind in (("a", narrow), ("b", wide), ("c", narrow))
    ]
    merged = read_all(merge_files([parquet(table) for table in tables], SCHEMA, plain=plain))
    expected = pa.concat_tables([table.set_column(2, "number", table["number"].cast(united)) for table in tables])
    assert merged["number"].type == united
    assert merged["number"].to_pylist() == expected["number"].to_pylist()


@pytest.mark.parametrize("kinds", [(pa.int32(), pa.int64()), (pa.int64(), pa.int32()), (pa.int16(), pa.float64())])
def test_a_sort_column_that_was_widened_still_sorts(merge_files, parquet, read_all, kinds):
    schema = SortSchema.parse("number|timestamp/V2")
    tables = [
        pa.table({"number": pa.array(numbers, kind), "timestamp": pa.array([1, 2, 3], pa.timestamp("ms"))})
        for numbers, kind in zip([[-5, 2, 9], [-7, 2, 10]], kinds, strict=True)
    ]
    merged = read_all(merge_files([parquet(table) for table in tables], schema))
    assert merged["number"].to_pylist() == [-7, -5, 2, 2, 9, 10]


@pytest.mark.parametrize("told", [(True, False), (False, True)])
def test_files_with_and_without_an_arrow_schema_are_merged_by_what_they_hold(merge_files, parquet, read_all, told):
    tables = [rows(["a"] * 3, [1, 2, 3], number=[1, 2, 3]), rows(["b"] * 3, [1, 2, 3], number=[4, 5, 6])]
    files = [parquet(table, store_schema=stored) for table, stored in zip(tables, told, strict=True)]
    merged = merge_files(files, SCHEMA)
    assert b"ARROW:schema" not in b"".join(merged), "the Parquet schema says it all"
    assert read_all(merged).equals(pa.concat_tables(tables))


@pytest.mark.parametrize("kind", [pa.duration("us"), pa.timestamp("us", "Europe/Berlin")], ids=str)
def test_a_type_that_parquet_does_not_have_survives_a_merge(merge_files, parquet, read_all, kind):
    tables = [rows([host] * 2, [1, 2], odd=pa.array([1, 2], kind)) for host in "ab"]
    merged = read_all(merge_files([parquet(table) for table in tables], SCHEMA))
    assert merged["odd"].type == kind
    assert merged.equals(pa.concat_tables(tables))


def many_series(seed=0, count=20_000, series=200):
    rng = np.random.default_rng(seed)
    hosts = [f"host-{n:04d}" for n in rng.integers(0, series, count)]
    return rows(hosts, rng.integers(0, 900_000, count), value=rng.normal(size=count))


def test_outputs_are_cut_at_series_and_balanced_by_bytes(merge_files, parquet, read_all):
    files = [parquet(many_series(seed)) for seed in range(4)]
    outputs = merge_files(files, SCHEMA, outputs=5, layout=Layout(4096, 1024))
    tables = [read_all([data]) for data in outputs]
    assert len(tables) == 5
    hosts = [set(table["host"].to_pylist()) for table in tables]
    assert all(max(low) < min(high) for low, high in pairwise(hosts))
    sizes = [len(data) for data in outputs]
    assert max(sizes) < 1.1 * min(sizes)


def test_one_series_is_never_cut(merge_files, parquet):
    files = [parquet(rows(["a"] * 1000, range(1000))) for _ in range(3)]
    assert len(merge_files(files, SCHEMA, outputs=4)) == 1


def test_a_long_series_takes_the_share_of_several_outputs(merge_files, parquet, read_all):
    table = rows(["a"] + ["b"] * 5000 + ["c"], range(5002))
    outputs = merge_files([parquet(table)], SCHEMA, outputs=4)
    assert [set(read_all([data])["host"].to_pylist()) for data in outputs] == [{"a", "b"}, {"c"}]


@pytest.mark.parametrize("schema", ["timestamp+/V2", "timestamp+|host/V2", "timestamp-|host/V2"])
def test_rows_that_are_sorted_by_time_first_are_cut_anywhere(merge_files, parquet, read_all, schema):
    schema = SortSchema.parse(schema)
    tables = [table.take(pa.array(sort_indices(table, schema))) for table in map(many_series, range(4))]
    files = [parquet(table, row_group_size=1000) for table in tables]
    options = {"timestamp": "timestamp", "layout": Layout(2048, 512), "outputs": 5}
    outputs = merge_files(files, schema, **options)
    counts = [read_all([data]).num_rows for data in outputs]
    assert len(counts) == 5
    assert max(counts) - min(counts) <= 4
    together = pa.concat_tables(tables)
    assert_same_rows(read_all(outputs), together.take(pa.array(sort_indices(together, schema))))
    assert merge_files(files, schema, memory_budget=1, **options) == outputs


def test_fewer_rows_than_outputs_leave_no_empty_file(merge_files, parquet, read_all):
    schema = SortSchema.parse("timestamp+/V2")
    files = [parquet(rows(["a"], [time])) for time in (1, 2)]
    outputs = merge_files(files, schema, timestamp="timestamp", outputs=5)
    assert [read_all([data]).num_rows for data in outputs] == [1, 1]


def test_any_budget_gives_the_same_bytes(merge_files, parquet):
    files = [parquet(many_series(seed), row_group_size=1000) for seed in range(6)]
    options = {"layout": Layout(2048, 512), "outputs": 3}
    all_at_once = merge_files(files, SCHEMA, **options)
    for budget in (1, 200_000, 1_000_000):
        assert merge_files(files, SCHEMA, memory_budget=budget, **options) == all_at_once
    assert merge_files(files, SCHEMA, threads=2, **options) == all_at_once


@pytest.mark.parametrize("block", range(4))
def test_parts_of_row_groups_are_merged_where_whole_ones_are_too_large(
    block, monkeypatch, random_case, merge_files, read_all
):
    monkeypatch.setattr("windrow.merging.merge.LEAST_ROWS", 1)
    for seed in range(15 * block, 15 * block + 15):
        case = random_case(seed)
        layout, expected = Layout(case.row_group_rows, case.granule_rows), case.expected()
        found = merge_files(case.files, case.schema, memory_budget=1, layout=layout)
        assert not expected.num_rows or assert_same_rows(read_all(found), expected) is None


def test_little_is_loaded_at_once_of_large_row_groups(monkeypatch, merge_files, parquet):
    monkeypatch.setattr("windrow.merging.merge.LEAST_ROWS", 4096)
    loaded = []
    values = Batch.values
    monkeypatch.setattr(Batch, "values", lambda batch, column: loaded.append(batch.rows) or values(batch, column))
    merge_files([parquet(many_series(seed)) for seed in range(6)], SCHEMA, memory_budget=1, layout=Layout(2048, 512))
    assert max(loaded) < 3 * 4096 < 6 * many_series(0).num_rows


def test_the_order_is_found_from_the_sort_columns_alone_and_the_others_follow_one_by_one(
    monkeypatch, merge_files, parquet
):
    steps, loaded = [], []
    values, order = Batch.values, merging.merge_order

    def load(batch, place):
        found = values(batch, place)
        steps.append((batch.source.columns[place].name, sum(each() is not None for each in loaded)))
        if isinstance(found, Fixed):
            loaded.append(weakref.ref(found.values))
        return found

    monkeypatch.setattr(Batch, "values", load)
    monkeypatch.setattr(merging, "merge_order", lambda *keys: steps.append("order") or order(*keys))
    more = {name: np.arange(2.0) for name in ("x", "y", "z")}
    merge_files([parquet(rows(["a", "b"], [first, first], **more)) for first in (1, 2)], SCHEMA)
    assert steps == [("host", 0), ("timestamp", 0), "order", ("x", 0), ("y", 0), ("z", 0)]


def test_wide_keys_do_not_fit_into_64_bits_and_still_sort(merge_files, parquet, read_all):
    names = [f"k{n}" for n in range(5)]
    schema = SortSchema.parse("|".join(names) + "-|timestamp+/V2")
    rng = np.random.default_rng(3)
    tables = []
    for _ in range(3):
        table = pa.table({name: rng.integers(-(2**63), 2**63, 500) for name in names} | {"timestamp": np.arange(500)})
        tables.append(table.take(pa.array(sort_indices(table, schema))))
    merged = read_all(merge_files([parquet(table) for table in tables], schema))
    assert is_sorted(merged, schema)
    assert merged.num_rows == 1500


def test_an_input_that_is_not_sorted_is_refused_by_name(merge_files, parquet):
    bad = pa.table({"host": ["b", "a"], "timestamp": pa.array([1, 2], pa.timestamp("ms"))})
    with pytest.raises(InvariantViolation, match=r"SS-1.*input-1.parquet is not sorted: row 1"):
        merge_files([parquet(rows(["a"], [1])), parquet(bad)], SCHEMA)
    late = pa.table({"host": ["a", "a"], "timestamp": pa.array([2, 1], pa.timestamp("ms"))})
    with pytest.raises(InvariantViolation, match=r"input-0.parquet is not sorted"):
        merge_files([parquet(late)], SCHEMA)


def test_row_groups_that_are_out_of_order_are_refused_even_if_loaded_apart(merge_files, parquet):
    table = pa.concat_tables([rows(["b"] * 100, range(100)), rows(["a"] * 100, range(100))])
    other = parquet(rows(["a"] * 300, range(300)), row_group_size=100)
    with pytest.raises(InvariantViolation, match=r"input-0.parquet is not sorted"):
        merge_files([parquet(table, row_group_size=100), other], SCHEMA, memory_budget=1, layout=Layout(50, 50))


@pytest.mark.parametrize("codec", ["zstd", "snappy", "none"])
def test_damaged_inputs_are_refused_by_name_or_change_nothing(codec, merge_files, parquet, read_all):
    table = many_series(count=600)
    good = parquet(table, compression=codec)
    rng = np.random.default_rng(5)
    complaints = []
    for _ in range(150):
        data = bytearray(good)
        data[int(rng.integers(4, len(good) - 4))] ^= int(rng.integers(1, 256))
        try:
            read_all(merge_files([bytes(data), good], SCHEMA))
        except WindrowError as error:
            complaints.append(str(error))
        except (pa.ArrowException, OSError, UnicodeDecodeError):
            pass  # values changed without trace, and pyarrow minds what they say
    assert len(complaints) > 30
    assert all("input-0.parquet" in complaint for complaint in complaints)


@pytest.mark.parametrize("kept", [0, 3, 11, 200, 0.5, 0.99])
def test_truncated_inputs_are_refused_by_name(kept, merge_files, parquet):
    good = parquet(many_series(count=600))
    cut = good[: int(len(good) * kept) if isinstance(kept, float) else kept]
    with pytest.raises(Damaged, match=r"input-0.parquet"):
        merge_files([cut, good], SCHEMA)


def test_row_groups_without_rows_are_passed_over(merge_files, read_all):
    sink = pa.BufferOutputStream()
    first, second = rows(["a"] * 60, range(60)), rows(["c"] * 60, range(60))
    with pq.ParquetWriter(sink, first.schema) as writer:
        for part in (first.slice(0, 0), first, first.slice(0, 0), first.slice(0, 0), second):
            writer.write_table(part, row_group_size=60)
    other = rows(["b"] * 300, range(300))
    with_gaps, plain = sink.getvalue().to_pybytes(), pa.BufferOutputStream()
    assert 0 in [pq.read_metadata(pa.BufferReader(with_gaps)).row_group(n).num_rows for n in range(5)]
    pq.write_table(other, plain, row_group_size=30)
    merged = read_all(
        merge_files([with_gaps, plain.getvalue().to_pybytes()], SCHEMA, memory_budget=1, layout=Layout(50, 50))
    )
    assert merged["host"].to_pylist() == ["a"] * 60 + ["b"] * 300 + ["c"] * 60
