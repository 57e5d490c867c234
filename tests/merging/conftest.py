"""Random merges: schemas, directions, nulls, NaN, duplicates, evolved columns, pages and codecs of several writers."""

from __future__ import annotations

import io
import tempfile
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from functools import cache
from itertools import pairwise
from pathlib import Path

import datafusion
import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from windrow.merging.hashing import sum_of_rows
from windrow.merging.inputs import open_inputs
from windrow.merging.merge import Merge, MergeOptions
from windrow.merging.output import DEFAULT_LAYOUT
from windrow.model.invariants import require
from windrow.model.ordering import sort_indices
from windrow.model.sort_schema import SortSchema
from windrow.model.widening import plain
from windrow.storage import open_store

NESTED = ("map", "list", "struct", "null")
CODECS = ("none", "snappy", "gzip", "brotli", "zstd", "lz4")


@dataclass(frozen=True)
class Case:
    """A merge to try: what goes in, and how it comes out."""

    schema: SortSchema
    tables: list[pa.Table]
    files: list[bytes]
    outputs: int
    row_group_rows: int
    granule_rows: int
    budget: int

    def expected(self) -> pa.Table:
        """All rows in the order that the model gives them; ties by input, then by row."""
        table = pa.concat_tables(self.tables, promote_options="default")
        return table.take(pa.array(sort_indices(table, self.schema)))


ODD_FLOATS = np.array([np.nan, -0.0, 0.0, np.inf, -np.inf, 1.5])


def _floats(rng: np.random.Generator, number: np.ndarray) -> pa.Array:
    return pa.array(np.where(rng.random(number.size) < 0.3, ODD_FLOATS[number % 6], number / 3))


def _unsigned(number: np.ndarray, kind: pa.DataType) -> pa.Array:
    """Values beyond the reach of the signed type, too."""
    return pa.array(np.abs(number).astype(np.uint64) + np.uint64(2 ** (kind.bit_width - 1))).cast(kind)


MAKERS = {
    "text": lambda _, n: pa.array([f"v{one}" + "é" * (one % 3) for one in n], pa.string()),
    "bytes": lambda _, n: pa.array([bytes([one % 256, 0, one % 7]) * (one % 4) for one in n], pa.binary()),
    "int64": lambda _, n: pa.array(n),
    "int32": lambda _, n: pa.array(n).cast(pa.int32()),
    "int8": lambda _, n: pa.array(n % 100).cast(pa.int8()),
    "uint32": lambda _, n: _unsigned(n, pa.uint32()),
    "uint64": lambda _, n: _unsigned(n, pa.uint64()),
    "float64": _floats,
    "float32": lambda rng, n: _floats(rng, n).cast(pa.float32()),
    "bool": lambda _, n: pa.array(n % 2 == 0),
    "ms": lambda _, n: pa.array(n * 1000 + 1_700_000_000_000).cast(pa.timestamp("ms", tz="UTC")),
    "ns": lambda _, n: pa.array(n * 1000 + 1_700_000_000_000).cast(pa.timestamp("ns")),
    "date": lambda _, n: pa.array([date.fromordinal(737_000 + int(one)) for one in n], pa.date32()),
    "time": lambda _, n: pa.array(np.abs(n)).cast(pa.time64("us")),
    "decimal": lambda _, n: pa.array([Decimal(int(one)) / 100 for one in n], pa.decimal128(12, 2)),
    "map": lambda _, n: pa.array(
        [[(f"k{j}", f"v{one}") for j in range(one % 3)] for one in n], pa.map_(pa.string(), pa.string())
    ),
    "list": lambda _, n: pa.array([[int(one)] * (one % 3) for one in n], pa.list_(pa.int64())),
    "struct": lambda _, n: pa.array(
        [{"x": int(one), "y": f"s{one}"} for one in n], pa.struct({"x": pa.int64(), "y": pa.string()})
    ),
    "null": lambda _, n: pa.nulls(n.size),
}


def values(rng: np.random.Generator, kind: str, count: int, distinct: int) -> pa.Array:
    """Random values of a kind, with few or many distinct ones."""
    made = MAKERS[kind](rng, rng.integers(-distinct, distinct, count))
    mask = rng.random(count) < rng.choice([0, 0, 0.1, 0.9])
    return pa.array([None if gone else value for gone, value in zip(mask, made.to_pylist(), strict=True)], made.type)


def write(rng: np.random.Generator, table: pa.Table) -> bytes:
    """A file of the table, by one of the writers; by pyarrow where another would change the types."""
    writer = str(rng.choice(["pyarrow", "pyarrow", "pyarrow", *WRITERS]))
    flat = not any(pa.types.is_nested(field.type) or pa.types.is_null(field.type) for field in table.schema)
    if writer != "pyarrow" and flat and table.num_rows:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "written.parquet"
            WRITERS[writer](rng, table, path)
            data = path.read_bytes()
        if _is_like(data, table):
            return data
    return _by_pyarrow(rng, table)


