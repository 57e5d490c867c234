"""Rows that are gathered out of what is kept decoded are those that an engine finds in the virtual file."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.proofs.worlds import compact, visible

import windrow
from windrow.cache import CacheSettings
from windrow.engines.table_relation import scan_context
from windrow.planning.table_plans import plan_table
from windrow.questions.naming import Question
from windrow.questions.where import parse_where
from windrow.reading.cells import Cells
from windrow.reading.decoded_rows import decoded_rows
from windrow.reading.read_context import ReadContext
from windrow.reading.virtual_reader import VirtualReader
from windrow.storage.handles import Handle

START = datetime(2026, 1, 1, tzinfo=UTC)
COLUMNS = ("metric_name", "host", "timestamp", "value", "reading", "count", "small", "single", "local", "price", "rate")


def batch(seed, rows, metrics):
    """Rows with nulls, NaN, and texts that repeat or do not."""
    random = np.random.default_rng(seed)
    times = [START + timedelta(seconds=float(each)) for each in np.sort(random.uniform(0, 1800, rows))]
    values = random.normal(size=rows)
    values[::9] = math.nan
    nothing = random.random(rows) < 0.2
    rates = np.random.default_rng(seed).integers(-9, 9, rows)
    return pa.table(
        {
            "metric_name": [f"metric_{n}" for n in random.integers(0, metrics, rows)],
            "host": pa.array([f"hôst {n}" for n in random.integers(0, 10**6, rows)], mask=nothing),
            "timestamp": pa.array(times, pa.timestamp("us", "UTC")),
            "value": values,
            "reading": pa.array(values, mask=random.random(rows) < 0.1),
            "count": pa.array(random.integers(-9, 9, rows), pa.int64(), mask=random.random(rows) < 0.1),
            "small": pa.array(random.integers(-9, 9, rows), pa.int32()),
            "single": pa.array(values, pa.float32(), mask=nothing),
            "local": pa.array(random.integers(0, 10**15, rows), pa.timestamp("us")),
            "price": pa.array(random.integers(-400, 400, rows)).cast(pa.decimal128(21, 0)).cast(pa.decimal128(12, 2)),
            "rate": pa.array([Decimal(int(n)) * 10**15 for n in rates], pa.decimal128(38, 3), mask=nothing),
            "exact": pa.array([True] * rows),
        }
    )


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """Small files, and one that was merged and has several granules."""
    folder = tmp_path_factory.mktemp("gathering")
    with windrow.connect(folder / "lake", cache=CacheSettings(folder=folder / "cache")) as lake:
        made = lake.create_table("metrics", sort="metric_name|timestamp/V2", window="15m", mirror=False)
        made.ingest(batch(0, 24_000, 40))
        made.ingest(batch(1, 20_000, 40))
        compact(made, [each for each in visible(made) if each.window.start == int(START.timestamp())])
        for seed in range(2, 6):
            made.ingest(batch(seed, 300, 5))
        made.ingest(batch(6, 50, 5).drop_columns(["count"]))
        yield made


@pytest.fixture(scope="module")
def cells():
    return Cells(2**28)


def planned(table, where, columns=COLUMNS):
    predicate = None if where is None else parse_where(where)
    record, context = table.record(), scan_context(table.context)
    plan = plan_table(
        context,
        table.context.metastore,
        record,
        record.version,
        Question(columns, predicate),
        listed=table.context.listed,
    )
    return plan.virtual, predicate


def as_read(table, virtual):
    with VirtualReader(virtual, ReadContext(table.context.url, table.context.store)) as reader:
        return pq.ParquetFile(Handle(reader)).read()


@pytest.fixture(scope="module")
def engine():
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        yield connection


def differing(engine, one, other, where):
    """How many rows an engine selects of one table and not of the other, either way; NaN is like NaN to it."""
    engine.register("one", one)
    engine.register("other", other)
    first, second = (f"(select * from {name} where {where or 'true'})" for name in ("one", "other"))
    query = f"select count(*) from (({first} except all {second}) union all ({second} except all {first}))"
    return engine.execute(query).fetchall()[0][0]


def moment(seconds):
    return f"timestamptz '{START + timedelta(seconds=seconds):%Y-%m-%d %H:%M:%S}+00'"


TESTS = st.one_of(
    st.integers(0, 41).map("metric_name = 'metric_{}'".format),
    st.integers(0, 41).map("metric_name >= 'metric_{}'".format),
    st.lists(st.integers(0, 41), min_size=1, max_size=3).map(
        lambda found: f"metric_name in ({', '.join(repr(f'metric_{n}') for n in found)})"
    ),
    st.just("host like 'hôst%'"),
    st.just("(metric_name = 'metric_1' or metric_name = 'metric_7')"),
    st.just("(metric_name = 'metric_1' or count = 3)"),
    st.just("metric_name <> 'metric_1'"),
    st.just("host is null"),
    st.just("host is not null"),
    st.integers(0, 1800).map(lambda at: f"timestamp >= {moment(at)} and timestamp < {moment(at + 120)}"),
    st.integers(0, 1800).map(lambda at: f"timestamp between {moment(at)} and {moment(at + 60)}"),
    st.integers(-10, 10).map("count > {}".format),
    st.integers(-10, 10).map("small = {}".format),
    st.just("count in (1, 2, 3)"),
    st.sampled_from(
        ["reading > 0.5", "reading <= 0.5", "reading is null", "count is null", "single = 0.1", "value < -1"]
    ),
    st.integers(-9, 9).map("rate >= {}000000000000000".format),
    st.sampled_from(["price > 1.25", "price = -3", "price in (1, 2.00, 3.001)", "price between -1.5 and 99"]),
    st.just("single < 0"),
)
CONDITIONS = st.lists(TESTS, min_size=1, max_size=3).map(" and ".join)


def plain(schema):
    """Columns whose texts are in a dictionary, as those of texts that they are to an engine."""
    kinds = [each.type.value_type if pa.types.is_dictionary(each.type) else each.type for each in schema]
    return pa.schema([each.with_type(kind) for each, kind in zip(schema, kinds, strict=True)])


@settings(max_examples=40, deadline=None)
@given(where=st.none() | CONDITIONS, columns=st.sets(st.sampled_from(COLUMNS), min_size=1), is_new=st.booleans())
def test_an_engine_selects_the_same_of_what_is_gathered_as_of_the_file(engine, table, cells, where, columns, is_new):
    cells = Cells(2**28) if is_new else cells
    asked = tuple(name for name in COLUMNS if name in columns or (where and name in where))
    virtual, predicate = planned(table, where, asked)
    for each in virtual:
        gathered = decoded_rows(cells, each, predicate, anyway=True)
        assert (gathered is None) == (not each.rows)
        if gathered is not None:
            rows = as_read(table, each)
            if set(rows.column_names) != set(asked):
                continue  # files that lack a column, which the table's view adds
            assert plain(gathered.table.schema) == rows.schema.remove_metadata()
            assert gathered.table.num_rows <= rows.num_rows
            assert differing(engine, gathered.table, rows, where) == 0


WHERE = "metric_name = 'metric_3' and timestamp < timestamptz '2026-01-01 00:05:00+00'"


def test_rows_that_cannot_matter_are_left_out(engine, table, cells):
    (virtual,), predicate = planned(table, WHERE)
    gathered = decoded_rows(cells, virtual, predicate) or decoded_rows(cells, virtual, predicate)
    assert differing(engine, gathered.table, as_read(table, virtual), WHERE) == 0
    assert differing(engine, gathered.table, as_read(table, virtual), None) == virtual.rows - len(gathered.table)
    assert 0 < len(gathered.table) < virtual.rows / 10


def test_what_was_decoded_once_is_not_read_again(engine, table):
    cells = Cells(2**28)
    (virtual,), predicate = planned(table, WHERE)
    assert decoded_rows(cells, virtual, predicate) is None  # nobody asked about these files before
    first, second = decoded_rows(cells, virtual, predicate), decoded_rows(cells, virtual, predicate)
    assert first.counts.bytes > 0
    assert first.counts.cache_hits == 0
    assert second.counts == (0, 0, 0, virtual.row_groups)
    assert 0 < cells.weight < 2**24
    assert differing(engine, first.table, second.table, None) == 0


def test_more_than_may_be_kept_is_let_go_and_kept_again(engine, table):
    cells = Cells(1000)
    (virtual,), predicate = planned(table, WHERE)
    found = [decoded_rows(cells, virtual, predicate) for _ in range(3)]
    assert differing(engine, found[1].table, found[2].table, None) == 0
    assert found[2].counts == found[1].counts
    assert cells.weight == 0


def test_types_of_which_an_engine_could_make_something_else_are_left_to_it(table, cells):
    (virtual,), predicate = planned(table, WHERE, ("metric_name", "timestamp", "exact"))
    assert [decoded_rows(cells, virtual, predicate) for _ in range(2)] == [None, None]


def test_files_that_are_gone_or_damaged_are_left_to_whoever_can_say_so(table):
    cells = Cells(2**28)
    (virtual,), predicate = planned(table, WHERE)
    decoded_rows(cells, virtual, predicate)
    store = virtual.files[virtual.segments[0].file].store
    path = store.path(virtual.files[virtual.segments[0].file].key)
    kept = path.read_bytes()
    try:
        path.write_bytes(bytes(len(kept)))
        assert decoded_rows(cells, virtual, predicate) is None
        path.unlink()
        assert decoded_rows(cells, virtual, predicate) is None
    finally:
        path.write_bytes(kept)
    assert decoded_rows(cells, virtual, predicate) is not None
