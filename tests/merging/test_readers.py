"""What a merge writes is read alike by every engine."""

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from windrow.merging.output import Layout
from windrow.model.ordering import sort_indices
from windrow.model.sort_schema import SortSchema

SCHEMA = SortSchema.parse("metric|host|timestamp/V2")


def points(seed, count=4000):
    rng = np.random.default_rng(seed)
    table = pa.table(
        {
            "metric": [f"m{n}" for n in rng.integers(0, 5, count)],
            "host": pa.array([f"h{n}" for n in rng.integers(0, 40, count)], mask=rng.random(count) < 0.1),
            "timestamp": pa.array(1_700_000_000_000_000 + rng.integers(0, 900, count) * 10**6).cast(
                pa.timestamp("us", tz="UTC")
            ),
            # pages of this column are dictionary-coded and plain in turn
            "value": np.where(rng.integers(0, 2, count) == 1, 1.5, rng.normal(size=count)),
            "count": pa.array(rng.integers(0, 2**40, count), mask=rng.random(count) < 0.5),
            "small": rng.integers(0, 100, count).astype(np.int32),
            "tags": pa.array(
                [[(f"k{j}", f"v{n}") for j in range(n)] for n in rng.integers(0, 3, count)],
                pa.map_(pa.string(), pa.string()),
            ),
            "list": pa.array([[int(n)] * (n % 3) for n in rng.integers(0, 9, count)]),
        }
    )
    return table.take(pa.array(sort_indices(table, SCHEMA)))


@pytest.fixture(scope="module")
def merged(tmp_path_factory, merge_files, parquet):
    path = tmp_path_factory.mktemp("merged") / "merged.parquet"
    files = [parquet(points(seed)) for seed in range(4)]
    path.write_bytes(*merge_files(files, SCHEMA, layout=Layout(6000, 500)))
    return path


@pytest.fixture(scope="module")
def expected(merged):
    table = pa.concat_tables([points(seed) for seed in range(4)])
    return table.take(pa.array(sort_indices(table, SCHEMA))).select(pq.read_schema(merged).names)


def test_pyarrow_reads_it(merged, expected):
    assert pq.read_table(merged).equals(expected)


def test_duckdb_reads_it(merged, expected):
    with duckdb.connect() as connection:
        connection.execute("set timezone = 'UTC'")
        found = connection.sql(f"select * from read_parquet('{merged}')").to_arrow_table()
    assert found.cast(expected.schema).equals(expected)


def test_duckdb_prunes_by_its_bounds_and_loses_nothing(merged, expected):
    with duckdb.connect() as connection:
        for host in ("h0", "h17", "h39", "nobody"):
            query = f"select count(*), sum(small) from read_parquet('{merged}') where host = '{host}'"
            rows = expected.filter(pa.compute.equal(expected["host"], host))
            assert connection.sql(query).fetchall()[0] == (rows.num_rows, pa.compute.sum(rows["small"]).as_py())


def test_polars_reads_it(merged, expected):
    flat = expected.drop_columns(["tags"])
    found = pl.read_parquet(merged, columns=flat.column_names, use_pyarrow=False).to_arrow()
    assert found.cast(flat.schema).equals(flat)


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
def test_spark_reads_it(merged, expected, spark):
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    found = spark.read.parquet(str(merged)).toArrow()
    assert found.num_rows == expected.num_rows
    for name in expected.column_names:
        ours, theirs = expected[name], found[name]
        if name != "tags":
            theirs = theirs.cast(ours.type)
        assert theirs.to_pylist() == ours.to_pylist(), name


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
def test_files_that_spark_wrote_are_merged(tmp_path, spark, merge_files, read_all):
    tables = [points(seed, 500).drop_columns(["tags", "list"]) for seed in range(3)]
    files = []
    for number, table in enumerate(tables):
        target = tmp_path / f"spark-{number}"
        spark.createDataFrame(table.to_pandas()).coalesce(1).write.parquet(str(target))
        files.extend(path.read_bytes() for path in target.glob("*.parquet"))
    inputs = [pq.read_table(pa.BufferReader(data)) for data in files]
    table = pa.concat_tables(inputs)
    expected = table.take(pa.array(sort_indices(table, SCHEMA)))
    found = read_all(merge_files(files, SCHEMA))
    assert found.num_rows == 1500
    assert repr(found.select(expected.column_names).to_pylist()) == repr(expected.to_pylist())
