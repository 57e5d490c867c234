"""Files that say what a column means by its logical type alone are read as that, by every engine."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import windrow
from windrow.parquet import footer_grammar as g
from windrow.parquet import thrift as t
from windrow.parquet.footer import TAIL_SIZE, parse_footer

_BYTE = 3
TAGS = {name: tag for tag, name in g.LOGICAL_TYPES.items()}
COLUMNS = {
    "u8": pa.array([1, 200, None], pa.uint8()),
    "u16": pa.array([1, 60_000, None], pa.uint16()),
    "u32": pa.array([1, 3_232_235_777, None], pa.uint32()),
    "u64": pa.array([1, 2**64 - 1, None], pa.uint64()),
    "i8": pa.array([1, -100, None], pa.int8()),
    "i16": pa.array([1, -30_000, None], pa.int16()),
    "text": pa.array(["a", "ä", None]),
    "day": pa.array([date(2026, 1, 1), date(1969, 1, 1), None]),
    "price": pa.array([Decimal("1.50"), Decimal("-2.25"), None], pa.decimal128(9, 2)),
    "list": pa.array([[1, 2], [], None], pa.list_(pa.int64())),
    "tags": pa.array([[("a", 1)], [], None], pa.map_(pa.string(), pa.int64())),
}


def _logical(meaning):
    if meaning.name == "INTEGER":
        body = t.struct(t.Field(1, _BYTE, bytes([meaning.bit_width])), t.boolean(2, value=meaning.is_signed))
    elif meaning.name == "DECIMAL":
        body = t.struct(t.i32(1, meaning.scale), t.i32(2, meaning.precision))
    else:
        body = t.struct()
    return t.nested(10, t.struct(t.nested(TAGS[meaning.name], body)))


def _element(element):
    """An element with its logical type and no converted one."""
    numbers = {1: element.physical_type, 2: element.type_length, 3: element.repetition, 5: element.num_children}
    fields = [t.i32(field, int(value)) for field, value in numbers.items() if value is not None]
    fields += [t.binary(4, element.name.encode()), _logical(element.logical_type)]
    return t.struct(*sorted(fields, key=lambda field: field.id))


def without_converted_types(path, table):
    """Write a file as a writer does that leaves converted types out."""
    pq.write_table(table, path, store_schema=False)
    data = path.read_bytes()
    length = int.from_bytes(data[-TAIL_SIZE:-4], "little")
    metadata = data[-TAIL_SIZE - length : -TAIL_SIZE]
    footer = parse_footer(metadata, name=str(path))
    places = footer.element_positions.tolist()
    for at in reversed(range(1, len(footer.schema))):
        if footer.schema[at].logical_type is not None and footer.schema[at].logical_type.name != "TIMESTAMP":
            metadata = metadata[: places[at]] + _element(footer.schema[at]) + metadata[places[at + 1] :]
    path.write_bytes(data[: -TAIL_SIZE - length] + metadata + len(metadata).to_bytes(4, "little") + b"PAR1")


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("logical") / "x.parquet"
    without_converted_types(path, pa.table(COLUMNS))
    return path


@pytest.fixture(scope="module")
def lake(tmp_path_factory):
    with windrow.connect(tmp_path_factory.mktemp("lake"), cache=None) as opened:
        yield opened


def test_duckdb_alone_takes_a_column_of_uint_32_for_signed(file):
    assert duckdb.sql(f"select u32 from '{file}' limit 1 offset 1").fetchall() == [(3_232_235_777 - 2**32,)]


@pytest.mark.parametrize("name", COLUMNS)
def test_a_column_is_what_pyarrow_reads(lake, file, name):
    expected = pq.read_table(file, columns=[name])
    assert expected.column(0).to_pylist() == COLUMNS[name].to_pylist()
    found = lake.sql(f"select {name} from '{file}'").to_arrow()
    assert found.column(0).to_pylist() == expected.column(0).to_pylist()
    assert found.schema.field(0).type in (expected.schema.field(0).type, pa.large_string()) or name in ("list", "tags")


@pytest.mark.parametrize(
    ("condition", "rows"),
    [
        ("u32 = 3232235777", 1),
        ("u32 > 2147483648", 1),
        ("u32 < 0", 0),
        ("u32 in (1, 3232235777)", 2),
        ("u64 = 18446744073709551615", 1),
        ("u8 between 100 and 255", 1),
        ("price < 0", 1),
        ("day < date '1970-01-01'", 1),
        ("text = 'ä'", 1),
    ],
)
def test_conditions_find_their_rows(lake, file, condition, rows):
    assert lake.sql(f"select count(*) as n from '{file}' where {condition}").to_dict() == [{"n": rows}]
    assert len(lake.sql(f"select * from '{file}' where {condition}").to_dict()) == rows


def test_a_file_is_not_handed_over_by_its_path_where_it_would_be_misread(lake, tmp_path, monkeypatch):
    from windrow.reading import plain_paths

    monkeypatch.setattr(plain_paths, "_LARGE", 0)
    pq.write_table(pa.table({"u32": COLUMNS["u32"]}), tmp_path / "a.parquet", store_schema=False)
    without_converted_types(tmp_path / "b.parquet", pa.table({"u32": COLUMNS["u32"]}))
    for name, rows in (("a", 1), ("b", 1), ("*", 2)):
        found = lake.sql(f"select u32 from '{tmp_path}/{name}.parquet' where u32 > 1").to_dict()
        assert found == [{"u32": 3_232_235_777}] * rows


def test_a_registered_file_is_read_so_too(tmp_path):
    times = pa.array([0, 1, 2], pa.timestamp("us", "UTC"))
    without_converted_types(tmp_path / "x.parquet", pa.table({"ip": COLUMNS["u32"], "timestamp": times}))
    with windrow.connect(tmp_path / "lake", cache=None) as lake:
        table = lake.create_table("hits", sort="timestamp/V2", mirror=False)
        table.register.run(str(tmp_path / "x.parquet"))
        assert lake.sql("select max(ip) as ip, typeof(max(ip)) as t from hits").to_dict() == [
            {"ip": 3_232_235_777, "t": "UINTEGER"}
        ]
        assert lake.sql("select ip from hits where ip > 2147483647").to_dict() == [{"ip": 3_232_235_777}]
        assert table.scan(where="ip = 3232235777").to_arrow().num_rows == 1
        assert table.scan(where="ip = 3232235777").to_polars().collect()["ip"].to_list() == [3_232_235_777]
