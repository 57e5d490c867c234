"""Parquet files of many writers, and the engines that read them."""

from __future__ import annotations

import datetime as dt
import decimal
from pathlib import Path

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

DATA = Path(__file__).parents[1] / "data"
BROKEN = "PARQUET-1481.parquet"
CORPUS = sorted(p for p in DATA.glob("**/*.parquet") if p.name != BROKEN)


DAY = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
COLUMNS = {
    "i8": (pa.int8(), lambda n: n),
    "u32": (pa.uint32(), lambda n: n * 80_000_000),
    "i64": (pa.int64(), lambda n: -n),
    "f32": (pa.float32(), lambda n: n / 2),
    "f64": (pa.float64(), lambda n: n / 3),
    "flag": (pa.bool_(), lambda n: n % 2 == 0),
    "text": (pa.string(), lambda n: f"söme text {n}"),
    "blob": (pa.binary(), lambda n: bytes([n % 256, 0, 255])),
    "fixed": (pa.binary(5), lambda n: b"%05d" % n),
    "price": (pa.decimal128(12, 3), lambda n: decimal.Decimal(n) / 8),
    "day": (pa.date32(), lambda n: DAY.date() + dt.timedelta(days=n)),
    "time": (pa.time64("us"), lambda n: dt.time(n % 24, 3)),
    "ms": (pa.timestamp("ms", tz="UTC"), lambda n: DAY + dt.timedelta(seconds=n)),
    "us": (pa.timestamp("us"), lambda n: DAY.replace(tzinfo=None) + dt.timedelta(seconds=n)),
    "list": (pa.list_(pa.int32()), lambda n: [n, None][: n % 3]),
    "grid": (pa.list_(pa.list_(pa.float64())), lambda n: [[n / 2], []]),
    "both": (
        pa.struct({"a": pa.int64(), "b": pa.list_(pa.string())}),
        lambda n: {"a": n, "b": ["x"] * (n % 4)},
    ),
    "map": (pa.map_(pa.string(), pa.int32()), lambda n: [("k", n)]),
}


def table_of_types(rows: int = 50) -> pa.Table:
    """Columns of most types, with nulls in every seventh row, and one column that has none and is required."""
    numbers = [None if n % 7 == 3 else n for n in range(rows)]
    table = pa.table(
        {
            name: pa.array([None if n is None else value(n) for n in numbers], kind)
            for name, (kind, value) in COLUMNS.items()
        }
    )
    sure = pa.field("sure", pa.int64(), nullable=False, metadata={"PARQUET:field_id": "17"})
    return table.append_column(sure, pa.array(range(rows), pa.int64()))


def _numbers(columns: int, rows: int) -> pa.Table:
    return pa.table({f"column_{n:03}": np.arange(rows) + n for n in range(columns)})


def _write_with_duckdb(path: Path) -> None:
    with duckdb.connect() as connection:
        connection.register("source", table_of_types())
        connection.execute(f"copy source to '{path}' (format parquet, row_group_size 2048)")


SORTING = [pq.SortingColumn(18, descending=True, nulls_first=False), pq.SortingColumn(0)]
GENERATED = {
    "plain": lambda path: pq.write_table(table_of_types(), path),
    "many row groups": lambda path: pq.write_table(table_of_types(), path, row_group_size=3),
    "no statistics": lambda path: pq.write_table(table_of_types(), path, write_statistics=False),
    "page index": lambda path: pq.write_table(table_of_types(), path, write_page_index=True, max_rows_per_page=10),
    "pages of version 2": lambda path: pq.write_table(
        table_of_types(), path, data_page_version="2.0", compression="zstd"
    ),
    "no dictionary": lambda path: pq.write_table(table_of_types(), path, use_dictionary=False, compression="none"),
    "version 1": lambda path: pq.write_table(table_of_types(), path, version="1.0"),
    "checksums": lambda path: pq.write_table(table_of_types(), path, write_page_checksum=True, store_schema=False),
    "sorted": lambda path: pq.write_table(table_of_types(), path, sorting_columns=SORTING, row_group_size=20),
    "bloom filters": lambda path: pq.write_table(
        table_of_types(), path, bloom_filter_options={"i64": {"ndv": 100, "fpp": 0.01}, "text": {"ndv": 10}}
    ),
    "no rows": lambda path: pq.write_table(table_of_types(0), path),
    "no columns": lambda path: pq.write_table(pa.table({}), path),
    "wide": lambda path: pq.write_table(_numbers(300, 4), path, row_group_size=2),
    "written by duckdb": _write_with_duckdb,
    "written by polars": lambda path: pl.from_arrow(table_of_types()).write_parquet(path, row_group_size=20),
}


@pytest.fixture(scope="session", params=[*CORPUS, *GENERATED], ids=lambda p: p if isinstance(p, str) else p.stem)
def parquet_file(request, tmp_path_factory) -> Path:
    """Each good Parquet file there is: of the corpus, and made here."""
    if isinstance(request.param, Path):
        return request.param
    path = tmp_path_factory.mktemp("generated") / "data.parquet"
    GENERATED[request.param](path)
    return path


@pytest.fixture
def data_dir() -> Path:
    """Where the Parquet files of other projects are."""
    return DATA


@pytest.fixture
def types() -> pa.Table:
    """A table with columns of most types, with nulls."""
    return table_of_types()


def read_with_pyarrow(path: Path) -> pa.Table:
    return pq.ParquetFile(path).read()


def read_with_duckdb(path: Path) -> pa.Table:
    with duckdb.connect() as connection:
        return connection.sql(f"select * from read_parquet('{path}')").to_arrow_table()


def read_with_polars(path: Path) -> pa.Table:
    return pl.read_parquet(path, glob=False, hive_partitioning=False).to_arrow()


@pytest.fixture(params=[read_with_pyarrow, read_with_duckdb, read_with_polars], ids=["pyarrow", "duckdb", "polars"])
def read(request):
    """A function that reads a whole Parquet file with one engine."""
    return request.param
