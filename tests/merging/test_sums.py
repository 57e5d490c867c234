"""Every value of a merge is compared with its inputs: by sums of columns, which see what a comparison of rows sees."""

import io
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from windrow.errors import InvariantViolation
from windrow.merging.inputs import open_inputs
from windrow.merging.merge import Merge, MergeOptions
from windrow.merging.output import Layout
from windrow.merging.readback import ReadBack
from windrow.merging.sums import ColumnSums, Weighed
from windrow.merging.verify import verify_all
from windrow.model.ordering import first_unsorted_row, sort_indices
from windrow.model.sort_schema import Direction, SortSchema
from windrow.parquet.page_reader import Coded, CodedRows, Fixed
from windrow.storage import open_store

ROWS_AT_ONCE = 300


@contextmanager
def merged(case):
    """A merge of a case that sums up its inputs, and the bytes of its outputs."""
    store = open_store("memory://")
    keys = [f"input-{number}.parquet" for number in range(len(case.files))]
    for key, data in zip(keys, case.files, strict=True):
        store.put(key, data)
    layout = Layout(case.row_group_rows, case.granule_rows)
    options = MergeOptions(outputs=case.outputs, memory_budget=case.budget, layout=layout, sums=True)
    merge = Merge.of(open_inputs(store, keys), case.schema, options, timestamp=case.schema.columns[-1].name)
    try:
        yield merge, [bytes(output.finish({})) for output in merge.run()]
    finally:
        merge.close()


def compare(merge, outputs):
    """Compare outputs with what the inputs of a merge sum up to."""
    back = ReadBack(merge.columns, merge.schema, merge.sums.copied, ROWS_AT_ONCE)
    verify_all([memoryview(data) for data in outputs], merge.sums, back, merge.file_schema.arrow.names)


def is_refused(comparison, *arguments):
    try:
        comparison(*arguments)
    except InvariantViolation:
        return True
    return False


def another(value, kind, rng):
    """A value of a type that differs, if only in a bit."""
    if value is None:
        values = {"string": "", "binary": b"", "bool": False, "double": 0.0, "float": 0.0}
        return values.get(str(kind), 0 if pa.types.is_integer(kind) else None)
    if isinstance(value, bool):
        return not value
    if isinstance(value, float):
        flipped = np.array([value], "f4" if pa.types.is_float32(kind) else "f8").view("u1")
        flipped[rng.integers(flipped.size)] ^= 1 << rng.integers(8)
        return flipped.view("f4" if pa.types.is_float32(kind) else "f8")[0].item()
    if isinstance(value, int):
        return value ^ 1
    return value + type(value)(value[:1] or "x") if isinstance(value, str) else None


def _set(table, column, changes):
    values = table.column(column).to_pylist()
    for row, value in changes.items():
        values[row] = value
    field = table.schema.field(column)
    return table.set_column(
        table.schema.get_field_index(column), field.with_nullable(True), pa.array(values, field.type)
    )


def a_value_changes(table, column, rng):
    row = int(rng.integers(table.num_rows))
    value = table.column(column)[row].as_py()
    return _set(table, column, {row: another(value, table.schema.field(column).type, rng)})


def a_value_becomes_null(table, column, rng):
    return _set(table, column, {int(rng.integers(table.num_rows)): None})


def two_rows_swap_a_value(table, column, rng):
    one, other = rng.integers(table.num_rows, size=2).tolist()
    values = table.column(column)
    return _set(table, column, {one: values[other].as_py(), other: values[one].as_py()})


def a_column_moves_by_a_row(table, column, _):
    values = table.column(column).to_pylist()
    return _set(table, column, dict(enumerate(values[1:] + values[:1])))


def a_row_is_lost_and_another_comes_twice(table, _, rng):
    rows = np.arange(table.num_rows)
    rows[rng.integers(rows.size)] = rng.integers(rows.size)
    return table.take(pa.array(np.sort(rows)))


def two_rows_change_places(table, _, rng):
    rows = np.arange(table.num_rows)
    one, other = rng.integers(rows.size, size=2)
    rows[[one, other]] = rows[[other, one]]
    return table.take(pa.array(rows))


FAULTS = [
    a_value_changes,
    a_value_becomes_null,
    two_rows_swap_a_value,
    a_column_moves_by_a_row,
    a_row_is_lost_and_another_comes_twice,
    two_rows_change_places,
]