def _is_like(data: bytes, table: pa.Table) -> bool:
    """Whether pyarrow reads the file, with the same types; pages of nothing but nulls make it stumble over deltas."""
    try:
        return pq.read_table(io.BytesIO(data)).schema.types == _read_back(table).types
    except OSError:
        return False


def _by_polars(rng: np.random.Generator, table: pa.Table, path: Path) -> None:
    pl.from_arrow(table).write_parquet(path, compression="zstd", row_group_size=int(rng.integers(50, 500)))


@cache
def one_duckdb() -> duckdb.DuckDBPyConnection:
    """One for all cases: to start one takes as long as a case."""
    connection = duckdb.connect()
    connection.execute("set threads = 1; set global timezone = 'UTC'")
    return connection


def _by_duckdb(rng: np.random.Generator, table: pa.Table, path: Path) -> None:
    codec, version = rng.choice(["zstd", "snappy", "gzip", "uncompressed"]), rng.choice(["v1", "v2"])
    connection = one_duckdb().cursor()
    connection.register("made", table)
    connection.execute(f"copy made to '{path}' (format parquet, codec '{codec}', parquet_version '{version}')")


def _by_parquet_rs(rng: np.random.Generator, table: pa.Table, path: Path) -> None:
    context = datafusion.SessionContext(datafusion.SessionConfig().with_target_partitions(1))
    context.from_arrow(table, name="made")
    options = {
        "compression": str(rng.choice(["zstd(3)", "snappy", "lz4_raw", "uncompressed"])),
        "writer_version": str(rng.choice(["1.0", "2.0"])),
        "dictionary_enabled": str(bool(rng.random() < 0.7)).lower(),
        "max_row_group_size": str(rng.choice([64, 1000])),
        "data_page_row_count_limit": str(rng.choice([32, 1000])),
    }
    told = ", ".join(f"'format.{name}' '{value}'" for name, value in options.items())
    context.sql(f"copy made to '{path}' stored as parquet options ({told})").collect()


WRITERS = {"polars": _by_polars, "duckdb": _by_duckdb, "parquet-rs": _by_parquet_rs}


def _read_back(table: pa.Table) -> pa.Schema:
    sink = io.BytesIO()
    pq.write_table(table.slice(0, 0), sink)
    return pq.read_schema(io.BytesIO(sink.getvalue()))


def _by_pyarrow(rng: np.random.Generator, table: pa.Table) -> bytes:
    sink = io.BytesIO()
    names = table.column_names
    dictionary = [name for name in names if rng.random() < 0.7]
    encodings = {}
    for field in table.schema:
        kind = field.type
        if field.name in dictionary or rng.random() < 0.5:
            continue
        if (pa.types.is_integer(kind) and kind.bit_width >= 32) or pa.types.is_timestamp(kind):
            encodings[field.name] = "DELTA_BINARY_PACKED"
        elif pa.types.is_floating(kind):
            encodings[field.name] = "BYTE_STREAM_SPLIT"
        elif pa.types.is_string(kind):
            encodings[field.name] = str(rng.choice(["DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY"]))
    pq.write_table(
        table,
        sink,
        compression=str(rng.choice(CODECS)),
        data_page_version=str(rng.choice(["1.0", "2.0"])),
        row_group_size=int(rng.choice([10, 100, 1000])),
        use_dictionary=dictionary or False,
        column_encoding=encodings or None,
        data_page_size=int(rng.choice([64, 1024, 1 << 20])),
        dictionary_pagesize_limit=int(rng.choice([100, 1 << 20])),
        write_page_index=bool(rng.random() < 0.5),
        use_compliant_nested_type=True,
    )
    return sink.getvalue()


def random_case(seed: int) -> Case:
    """The case of a seed."""
    rng = np.random.default_rng(seed)
    sort_kinds = rng.choice([kind for kind in MAKERS if kind not in NESTED], int(rng.integers(1, 5)))
    bodies = rng.choice(list(MAKERS), int(rng.integers(0, 4)))
    directions = rng.choice(["+", "-"], len(sort_kinds))
    text = "|".join(f"s{n}{direction}" for n, direction in enumerate(directions))
    schema = SortSchema.parse(f"{text}/V2")
    distinct = int(rng.choice([1, 3, 20, 1000]))
    columns = [(f"s{n}", kind) for n, kind in enumerate(sort_kinds)] + [
        (f"b{n}", kind) for n, kind in enumerate(bodies)
    ]
    row_group_rows, granule_rows = int(rng.choice([64, 100, 4096])), int(rng.choice([16, 50, 4096]))
    tables, files = [], []
    for table in _tables(rng, columns, schema, distinct):
        if isinstance(table, _Apart):
            options = {"row_group_size": row_group_rows, "max_rows_per_page": granule_rows, "write_page_index": True}
            data = parquet(table.rows, compression="zstd", **options)
        else:
            data = write(rng, table)
        files.append(data)
        tables.append(pq.read_table(io.BytesIO(data)))
    budget = int(rng.choice([1, 1 << 14, 1 << 28]))
    return Case(schema, tables, files, int(rng.integers(1, 9)), row_group_rows, granule_rows, budget)


