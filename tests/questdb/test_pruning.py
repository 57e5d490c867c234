"""Row groups that conditions leave out: of columns that are shown as text, and of every column of golden tables."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import windrow
from windrow.databases import open_table
from windrow.engines.arrow import virtual_files
from windrow.engines.duckdb.questdb import scan_snapshot, snapshot_relation
from windrow.engines.selection import Selection
from windrow.questions.naming import Question
from windrow.sidecar.types import Tag

from .conditions import Conditions, answers
from .read_tables import WITH_ROWS, MadePartition, MetaColumn, copy_case, make_table, meta_bytes

DAY = int(datetime(2024, 5, 1, tzinfo=UTC).timestamp()) * 10**6
COLUMNS = [("u", Tag.UUID, pa.binary(16)), ("ip", Tag.IPV4, pa.uint32()), ("ch", Tag.CHAR, pa.uint16())]
AT_ONCE = 250


def uuid(number: int) -> str:
    return f"{number:08x}-0000-4000-8000-000000000000"


def made(folder, rows, **options):
    """A table of rows of a UUID, an address and a character, four to a row group."""
    meta = meta_bytes([MetaColumn("ts", Tag.TIMESTAMP), *(MetaColumn(name, tag) for name, tag, _ in COLUMNS)])
    values = {0: ("ts", Tag.TIMESTAMP, pa.array(range(DAY, DAY + len(rows)), pa.timestamp("us", "UTC")))}
    for place, (name, tag, kind) in enumerate(COLUMNS):
        values[place + 1] = (name, tag, pa.array([row[place] for row in rows], kind))
    return open_table(make_table(folder, meta, [MadePartition(DAY, values)], **options))


ROWS = [(UUID(uuid(16 * n)).bytes, (10 << 24) + 16 * n, 65 + 2 * n) for n in range(12)]
WITHOUT = [(None, None, 0), (None, 0, 0), (None, None, 0), (None, 0, 0)]
LARGE = [(b"\xf0" * 16, 0xF0000000 + n, 0xE000 + n) for n in range(4)]


@pytest.fixture(scope="module", params=[True, False], ids=["_pm", "footers"])
def table(request, tmp_path_factory):
    """Five row groups: three in order, one without values, one of great ones; with sidecars, or as before 9.4."""
    rows = [*ROWS, *WITHOUT, *LARGE]
    return made(tmp_path_factory.mktemp("made") / "t", rows, sidecars=request.param)


@pytest.mark.parametrize(
    ("condition", "row_groups", "rows"),
    [
        (f"u = '{uuid(16)}'", 1, 1),
        (f"u = '{uuid(1)}'", 1, 0),
        (f"u in ('{uuid(0)}', '{uuid(64)}', 'zz')", 2, 2),
        (f"u = '{uuid(160).upper()}'", 0, 0),
        ("u = 'no uuid'", 0, 0),
        ("u = ''", 0, 0),
        (f"u < '{uuid(64)}'", 1, 4),
        (f"u <= '{uuid(64)}'", 2, 5),
        (f"u > '{uuid(176)}'", 1, 4),
        ("u >= 'f'", 1, 4),
        ("u > 'g'", 0, 0),
        (f"u between '{uuid(65)}' and '{uuid(100)}'", 1, 2),
        ("u like '000000%'", 3, 12),
        ("u like 'f0f%'", 1, 4),
        ("u not like '000000%'", 1, 4),
        (f"u <> '{uuid(0)}'", 4, 15),
        ("u is null", 1, 4),
        ("u is not null", 4, 16),
        ("ip = '10.0.0.16'", 1, 1),
        ("ip = '10.0.0.1'", 1, 0),
        ("ip in ('10.0.0.16', '240.0.0.3', '1.1.1.1')", 2, 2),
        ("ip = '0.0.0.0'", 0, 0),
        ("ip = '010.0.0.16'", 0, 0),
        ("ip = '10.0.0.16 '", 0, 0),
        ("ip < '10.0.0.2'", 4, 7),
        ("ip <> '10.0.0.16'", 4, 15),
        ("ip is null", 1, 4),
        ("ip is not null", 4, 16),
        ("ch = 'A'", 1, 1),
        ("ch = 'B'", 1, 0),
        ("ch in ('A', 'U')", 2, 2),
        ("ch = 'AB'", 0, 0),
        ("ch = ''", 1, 4),
        ("ch <> ''", 4, 16),
        ("ch < 'B'", 2, 5),
        ("ch > 'Z'", 1, 4),
        ("ch like 'U%'", 1, 1),
        ("ch is null", 0, 0),
        ("ch is not null", 5, 20),
        (f"u = '{uuid(0)}' and ip = '10.0.0.64'", 0, 0),
        (f"u = '{uuid(0)}' or ch = 'Q'", 2, 2),
        ("not (u like '0%' or ip is null)", 1, 4),
    ],
)
def test_row_groups_that_cannot_match_are_not_read(table, condition, row_groups, rows):
    scan = table.scan(condition, ["ts"])
    assert scan.plan().rows == 4 * row_groups
    assert scan.count() == len(scan.to_arrow()) == rows


@pytest.mark.parametrize("condition", [f"u = '{uuid(64)}'", "ip = '10.0.0.64'", "ch in ('I', 'zz')"])
def test_sql_reads_what_scans_read(table, tmp_path, condition):
    query = f"select count(*) from questdb('{table.folder}') where {condition}"
    with windrow.connect(tmp_path / "lake") as lake:
        assert "1 of 5 row groups" in str(lake.explain(query))
        assert lake.sql(query).to_arrow().to_pydict() == {"count_star()": [1]}


@pytest.mark.parametrize(
    ("some", "none"),
    [
        (f"u = '{uuid(64)}'", f"u = '{uuid(65)}'"),
        (f"u in ('{uuid(64)}', '{uuid(65)}')", f"u in ('{uuid(65)}', '{uuid(66)}')"),
        ("ip = '10.0.0.64'", "ip = '10.0.0.65'"),
        ("ip = '240.0.0.2'", "ip in ('10.0.0.66', '10.0.0.67')"),
        ("ch = 'I'", "ch = 'J'"),
        ("ch = '\ue002'", "ch in ('J', 'L')"),
    ],
)
def test_bloom_filters_leave_out_values_between_the_bounds(tmp_path, some, none):
    table = made(tmp_path / "t", [*ROWS, *LARGE], blooms=["u", "ip", "ch"])
    assert (table.scan(some).plan().rows, table.scan(some).count()) == (4, 1)
    assert table.scan(none).plan().rows == 0


def test_a_bloom_filter_of_questdb_leaves_out_uuids(tmp_path):
    table = open_table(copy_case("blooms-0", tmp_path), native="skip")
    [value] = table.scan("ts = '2024-01-01T00:00:00'", ["u"]).to_arrow().to_pydict()["u"]
    groups = [table.scan(f"u = '{text}'").plan().rows for text in (value, value[:-1] + "0", value[:-1] + "1")]
    assert groups == [100, 0, 0]


def test_a_condition_on_a_column_that_was_text_leaves_nothing_out(tmp_path):
    """The file has other texts than the table: QuestDB converts them."""
    columns = [MetaColumn("ts", Tag.TIMESTAMP), MetaColumn("u", -Tag.VARCHAR), MetaColumn("u", Tag.UUID, 1)]
    values = {
        0: ("ts", Tag.TIMESTAMP, pa.array([DAY], pa.timestamp("us", "UTC"))),
        1: ("u", Tag.VARCHAR, pa.array([uuid(160).upper()])),
    }
    table = open_table(make_table(tmp_path / "t", meta_bytes(columns), [MadePartition(DAY, values)]))
    assert table.scan(f"u = '{uuid(160)}'").count() == 1


def test_engines_get_no_bounds_of_what_is_shown_otherwise(table):
    """They would take them for bounds of numbers and bytes of their own."""
    [virtual] = table.scan(f"u = '{uuid(16)}' and ip = '10.0.0.16' and ch = 'C'", ["ts"]).plan().virtual
    group = pq.read_metadata(pa.BufferReader(b"PAR1" + virtual.footer)).row_group(0)
    chunks = [group.column(place) for place in range(group.num_columns)]
    assert {each.path_in_schema: each.statistics is not None for each in chunks} == {
        "ts": True,
        "u": False,
        "ip": False,
        "ch": False,
    }


VALUES = st.tuples(
    st.none() | st.integers(0, 40).map(lambda n: UUID(uuid(n)).bytes) | st.binary(min_size=16, max_size=16),
    st.none() | st.integers(0, 40) | st.integers(0, 2**32 - 1),
    st.none() | st.integers(0, 130) | st.integers(0, 2**16 - 1) | st.sampled_from([0, 0xD800, 0xDFFF, 0xFFFD]),
)


@settings(max_examples=10)
@given(st.lists(VALUES, min_size=1, max_size=24), st.integers(0, 2**32), st.booleans())
def test_random_conditions_on_random_rows_select_what_they_select_of_all_rows(tmp_path_factory, rows, seed, filters):
    folder = tmp_path_factory.mktemp("random") / "t"
    table = made(folder, rows, blooms=["u", "ip", "ch"] if filters else [])
    check(table.snapshot(), 20, seed)


def check(snapshot, count: int, seed: int) -> tuple[int, int]:
    """Compare plans, and some scans, with a native table of all rows; how many row groups are read, of how many."""
    relation = snapshot_relation(snapshot)
    groups = [(place, rows) for virtual in relation.plan(Question()).virtual for place, rows in row_groups(virtual)]
    everything = comparable(scan_snapshot(snapshot).to_arrow(), [rows for _, rows in groups])
    conditions = list(Conditions(everything, seed, skip=["row", "row_group"], often="ts").take(count))
    read = 0
    context = scan_snapshot(snapshot).context
    for start in range(0, count, AT_ONCE):
        some = conditions[start : start + AT_ONCE]
        for condition, wanted in zip(some, answers(everything, some, "list(distinct row_group)"), strict=True):
            plan = virtual_files(Selection.of("t", relation, condition, ["ts"]), context).source.plan
            left = {place for virtual in plan.virtual for place, _ in row_groups(virtual)}
            assert {groups[number][0] for number in wanted or ()} <= left, condition
            read += len(left)
    some = conditions[:: 1 + count // 50]
    for condition, wanted in zip(some, answers(everything, some, "list(epoch_ns(ts) order by row)"), strict=True):
        found = scan_snapshot(snapshot, condition, ["ts"]).to_arrow()["ts"]
        assert found.cast(pa.timestamp("ns", "UTC")).cast(pa.int64()).to_pylist() == (wanted or []), condition
    return read, count * len(groups)


def row_groups(virtual) -> list[tuple[tuple[str, int], int]]:
    """The file and the number of each row group that is read, and its rows."""
    places = zip(virtual.placed.places.tolist(), virtual.placed.rows.tolist(), strict=True)
    return [((virtual.files[file].uri, group), rows) for (file, group, *_), rows in places]


def comparable(table: pa.Table, sizes: list[int]) -> pa.Table:
    """The columns that DuckDB can compare, in types that it has, and the numbers of each row and its row group."""
    kinds = pa.types
    left_out = [
        field.name
        for field in table.schema
        if kinds.is_decimal256(field.type) or kinds.is_binary(field.type) or kinds.is_list(field.type)
    ]
    table = table.drop_columns(left_out)
    for place, field in enumerate(table.schema):
        if field.type == pa.timestamp("ns", "UTC"):
            table = table.set_column(place, field.name, table.column(place).cast(pa.timestamp("ns")))
    numbers = np.repeat(np.arange(len(sizes)), sizes)
    return table.append_column("row", pa.array(range(len(table)))).append_column("row_group", pa.array(numbers))


@pytest.mark.parametrize("case", WITH_ROWS)
@pytest.mark.parametrize("count", [60, pytest.param(5_000, marks=pytest.mark.long)])
def test_random_conditions_on_golden_tables_select_what_they_select_of_all_rows(case, count, tmp_path):
    snapshot = open_table(copy_case(case, tmp_path), native="skip").snapshot()
    read, all_groups = check(snapshot, count, seed=count)
    assert read < 0.98 * all_groups
