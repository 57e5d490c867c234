"""A scan gives the rows that a plain table with the same rows gives, to whichever engine asks."""

from __future__ import annotations

import gc
import os
import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import duckdb
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windrow.errors import InvalidInput, NotFound, SnapshotExpired
from windrow.model.predicate import And, Between, Comparison, In, IsNull, Not, Op, Or, StartsWith, matches

from .worlds import NOON, SORT, connect, fill, plain, points, told

ENGINES = {
    "arrow": lambda scan: scan.to_arrow(),
    "a stream": pa.table,
    "polars": lambda scan: scan.to_polars().collect().to_arrow(),
    "duckdb": lambda scan: scan.to_duckdb().to_arrow_table(),
}
COLUMNS = ["metric_name", "host", "timestamp", "value", "number", "price", "day", "seen", "attributes", "on", "zone"]
COLUMNS += ["blob", "clock", "rack"]


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    folder = tmp_path_factory.mktemp("scan")
    with connect({"url": str(folder / "lake")}) as lake:
        rows = plain(fill(lake, folder))
        yield lake.table("metrics"), rows


@pytest.fixture(scope="module")
def oracle(world):
    """Answers over a native table of DuckDB."""
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    connection.register("given", world[1])
    connection.execute("create table metrics as select * from given")
    return lambda where, columns: connection.sql(
        f"select {columns} from metrics" + (f" where {where}" if where else "")
    ).to_arrow_table()


def quoted(columns):
    return ", ".join(f'"{name}"' for name in columns)


@pytest.mark.parametrize("engine", ENGINES)
def test_without_a_condition_all_rows_come(world, oracle, engine):
    table, _ = world
    found = ENGINES[engine](table.scan(columns=COLUMNS))
    assert told(found, COLUMNS) == told(oracle("", quoted(COLUMNS)), COLUMNS)


def test_all_columns_are_those_of_a_query(world):
    table, rows = world
    scan = table.scan()
    assert set(scan.schema.names) == {*rows.column_names, "timeseries_id"}
    assert scan.to_arrow().schema == scan.schema
    assert scan.schema.field("number").type == pa.int64()
    assert scan.schema.field("timestamp").type == pa.timestamp("ns", "UTC")
    assert scan.schema.field("clock").type == pa.time32("ms")


TESTS = st.sampled_from(
    [
        "metric_name = 'metric_3'",
        "metric_name like '%_4'",
        "host is null",
        "host in ('h1', 'h2', null)",
        "length(host) + 1 > 2",
        "value > 0.5",
        "value * 2 < -0.5",
        "isnan(value)",
        "value >= number",
        "number between -20 and 1000000000000",
        "number % 3 = 1",
        "price > 12.5",
        "price is null",
        "day = date '2024-04-13'",
        "date_trunc('month', day) = date '2024-05-01'",
        "timestamp >= '2024-05-01 12:20:00'",
        "timestamp < timestamptz '2024-05-01 12:10:00+00'",
        "timestamp < now()",
        "date_trunc('minute', \"timestamp\"::timestamptz) = timestamptz '2024-05-01 12:31:00+00'",
        "seen > timestamp '2024-05-01 12:01:00'",
        '"on"',
        "zone = 'z1'",
        "zone <> 'z2' or rack = 'r3'",
        "metrics.rack is not null",
        "clock > time '12:00:00'",
        "blob = '\\x05'::blob",
        "host is distinct from 'h3'",
        "greatest(value, 0) > 0.2 -- in words",
    ]
)
CONDITIONS = st.recursive(
    TESTS.map(lambda test: test if "--" not in test else f"({test}\n)"),
    lambda part: st.one_of(
        st.tuples(part, part).map(lambda both: f"({both[0]}) and ({both[1]})"),
        st.tuples(part, part).map(lambda both: f"({both[0]}) or ({both[1]})"),
        part.map(lambda each: f"not ({each})"),
    ),
    max_leaves=4,
)