@dataclass(frozen=True)
class _Apart:
    """Rows none of which lie between those of another input, to be written as a split is."""

    rows: pa.Table


def _tables(rng, columns, schema, distinct):
    """The inputs: each on its own, or pieces of one."""
    inputs = int(rng.choice([1, 2, 3, 8, 32]))
    if rng.random() < 0.15:
        table = pa.table({name: values(rng, str(kind), 900, distinct) for name, kind in columns})
        table = table.take(pa.array(sort_indices(table, schema)))
        cuts = np.sort(rng.integers(0, 901, inputs - 1)).tolist()
        pieces = [_Apart(table.slice(low, high - low)) for low, high in pairwise([0, *cuts, 900])]
        return [pieces[number] for number in rng.permutation(inputs)]
    made = []
    for _ in range(inputs):
        count = int(rng.choice([0, 1, 7, 60, 300]))
        kept = [column for column in columns if rng.random() < 0.9] or columns
        table = pa.table({name: values(rng, str(kind), count, distinct) for name, kind in kept})
        made.append(table.take(pa.array(sort_indices(table, schema))))
    return made


def duckdb_order(table: pa.Table, schema: SortSchema) -> pa.Table:
    """The rows in the order that DuckDB puts them, ties as they come."""
    keys = [
        f'"{column.name}" {"asc nulls last" if column.direction == "+" else "desc nulls first"}'
        for column in schema.columns
        if column.name in table.column_names
    ]
    numbered = table.select([c.name for c in schema.columns if c.name in table.column_names]).append_column(
        "_row", pa.array(np.arange(table.num_rows))
    )
    connection = one_duckdb().cursor()
    connection.register("rows", numbered)
    found = connection.sql(f"select _row from rows order by {', '.join([*keys, '_row'])}").to_arrow_table()
    return table.take(found["_row"])


def merge_files(files, schema, *, timestamp=None, layout=DEFAULT_LAYOUT, **options) -> list[bytes]:
    """Merge files that are given as bytes; the outputs as bytes."""
    store = open_store("memory://")
    keys = [f"input-{number}.parquet" for number in range(len(files))]
    for key, data in zip(keys, files, strict=True):
        store.put(key, data)
    merge = Merge.of(
        open_inputs(store, keys),
        schema,
        MergeOptions(layout=layout, **options),
        timestamp=timestamp or schema.columns[-1].name,
    )
    try:
        return [bytes(output.finish({})) for output in merge.run()]
    finally:
        merge.close()


def read_all(files: list[bytes]) -> pa.Table:
    """The rows of several files behind each other."""
    return pa.concat_tables([pq.read_table(io.BytesIO(data), use_threads=False) for data in files])


def parquet(table: pa.Table, **options) -> bytes:
    """A table as a file."""
    sink = io.BytesIO()
    pq.write_table(table, sink, **options)
    return sink.getvalue()


@pytest.fixture(name="random_case", scope="session")
def _random_case():
    return random_case


@pytest.fixture(name="duckdb_order", scope="session")
def _duckdb_order():
    return duckdb_order


@pytest.fixture(name="merge_files", scope="session")
def _merge_files():
    return merge_files


@pytest.fixture(name="read_all", scope="session")
def _read_all():
    return read_all


@pytest.fixture(name="parquet", scope="session")
def _parquet():
    return parquet


def compare_rows(outputs: list[bytes], inputs: list[bytes], schema: SortSchema, columns: pa.Schema) -> None:
    """The plain comparison of all rows: sums of hashes of rows, both sides read by pyarrow, and the order of rows."""
    before = sum(_sum_of(pq.read_table(io.BytesIO(data)), columns) for data in inputs)
    after, rows = 0, []
    for data in outputs:
        rows.append(pq.read_table(io.BytesIO(data)))
        after += _sum_of(rows[-1], columns)
    if rows:
        require("MC-3", table=pa.concat_tables(rows), schema=schema)
    require("MC-2", content_hash_in=before % 2**128, content_hash_out=after % 2**128)


def _sum_of(table: pa.Table, columns: pa.Schema) -> int:
    for place, name in enumerate(table.column_names):
        if plain(table.schema.types[place]) != columns.field(name).type:
            table = table.set_column(place, name, table.column(place).cast(columns.field(name).type))
    return sum_of_rows(table, columns.names)


@pytest.fixture(name="compare_rows", scope="session")
def _compare_rows():
    return compare_rows
