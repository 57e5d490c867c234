"""Which columns a file has, and how each of them is held and written."""

import pyarrow as pa

from windrow.parquet.file_writer import FileSchema
from windrow.splits.column_plans import Way, plan_columns


def test_a_column_has_the_leaves_under_its_name():
    nested = pa.struct([("x", pa.int64()), ("y", pa.list_(pa.string()))])
    planned = plan_columns(FileSchema(pa.schema([("a", pa.int64()), ("b", nested), ("c", pa.string())]), "test"))
    assert [(column.name, column.way) for column in planned] == [
        ("a", Way.FIXED),
        ("b", Way.ARROW),
        ("c", Way.CODED),
    ]
    assert [[leaf.index for leaf in column.leaves] for column in planned] == [[0], [1, 2], [3]]


def test_twice_the_columns_take_twice_the_steps(steps_of):
    def steps(count):
        schema = FileSchema(pa.schema([(f"column{number}", pa.float64()) for number in range(count)]), "test")
        return steps_of(lambda: plan_columns(schema))

    assert steps(400) < 2.5 * steps(200)
