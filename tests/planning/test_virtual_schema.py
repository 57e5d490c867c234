"""The schema of a virtual file, also of rows with very many columns."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from windrow.parquet.footer import read_footer
from windrow.planning.virtual_schema import arrow_of, column_names, merged_schema


def footer(columns):
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(columns), sink, store_schema=False)
    return read_footer(sink.getvalue().to_pybytes(), name="file")


def wide(count, first=0):
    return footer({f"column{number}": pa.array([1.5]) for number in range(first, first + count)})


def test_each_column_is_as_the_first_file_that_has_it_declares_it():
    nested = pa.array([{"x": [1], "y": "a"}])
    files = [footer({"a": [1], "b": nested}), footer({"b": [1.5], "c": ["x"], "d": [b"x"]})]
    names = ["d", "b", "missing", "a", "c"]
    merged = arrow_of(merged_schema(files, names))
    assert merged.names == ["d", "b", "a", "c"]
    assert [merged.field("a").type, merged.field("c").type] == [pa.int64(), pa.string()]
    assert [child.name for child in merged.field("b").type] == ["x", "y"]


@pytest.mark.parametrize("files", [1, 2])
def test_twice_the_columns_take_twice_the_steps(steps_of, files):
    def steps(count):
        owners = [wide(count // files, first) for first in range(0, count, count // files)]
        names = [name for owner in owners for name in column_names(owner)]
        return steps_of(lambda: merged_schema(owners, names))

    assert steps(400) < 2.5 * steps(200)