def rewritten(data, fault, rng):
    """A file with a fault in it; pyarrow writes it."""
    table = pq.read_table(io.BytesIO(data))
    harmed = fault(table, str(rng.choice(table.column_names)), rng)
    sink = io.BytesIO()
    pq.write_table(harmed, sink, row_group_size=int(rng.choice([64, 1000])), compression="zstd")
    return sink.getvalue()


@pytest.mark.parametrize("block", range(2))
def test_sums_of_columns_see_what_a_comparison_of_all_rows_sees(block, random_case, compare_rows):
    found = dict.fromkeys(FAULTS, 0)
    for seed in range(12 * block, 12 * block + 12):
        case, rng = random_case(seed), np.random.default_rng(seed)
        with merged(case) as (merge, outputs):
            columns = merge.file_schema.arrow
            compare_rows(outputs, case.files, case.schema, columns)
            compare(merge, outputs)
            filled = [number for number, data in enumerate(outputs) if pq.read_metadata(io.BytesIO(data)).num_rows]
            for fault in FAULTS if filled else ():
                number = int(rng.choice(filled))
                harmed = [*outputs[:number], rewritten(outputs[number], fault, rng), *outputs[number + 1 :]]
                if is_refused(compare_rows, harmed, case.files, case.schema, columns):
                    assert is_refused(compare, merge, harmed), (seed, fault.__name__)
                    found[fault] += 1
    assert all(found.values()), found


def apart(count, rows):
    """Inputs none of whose rows lie between those of another, as the split writer writes them."""
    schema = SortSchema.parse("host|timestamp+/V2")
    files = []
    for number in range(count):
        table = pa.table(
            {
                "host": [f"h{number}"] * rows,
                "timestamp": pa.array(np.arange(rows), pa.timestamp("ms")),
                "pod": [f"p{row % 7}" for row in range(rows)],
                "value": np.arange(rows) / 3,
            }
        )
        sink = io.BytesIO()
        pq.write_table(
            table,
            sink,
            compression="zstd",
            row_group_size=rows,
            max_rows_per_page=50,
            write_page_index=True,
            write_page_checksum=True,
        )
        files.append(sink.getvalue())
    return schema, files


@pytest.fixture(name="copying")
def _copying(random_case):
    """A case whose row groups are copied byte by byte."""
    schema, files = apart(4, 100)
    case = random_case(0)
    return type(case)(schema, [], files, 1, 100, 50, 1 << 28)


def test_row_groups_that_are_copied_are_proven_by_their_bytes(copying):
    with merged(copying) as (merge, (output,)):
        assert len(merge.sums.copied) == 4
        compare(merge, [output])
        # no value was summed
        assert {merge.sums.columns.of(name) for name in ("host", "timestamp", "value")} == {(0, 0, 0)}
        chunk = pq.read_metadata(io.BytesIO(output)).row_group(2).column(3)
        at = chunk.dictionary_page_offset + chunk.total_compressed_size // 2
        spoiled = output[:at] + bytes([output[at] ^ 4]) + output[at + 1 :]
        with pytest.raises(InvariantViolation, match="MC-2.*row group 2 was copied.*column 'value'"):
            compare(merge, [spoiled])


def test_a_row_group_that_takes_the_place_of_a_copied_one_is_refused(copying):
    with merged(copying) as (merge, (output,)):
        table = pq.read_table(io.BytesIO(output))
        sink = io.BytesIO()
        pq.write_table(table, sink, row_group_size=80)
        with pytest.raises(InvariantViolation, match="MC-2.*column 'host'"):
            compare(merge, [sink.getvalue()])


def test_row_groups_that_are_copied_to_wrong_places_are_refused(copying):
    with merged(copying) as (merge, (output,)):
        hosts, *others = merge.schema.columns
        merge.schema = SortSchema((replace(hosts, direction=Direction.DESCENDING), *others))
        with pytest.raises(InvariantViolation, match="MC-3"):
            compare(merge, [output])


