"""Columns through renames, drops and changes of type; every unit of time; tables of every kind of writer."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

import windrow
from windrow.databases import open_table
from windrow.errors import Incompatible
from windrow.questdb.meta import PartitionUnit
from windrow.sidecar.types import decimal_type

from .read_tables import MadePartition, MetaColumn, make_table, meta_bytes

BOOLEAN, BYTE, SHORT, CHAR, INT, LONG, DATE, TIMESTAMP, FLOAT, DOUBLE = range(1, 11)
STRING, SYMBOL, LONG256, GEOBYTE, BINARY, UUID, IPV4, VARCHAR = 11, 12, 13, 14, 18, 19, 25, 26
GEOINT = 16
NANOS = TIMESTAMP | 1 << 18
UTC_US, UTC_NS, UTC_MS = (pa.timestamp(unit, "UTC") for unit in ("us", "ns", "ms"))
DAY = int(datetime(2024, 5, 1, tzinfo=UTC).timestamp()) * 10**6


def times(count: int, start: int = DAY, kind: pa.DataType = UTC_US) -> pa.Array:
    return pa.array([start + 1000 * place for place in range(count)], kind)


def partition(columns: dict, start: int = DAY, **options) -> MadePartition:
    count = len(next(iter(columns.values()))[2])
    return MadePartition(start, {0: ("ts", TIMESTAMP, times(count, start)), **columns}, **options)


def table_of(folder, columns, partitions, **options):
    meta = meta_bytes(columns, unit=options.get("unit", PartitionUnit.DAY))
    return open_table(make_table(folder / "t", meta, partitions, **options))


@pytest.mark.parametrize("sidecars", [True, False])
def test_columns_are_those_of_their_ids_whatever_their_names_were(tmp_path, sidecars):
    """The name `a` has stood for three columns; one file has the first two."""
    columns = [
        MetaColumn("ts", TIMESTAMP),
        MetaColumn("a", -INT),
        MetaColumn("a", LONG),
        MetaColumn("c", VARCHAR),
        MetaColumn("b", DOUBLE),
    ]
    before = partition({1: ("a", INT, pa.array([1, 2], pa.int32())), 2: ("b", LONG, pa.array([10, None], pa.int64()))})
    after = partition(
        {
            2: ("a", LONG, pa.array([30, 40], pa.int64())),
            3: ("c", VARCHAR, pa.array(["x", None])),
            4: ("b", DOUBLE, pa.array([0.5, 1.5])),
        },
        DAY + 86_400 * 10**6,
        name_txn=3,
    )
    table = table_of(tmp_path, columns, [before, after], sidecars=sidecars)
    assert table.scan(columns=["a", "c", "b"]).to_arrow().to_pylist() == [
        {"a": 10, "c": None, "b": None},
        {"a": None, "c": None, "b": None},
        {"a": 30, "c": "x", "b": 0.5},
        {"a": 40, "c": None, "b": 1.5},
    ]
    assert table.scan("a = 10").count() == table.scan("a = 30 and c = 'x'").count() == 1
    assert table.scan("a is null").count() == 1
    assert table.scan("a > 20").plan().rows == 2


def test_types_without_nulls_read_as_zero_where_a_file_lacks_them(tmp_path):
    added = [(f"c{kind}", kind) for kind in (BOOLEAN, BYTE, SHORT, CHAR, LONG256, INT, UUID, DATE, IPV4)]
    columns = [MetaColumn("ts", TIMESTAMP), *(MetaColumn(name, kind) for name, kind in added)]
    table = table_of(tmp_path, columns, [MadePartition(DAY, {0: ("ts", TIMESTAMP, times(1))})])
    [row] = table.scan(columns=[name for name, _ in added]).to_arrow().to_pylist()
    assert list(row.values()) == [False, 0, 0, "", "", None, None, None, None]
    assert table.scan("c2 = 0 and not c1 and c4 = ''").count() == 1


CONVERSIONS = [
    (INT, pa.array([1, None], pa.int32()), LONG, [1, None]),
    (INT, pa.array([1, 40_000], pa.int32()), SHORT, [1, 0]),
    (LONG, pa.array([7, 2**40], pa.int64()), INT, [7, None]),
    (DOUBLE, pa.array([1.9, -1.9]), LONG, [1, -1]),
    (FLOAT, pa.array([0.5, None], pa.float32()), DOUBLE, [0.5, None]),
    (SYMBOL, pa.array(["12", "1.5"]), INT, [12, None]),
    (VARCHAR, pa.array(["1.5", "x"]), DOUBLE, [1.5, None]),
    (STRING, pa.array(["a", None]), SYMBOL, ["a", None]),
    (SYMBOL, pa.array(["a", ""]), VARCHAR, ["a", ""]),
    (LONG, pa.array([12, None], pa.int64()), VARCHAR, ["12", None]),
    (BOOLEAN, pa.array([True, False]), VARCHAR, ["true", "false"]),
    (VARCHAR, pa.array(["TRUE", None]), BOOLEAN, [True, False]),
    (INT, pa.array([3, 0], pa.int32()), BOOLEAN, [True, False]),
    (VARCHAR, pa.array(["xyz", None]), CHAR, ["x", ""]),
    (CHAR, pa.array([65, 0], pa.uint16()), VARCHAR, ["A", ""]),
    (
        VARCHAR,
        pa.array(["E304EFE2-5589-4e79-b1ff-6db3da21293a", "?"]),
        UUID,
        ["e304efe2-5589-4e79-b1ff-6db3da21293a", None],
    ),
    (VARCHAR, pa.array(["10.0.0.1", "300.1.1.1"]), IPV4, ["10.0.0.1", None]),
    (IPV4, pa.array([0x0A000001, None], pa.uint32()), VARCHAR, ["10.0.0.1", None]),
    (TIMESTAMP, pa.array([1, None], UTC_US), VARCHAR, ["1970-01-01T00:00:00.000001Z", None]),
    (NANOS, pa.array([1, None], UTC_NS), VARCHAR, ["1970-01-01T00:00:00.000000001Z", None]),
    (DATE, pa.array([1, None], UTC_MS), STRING, ["1970-01-01T00:00:00.001Z", None]),
    (TIMESTAMP, pa.array([1500, None], UTC_US), LONG, [1500, None]),
    (LONG, pa.array([1500, None], pa.int64()), TIMESTAMP, [datetime(1970, 1, 1, 0, 0, 0, 1500, UTC), None]),
    (TIMESTAMP, pa.array([1500, None], UTC_US), DATE, [datetime(1970, 1, 1, 0, 0, 0, 1000, UTC), None]),
    (DATE, pa.array([15, None], UTC_MS), TIMESTAMP, [datetime(1970, 1, 1, 0, 0, 0, 15_000, UTC), None]),
    (VARCHAR, pa.array(["2024-05-01T01:00:00.000001Z", "x"]), TIMESTAMP, [datetime(2024, 5, 1, 1, 0, 0, 1, UTC), None]),
    (INT, pa.array([5, None], pa.int32()), decimal_type(9, 2), [Decimal("5.00"), None]),
]


@pytest.fixture(scope="module")
def lake(tmp_path_factory):
    with windrow.connect(tmp_path_factory.mktemp("columns") / "lake") as opened:
        yield opened


@pytest.mark.parametrize(("before", "values", "after", "wanted"), CONVERSIONS)
def test_a_file_keeps_its_type_and_its_values_are_converted(tmp_path, lake, before, values, after, wanted):
    columns = [MetaColumn("ts", TIMESTAMP), MetaColumn("v", -before), MetaColumn("w", INT), MetaColumn("v", after, 1)]
    table = table_of(tmp_path, columns, [partition({1: ("v", before, values)})])
    assert table.scan().schema.names == ["ts", "v", "w"]
    assert table.scan().to_arrow().column("v").to_pylist() == wanted
    kept = [value for value in wanted if value is not None]
    found = lake.sql(f"select v from questdb('{table.folder}') where v is not null").to_arrow()
    assert found.column("v").to_pylist() == kept
    for value in kept[:1]:
        assert table.scan(f"v = {_literal(value)}").count() == kept.count(value)


def _literal(value) -> str:
    if isinstance(value, Decimal):
        return str(value)
    return f"TIMESTAMPTZ '{value.isoformat()}'" if isinstance(value, datetime) else repr(value)


def test_nanoseconds_of_a_column_that_had_microseconds(tmp_path):
    columns = [MetaColumn("ts", TIMESTAMP), MetaColumn("v", -TIMESTAMP), MetaColumn("v", NANOS, 1)]
    table = table_of(tmp_path, columns, [partition({1: ("v", TIMESTAMP, pa.array([7, None], UTC_US))})])
    assert table.scan(columns=["v"]).to_arrow().column("v").cast(pa.int64()).to_pylist() == [7000, None]


def test_a_type_that_nothing_converts_is_refused_by_name(tmp_path):
    columns = [MetaColumn("ts", TIMESTAMP), MetaColumn("v", -BINARY), MetaColumn("v", INT, 1)]
    table = table_of(tmp_path, columns, [partition({1: ("v", BINARY, pa.array([b"x"]))})])
    with pytest.raises(Incompatible, match=r"2024-05-01: column 'v' is BINARY in the file and INT in the table"):
        table.scan()


GEOHASHES = [
    (GEOBYTE, 5, pa.int32(), [21, None], ["p", None]),
    (GEOBYTE, 3, pa.int32(), [5, 0], ["101", "000"]),
    (GEOINT, 30, pa.int32(), [337562625, None], ["b1xm01", None]),
]


@pytest.mark.parametrize(("tag", "bits", "kind", "values", "wanted"), GEOHASHES)
def test_geohashes_are_letters_or_bits(tmp_path, tag, bits, kind, values, wanted):
    code = tag | bits << 8 | 1 << 16
    columns = [MetaColumn("ts", TIMESTAMP), MetaColumn("g", code)]
    table = table_of(tmp_path, columns, [partition({1: ("g", code, pa.array(values, kind))})])
    assert table.scan().to_arrow().column("g").to_pylist() == wanted


@pytest.mark.parametrize(
    ("number", "wanted"), [(0, "0x00"), (1, "0x01"), (0x0ABC, "0x0abc"), (2**200, "0x01" + "00" * 25)]
)
def test_long256_is_written_as_questdb_writes_it(tmp_path, number, wanted):
    columns = [MetaColumn("ts", TIMESTAMP), MetaColumn("l", LONG256)]
    values = pa.array([number.to_bytes(32, "little")], pa.binary(32))
    table = table_of(tmp_path, columns, [partition({1: ("l", LONG256, values)})])
    assert table.scan().to_arrow().column("l").to_pylist() == [wanted]


def test_a_half_of_a_pair_of_utf16_is_no_character(tmp_path):
    columns = [MetaColumn("ts", TIMESTAMP), MetaColumn("c", CHAR)]
    table = table_of(tmp_path, columns, [partition({1: ("c", CHAR, pa.array([0xD83D, 0xE9], pa.uint16()))})])
    assert table.scan().to_arrow().column("c").to_pylist() == ["\ufffd", "é"]


@pytest.mark.parametrize(
    ("unit", "starts"),
    [
        (PartitionUnit.YEAR, ["2023-01-01", "2024-01-01"]),
        (PartitionUnit.MONTH, ["2023-12-01", "2024-01-01"]),
        (PartitionUnit.WEEK, ["2023-12-25", "2024-01-01"]),
        (PartitionUnit.HOUR, ["2023-12-31T23:00", "2024-01-01T00:00"]),
        (PartitionUnit.DAY, ["2024-01-01", "2024-01-01T10:00:00.000001"]),
    ],
)
@pytest.mark.parametrize("ticks", [10**6, 10**9])
def test_every_unit_of_partitions_and_of_time(tmp_path, unit, starts, ticks):
    kind, code = (UTC_US, TIMESTAMP) if ticks == 10**6 else (UTC_NS, NANOS)
    moments = [datetime.fromisoformat(text).replace(tzinfo=UTC) for text in starts]
    low = [
        int((each - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds() * 10**6) * (ticks // 10**6) for each in moments
    ]
    made = [MadePartition(at, {0: ("ts", code, times(3, at, kind))}) for at in low]
    table = table_of(tmp_path, [MetaColumn("ts", code)], made, unit=unit, ticks_per_second=ticks)
    found = table.scan().to_arrow().column("ts")
    assert found.type == kind
    assert found.cast(pa.int64()).to_pylist() == [at + 1000 * place for at in low for place in range(3)]
    assert table.scan(f"ts >= TIMESTAMPTZ '{moments[1].isoformat()}'").count() == 3


def test_a_table_without_rows_has_its_columns(tmp_path):
    columns = [MetaColumn("ts", TIMESTAMP), MetaColumn("d", decimal_type(60, 3)), MetaColumn("s", SYMBOL)]
    table = table_of(tmp_path, columns, [])
    assert table.scan().to_arrow().schema == pa.schema(
        [("ts", UTC_US), ("d", pa.decimal256(60, 3)), ("s", pa.string())]
    )
    assert table.scan("s = 'a'").count() == 0