def fine(where):
    """The condition as DuckDB itself takes it: it compares instants of nanoseconds with nothing but the same."""
    return re.sub(
        r"timestamp < (.*?)(?=\)|$)", r"timestamp < (\1)::timestamptz_ns", where.replace("now()", "current_timestamp")
    )


@settings(max_examples=settings.default.max_examples // 2)
@given(where=CONDITIONS, columns=st.lists(st.sampled_from(COLUMNS), min_size=1, unique=True))
def test_any_condition_selects_the_rows_that_it_selects_of_a_plain_table(world, oracle, where, columns):
    table, _ = world
    wanted = told(oracle(fine(where), quoted(columns)), columns)
    scan = table.scan(where, columns)
    assert scan.count() == len(wanted)
    for engine, read in ENGINES.items():
        assert told(read(scan), columns) == wanted, engine


PREDICATES = st.recursive(
    st.sampled_from(
        [
            Comparison("metric_name", Op.EQUAL, "metric_1"),
            Comparison("value", Op.GREATER, 0.25),
            Comparison("value", Op.LESS_OR_EQUAL, float("nan")),
            Comparison("value", Op.NOT_EQUAL, 0.25),
            Comparison("number", Op.LESS, 2**40),
            Comparison("price", Op.GREATER_OR_EQUAL, Decimal("1.25")),
            Comparison("timestamp", Op.GREATER, NOON + timedelta(minutes=7)),
            Comparison("on", Op.EQUAL, value=True),
            Comparison("blob", Op.LESS, b"\x20'"),
            Between("day", NOON.date() - timedelta(days=20), NOON.date()),
            In("host", ("h1", "it's", "h5")),
            In("host", ()),
            IsNull("zone"),
            StartsWith("zone", "z"),
            And(()),
        ]
    ),
    lambda part: st.one_of(
        part.map(Not),
        st.lists(part, max_size=3).map(lambda parts: And(tuple(parts))),
        st.lists(part, max_size=3).map(lambda parts: Or(tuple(parts))),
    ),
    max_leaves=5,
)


@given(predicate=PREDICATES)
def test_a_predicate_selects_the_rows_that_it_matches(world, predicate):
    table, rows = world
    columns = ["metric_name", "timestamp"]
    # Python's times are no finer than this, and the predicates that are asked here do not need more.
    values = rows.set_column(2, "timestamp", rows["timestamp"].cast(pa.timestamp("us", "UTC"), safe=False)).to_pylist()
    wanted = rows.filter(pa.array([matches(predicate, row) for row in values]))
    assert told(table.scan(predicate, columns).to_arrow(), columns) == told(wanted, columns)


class TestPolars:
    CONDITIONS = (
        pl.col("metric_name") == "metric_3",
        pl.lit("metric_3") > pl.col("metric_name"),
        pl.col("value") > 0.5,
        ~(pl.col("value") <= 0.5),
        pl.col("value").is_nan(),
        pl.col("number") >= 2**40,
        pl.col("timestamp") >= NOON + timedelta(minutes=20),
        pl.col("host").is_in(["h1", "h7"]),
        pl.col("host").is_null() | pl.col("zone").str.starts_with("z1"),
        pl.col("day").is_between(NOON.date(), NOON.date() + timedelta(days=3)),
        pl.col("price") > Decimal("3.5"),
        pl.col("host").str.len_chars() == 2,
        pl.col("on"),
        pl.col("rack") == "r1",
    )

    @given(picked=st.lists(st.sampled_from(range(len(CONDITIONS))), min_size=1, max_size=3), either=st.booleans())
    def test_conditions_that_polars_adds_select_what_they_do_of_plain_rows(self, world, picked, either):
        table, rows = world
        condition = self.CONDITIONS[picked[0]]
        for each in picked[1:]:
            condition = condition | self.CONDITIONS[each] if either else condition & self.CONDITIONS[each]
        wanted = pl.DataFrame(rows.drop_columns("attributes")).filter(condition).to_arrow()
        found = table.scan().to_polars().filter(condition).select("host", "timestamp", "value").collect().to_arrow()
        assert told(found, found.column_names) == told(wanted, found.column_names)

    def test_columns_and_conditions_reach_the_plan(self, world, monkeypatch):
        table, _ = world
        asked = []
        scan = table.scan()
        plan = scan.selection.relation.plan
        object.__setattr__(scan.selection.relation, "plan", lambda question: asked.append(question) or plan(question))
        frame = scan.to_polars().filter(pl.col("metric_name") == "metric_3", pl.col("value").sqrt() > 0).select("host")
        frame.collect()
        assert asked[0].columns == ("metric_name", "host", "value")
        assert asked[0].predicate == Comparison("metric_name", Op.EQUAL, "metric_3")

    def test_rows_are_counted_and_cut(self, world):
        table, rows = world
        frame = table.scan().to_polars()
        assert frame.select(pl.len()).collect().item() == rows.num_rows
        assert len(frame.head(7).collect()) == 7

    def test_a_frame_can_be_collected_again_and_by_streaming(self, world):
        table, _ = world
        frame = table.scan("value > 0").to_polars().group_by("metric_name").agg(pl.col("number").sum())
        first = frame.collect().sort("metric_name")
        assert frame.collect(engine="streaming").sort("metric_name").equals(first)


class TestDuckDB:
    def test_a_relation_outlives_the_scan_and_those_that_it_came_from(self, world):
        table, rows = world
        relation = table.scan("value is not null").to_duckdb().filter("value < 0").aggregate("count(*)")
        gc.collect()
        values = [value for value in rows["value"].to_pylist() if value is not None]
        assert relation.fetchall() == [(sum(value < 0 for value in values),)]

    def test_scans_join_on_a_connection_of_the_user(self, world):
        table, _ = world
        connection = duckdb.connect()
        connection.execute("SET TimeZone = 'UTC'")
        highest = table.scan("host = 'h1'", ["metric_name", "value"]).to_duckdb(connection)
        names = table.scan(columns=["metric_name"]).to_duckdb(connection.cursor())
        assert highest.fetchall()
        assert names.fetchall()
        view = highest.query("points", "select count(*) from points join points as others using (metric_name)")
        assert view.fetchall()[0][0] > 0

    def test_a_condition_on_a_connection_of_another_time_zone_is_refused(self, world):
        table, _ = world
        connection = duckdb.connect()
        connection.execute("SET TimeZone = 'Europe/Berlin'")
        with pytest.raises(InvalidInput, match="SET TimeZone = 'UTC'"):
            table.scan("timestamp > '2024-05-01'").to_duckdb(connection)
        assert table.scan().to_duckdb(connection).aggregate("count(*)").fetchall()


class TestBadQuestions:
    @pytest.mark.parametrize(
        ("where", "problem"),
        [
            ("nothing = 1", 'column "nothing" not found'),
            ("value = 1) or (1 = 1", "cannot be read"),
            ("value = 1 order by host", "more than a condition"),
            ("value > (select max(value) from metrics)", "use lake.sql"),
            ("list_sum(value) > 1", "cannot be asked"),
            (7, "give the text of a condition, or a Predicate"),
        ],
    )
    def test_what_is_no_condition_is_refused_before_anything_is_read(self, world, where, problem):
        with pytest.raises(InvalidInput, match=re.escape(problem)):
            world[0].scan(where)

    def test_a_value_that_cannot_be_compared_is_named_by_the_first_read(self, world):
        with pytest.raises(InvalidInput, match="scan of 'metrics' failed: .*'many'"):
            world[0].scan("value = 'many'").to_arrow()

    def test_unknown_columns_are_named_with_the_nearest(self, world):
        with pytest.raises(InvalidInput, match="no column 'hots'; did you mean 'host'"):
            world[0].scan(columns=["hots"])

    @pytest.mark.parametrize("columns", [[], ["host", "HOST"], "host"])
    def test_columns_are_a_list_of_different_names(self, world, columns):
        with pytest.raises(InvalidInput, match="scan of 'metrics'"):
            world[0].scan(columns=columns)

    def test_names_are_found_whatever_their_case(self, world):
        assert world[0].scan("HOST = 'h1'", ["Value"]).schema.names == ["value"]


class TestVersions:
    @pytest.fixture
    def lake(self, tmp_path):
        with connect({"url": str(tmp_path / "lake")}) as lake:
            lake.create_table("metrics", sort=SORT, timestamp_precision="ns").ingest(points(1, 50))
            yield lake

    def test_a_scan_is_of_the_version_that_was_the_newest(self, lake):
        table = lake.table("metrics")
        before = table.scan()
        table.ingest(points(2, 30, zone=pa.array(["z"] * 30)))
        assert (before.count(), before.to_arrow().num_rows, table.scan().count()) == (50, 50, 80)
        assert "zone" not in before.schema.names

    def test_an_older_version_is_scanned_by_number_and_by_time(self, lake):
        table = lake.table("metrics")
        moment = lake.context.now()
        table.ingest(points(2, 30))
        assert table.at(version=1).scan("value is null or value is not null").to_arrow().num_rows == 50
        assert table.at(timestamp=moment).scan().count() == 50
        when = datetime.fromtimestamp(moment / 10**6, UTC)
        assert table.at(timestamp=when).version() == table.at(timestamp=when.replace(tzinfo=None)).version() == 1

    def test_an_older_version_is_asked_by_a_query_beside_the_newest_of_other_tables(self, lake):
        table = lake.table("metrics")
        lake.create_table("others", sort=SORT, timestamp_precision="ns").ingest(points(7, 20))
        table.ingest(points(2, 30, zone=pa.array(["z"] * 30)))
        query = "select (select count(*) from metrics) as old, (select count(*) from others) as new"
        assert table.at(version=1).sql(query).to_dict() == [{"old": 50, "new": 20}]
        assert table.sql("select count(*) as n from metrics where zone = 'z'").to_dict() == [{"n": 30}]
        with pytest.raises(InvalidInput, match="zone"):
            table.at(version=1).sql("select zone from metrics")

    def test_a_scan_that_is_read_holds_its_version(self, lake):
        table = lake.table("metrics")
        batches = iter(table.scan().to_reader())
        relation = table.scan().to_duckdb()
        for seed in range(4):
            table.ingest(points(seed, 50))
        table.compact.run()
        table.upkeep.gc.run(grace=0)
        assert sum(batch.num_rows for batch in batches) == 50
        assert relation.aggregate("count(*)").fetchall() == [(50,)]

    def test_a_scan_that_is_not_read_holds_nothing_and_its_snapshot_expires(self, lake):
        table = lake.table("metrics")
        scan = table.scan()
        for seed in range(4):
            table.ingest(points(seed, 50))
        table.compact.run()
        table.upkeep.gc.run(grace=0)
        for read in (scan.to_arrow, scan.count, scan.to_duckdb):
            with pytest.raises(SnapshotExpired, match="snapshot expired"):
                read()

    def test_the_moment_in_a_condition_is_that_of_the_scan(self, lake):
        scan = lake.table("metrics").scan("timestamp < now() and timestamp < current_timestamp - interval 1 day")
        assert "now(" not in scan.selection.where
        assert "current" not in scan.selection.where.lower()
        assert scan.count() == 50

    def test_a_missing_file_is_an_error_that_names_it(self, lake, tmp_path):
        scan = lake.table("metrics").scan()
        for path in (tmp_path / "lake" / "metrics").rglob("*.parquet"):
            path.unlink()
        with pytest.raises(NotFound, match=r"\.parquet"):
            scan.to_arrow()

    def test_a_stream_that_is_dropped_lets_go_of_its_files(self, lake, tmp_path):
        for _ in range(20):
            next(iter(lake.table("metrics").scan().to_reader()))
            lake.table("metrics").scan().to_reader()
        gc.collect()
        opened = [os.path.realpath(each) for each in Path("/proc/self/fd").iterdir()]
        assert not [path for path in opened if path.startswith(str(tmp_path)) and path.endswith(".parquet")]