def test_rows_between_copied_row_groups_are_summed(random_case):
    schema, files = apart(4, 100)
    # the second host comes twice, so that its rows are merged
    case = type(random_case(0))(schema, [], [*files, files[1]], 1, 100, 50, 1 << 28)
    with merged(case) as (merge, (output,)):
        assert [group.place for group in merge.sums.copied] == [0, 300, 400]
        compare(merge, [output])
        values = pq.read_table(io.BytesIO(output)).column("value").slice(100, 200).to_numpy()
        plain = ColumnSums()
        plain.add("value", Fixed(values.view("u8"), None), Weighed.rows((0, 200)), 100)
        assert merge.sums.columns.of("value") == plain.of("value")
        merge.sums.columns.sums["pod"][0] += 1
        with pytest.raises(InvariantViolation, match="MC-2.*column 'pod'"):
            compare(merge, [output])


def test_a_merge_that_leaves_rows_of_an_input_is_refused(copying):
    with merged(copying) as (merge, outputs):
        merge.sums._given[1] -= 1
        with pytest.raises(InvariantViolation, match="MC-1.*input-1.parquet has 100 rows, of which the merge took 99"):
            compare(merge, outputs)


def test_an_order_that_takes_a_row_twice_is_refused(monkeypatch, random_case):
    from windrow.merging import merge as merging

    case = next(case for case in map(random_case, range(100)) if case.expected().num_rows > 50 and len(case.files) > 1)
    order_of = merging.merge_order

    def twice(*arguments):
        found = order_of(*arguments)
        starts = found.order.starts.copy()
        starts[-1] = starts[0]
        return type(found)(
            type(found.order)(starts, found.order.counts, found.order.input_ends), *list(vars(found).values())[1:]
        )

    monkeypatch.setattr(merging, "merge_order", twice)
    with pytest.raises(InvariantViolation, match="MC-2.*does not take every row once"), merged(case):
        pass


def test_the_place_of_a_value_counts_in_one_sum_and_not_in_the_other():
    def sums(values):
        found = ColumnSums()
        found.add("x", pa.chunked_array([pa.array(values)]), Weighed.rows((0, len(values))))
        return found.of("x")

    content, placed, nulls = sums([1, 2, None])
    assert (content, nulls) == (sums([2, 1, None])[0], 1)
    assert placed != sums([2, 1, None])[1]
    assert sums([0, None]) != sums([None, 0])


def test_an_empty_text_is_not_null():
    def sums(codes):
        found = ColumnSums()
        texts = pa.array([b"", b"x"], pa.large_binary())
        found.add("x", Coded(np.array(codes, np.int32), np.array([1, 2]), texts), Weighed.rows((0, 2)))
        by_row = ColumnSums()
        by_row.add("x", CodedRows(np.array(codes, np.int32), texts), Weighed.rows((0, 2)))
        assert by_row.of("x") == found.of("x")
        return found.of("x")

    assert sums([0, -1]) != sums([-1, 0])
    assert sums([0, 1]) != sums([1, 0])


def test_parts_of_a_column_sum_up_to_the_whole_of_it():
    values, whole, parts = pa.chunked_array([pa.array([3, None, 5, 5, 0])]), ColumnSums(), ColumnSums()
    whole.add("x", values, Weighed.rows((0, 5)))
    for first, last in ((0, 2), (2, 3), (3, 5)):
        parts.add("x", values.slice(first, last - first), Weighed.rows((0, last - first)), first)
    assert parts.of("x") == whole.of("x")
    rest = ColumnSums()
    rest.add("x", values, Weighed.rows((0, 2), (3, 5)))
    rest.add("x", values.slice(2, 1), Weighed.rows((0, 1)), 2)
    assert rest.of("x") == whole.of("x")


@pytest.mark.parametrize("seed", range(12))
def test_rows_that_are_not_sorted_are_seen_as_the_model_sees_them(seed, random_case, parquet):
    rng, case = np.random.default_rng(seed), random_case(seed)
    table = pa.concat_tables(case.tables, promote_options="default")
    if table.num_rows < 2:
        pytest.skip("nothing to sort")
    order = sort_indices(table, case.schema)
    with merged(case) as (merge, _):
        for _ in range(6):
            one, other = rng.integers(order.size, size=2)
            order[[one, other]] = order[[other, one]]
            harmed = table.take(pa.array(order))
            data = parquet(harmed, row_group_size=int(rng.choice([7, 100, 1000])))
            back = ReadBack(merge.columns, merge.schema, [], ROWS_AT_ONCE)
            if first_unsorted_row(harmed, case.schema) is None:
                back.read(memoryview(data), "x", open_store("memory://"))
            else:
                with pytest.raises(InvariantViolation, match="MC-3"):
                    back.read(memoryview(data), "x", open_store("memory://"))
