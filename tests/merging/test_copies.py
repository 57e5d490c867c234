"""Row groups whose rows stay together are copied byte by byte; all others are written anew."""

import numpy as np
import pyarrow as pa
import pytest

from windrow.merging.output import Layout
from windrow.model.ordering import sort_indices
from windrow.model.sort_schema import SortSchema
from windrow.parquet.chunk import chunk_starts
from windrow.parquet.footer import read_footer

SCHEMA = SortSchema.parse("host|timestamp+/V2")
LAYOUT = Layout(200, 50)
OPTIONS = {
    "compression": "zstd",
    "row_group_size": 200,
    "max_rows_per_page": 50,
    "write_page_index": True,
    "write_page_checksum": True,
}


def rows(hosts, count, seed=0):
    """Rows of some hosts in their order."""
    rng = np.random.default_rng(seed)
    table = pa.table(
        {
            "host": [f"h{hosts[0] + n * (hosts[1] - hosts[0]) // count:04d}" for n in range(count)],
            "timestamp": pa.array(rng.integers(0, 900, count)).cast(pa.timestamp("ms")),
            "tags": pa.array([[("k", f"v{n % 7}")] for n in range(count)], pa.map_(pa.string(), pa.string())),
            "value": rng.normal(size=count),
        }
    )
    return table.take(pa.array(sort_indices(table, SCHEMA)))


def groups(data):
    """The bytes of each row group, and its rows."""
    footer = read_footer(data, name="file")
    found = []
    for group, count in enumerate(footer.row_group_rows.tolist()):
        chunks = footer.chunks[group]
        first, size = int(chunk_starts(chunks).min()), int(chunks["total_compressed_size"].sum())
        found.append((count, data[first : first + size]))
    return found


def check(files, tables, merge_files, read_all, **options):
    """Merge, compare with a sort of all rows, and with other budgets."""
    (merged,) = merge_files(files, SCHEMA, layout=LAYOUT, **options)
    table = pa.concat_tables(tables)
    assert read_all([merged]).equals(table.take(pa.array(sort_indices(table, SCHEMA))))
    for budget in (1, 20_000):
        assert merge_files(files, SCHEMA, layout=LAYOUT, memory_budget=budget) == [merged]
    return groups(merged)


def test_inputs_that_do_not_interleave_are_copied_whole(merge_files, parquet, read_all):
    tables = [rows((100 * n, 100 * n + 100), 500, n) for n in (2, 0, 1)]
    files = [parquet(table, **OPTIONS) for table in tables]
    merged = check(files, tables, merge_files, read_all)
    assert merged == [group for number in (1, 2, 0) for group in groups(files[number])]
    assert [count for count, _ in merged] == [200, 200, 100] * 3


def test_rows_ahead_of_a_copy_end_their_row_group(merge_files, parquet, read_all):
    tables = [rows((0, 10), 150), rows((0, 10), 180, 1), rows((20, 90), 400, 2)]
    files = [parquet(table, **OPTIONS) for table in tables]
    merged = check(files, tables, merge_files, read_all)
    assert [count for count, _ in merged] == [200, 130, 200, 200]
    assert merged[2:] == groups(files[2])


def test_few_rows_ahead_of_a_row_group_join_it(merge_files, parquet, read_all):
    tables = [rows((0, 10), 99), rows((20, 90), 400, 2)]
    files = [parquet(table, **OPTIONS) for table in tables]
    merged = check(files, tables, merge_files, read_all)
    assert [count for count, _ in merged] == [200, 200, 99]
    assert not set(merged) & set(groups(files[1]))


def test_a_row_that_falls_in_between_is_enough(merge_files, parquet, read_all):
    tables = [rows((0, 100), 600), rows((45, 46), 1, 1)]
    files = [parquet(table, **OPTIONS) for table in tables]
    merged = check(files, tables, merge_files, read_all)
    copied = [group for group in merged if group in groups(files[0])]
    assert [count for count, _ in merged] == [200, 200, 200, 1]
    assert len(copied) == 1


@pytest.mark.parametrize(
    "changes",
    [
        {"compression": "snappy"},
        {"write_page_index": False},
        {"write_page_checksum": False},
        {"max_rows_per_page": 100},
        {"row_group_size": 90},
        {"row_group_size": 500},
    ],
    ids=["another codec", "no page index", "no checksums", "long pages", "small row groups", "large row groups"],
)
def test_what_is_not_as_we_write_it_is_written_anew(changes, merge_files, parquet, read_all):
    tables = [rows((100 * n, 100 * n + 100), 500, n) for n in range(2)]
    files = [parquet(table, **OPTIONS | changes) for table in tables]
    merged = check(files, tables, merge_files, read_all)
    assert [count for count, _ in merged] == [200] * 5
    assert not set(merged) & {group for data in files for group in groups(data)}


def test_other_columns_or_other_types_are_no_copies(merge_files, parquet, read_all):
    tables = [rows((0, 100), 400), rows((100, 200), 400, 1).append_column("late", pa.array([1] * 400))]
    files = [parquet(table, **OPTIONS) for table in tables]
    (merged,) = merge_files(files, SCHEMA, layout=LAYOUT)
    assert not set(groups(merged)) & {group for data in files for group in groups(data)}
    assert read_all([merged]).num_rows == 800


def test_a_copy_never_reaches_across_the_end_of_an_output(merge_files, parquet, read_all):
    tables = [rows((100 * n, 100 * n + 100), 500, n) for n in range(3)]
    files = [parquet(table, **OPTIONS) for table in tables]
    outputs = merge_files(files, SCHEMA, layout=LAYOUT, outputs=4)
    assert len(outputs) == 4
    table = pa.concat_tables(tables)
    assert read_all(outputs).equals(table.take(pa.array(sort_indices(table, SCHEMA))))
    assert {group for data in outputs for group in groups(data)} & {group for data in files for group in groups(data)}
