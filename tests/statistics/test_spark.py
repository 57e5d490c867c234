"""Spark reads our sketches and we read those of Spark; both count the same values alike."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from windrow.statistics.hashing import coupons_of
from windrow.statistics.sketch import Sketch, united

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

COUNTS = (0, 5, 200, 20_000)


def columns(count: int, start: int = 0) -> pa.Table:
    numbers = np.arange(start, start + count)
    return pa.table(
        {
            "number": pa.array(numbers * 7919),
            "small": pa.array(numbers.astype(np.int32)),
            "text": pa.array([f"a text, number {number}" for number in numbers], pa.string()),
            "bytes": pa.array([number.tobytes() for number in numbers], pa.binary()),
        }
    )


def sketch_of(column: pa.ChunkedArray) -> Sketch:
    sketch = Sketch()
    for chunk in column.chunks:
        sketch.add(coupons_of(chunk))
    return sketch


@pytest.mark.parametrize("count", COUNTS)
def test_spark_and_we_have_the_same_sketches(spark, count):
    table = columns(count)
    frame = spark.createDataFrame(table).coalesce(1)
    row = frame.selectExpr(*(f"hll_sketch_agg({name}) as {name}" for name in table.column_names)).collect()[0]
    for name in table.column_names:
        ours, theirs = sketch_of(table[name]), Sketch.from_bytes(bytes(row[name]))
        assert np.array_equal(ours.coupons, theirs.coupons) if ours.coupons is not None else theirs.coupons is None
        assert ours.registers is None or np.array_equal(ours.registers, theirs.registers)
        assert theirs.estimate == pytest.approx(ours.estimate, rel=1e-6)


@pytest.mark.parametrize("count", COUNTS)
def test_spark_estimates_and_unites_ours(spark, count):
    one, other = columns(count)["text"], columns(20_000, count // 2)["text"]
    parts = [sketch_of(one), sketch_of(other)]
    frame = spark.createDataFrame(pa.table({"sketch": [part.to_bytes() for part in parts]})).coalesce(1)
    estimates = [row[0] for row in frame.selectExpr("hll_sketch_estimate(sketch)").collect()]
    assert sorted(estimates) == sorted(round(part.estimate) for part in parts)
    union = frame.selectExpr("hll_union_agg(sketch) as sketch").collect()[0].sketch
    together = united(parts)
    assert np.array_equal(Sketch.from_bytes(bytes(union)).registers, together.registers)
    estimate = spark.createDataFrame(pa.table({"sketch": [bytes(union)]})).selectExpr("hll_sketch_estimate(sketch)")
    assert estimate.collect()[0][0] == pytest.approx(together.estimate, rel=0.02)
