"""Spark reads a table by its own words: spark.read with the format `windrow`."""

from __future__ import annotations

import math
from datetime import timedelta
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.errors import PySparkException
from pyspark.sql import datasource
from tests.engines.worlds import NOON, SORT, connect, fill, plain, points, told

from pyspark_windrow.options import ReadOptions
from windrow.errors import InvalidInput
from windrow.model.predicate import And, Comparison, Op, matches
from windrow.questions.spark_filters import spark_filters_to_predicate

PUSHDOWN = "spark.sql.python.filterPushdown.enabled"
COLUMNS = ["metric_name", "host", "timestamp", "value", "number", "price", "zone", "rack", "attributes"]


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    folder = tmp_path_factory.mktemp("source")
    with connect({"url": str(folder / "lake")}) as lake:
        rows = plain(fill(lake, folder))
        yield lake.table("metrics"), rows


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
class TestReads:
    @pytest.fixture
    def pushing(self, spark):
        spark.conf.set(PUSHDOWN, "true")
        yield
        spark.conf.unset(PUSHDOWN)

    @staticmethod
    def read(spark, table, **options):
        return spark.read.format("windrow").options(table="metrics", **options).load(table.context.url)

    def test_a_frame_can_be_asked_again_and_again_where_spark_pushes_filters_down(self, spark, world, pushing):
        table, _ = world
        frame = self.read(spark, table, columns=", ".join(COLUMNS))
        few, many = "value > 0.5 and metric_name = 'metric_3'", "host is null or zone = 'z1'"
        for condition in (few, many):
            wanted = told(table.scan(condition, COLUMNS).to_arrow(), COLUMNS, finest="us")
            assert told(frame.where(condition).toArrow(), COLUMNS, finest="us") == wanted
        both = frame.where(few).union(frame.where("metric_name = 'metric_1'"))
        assert both.count() == table.scan(few).count() + table.scan("metric_name = 'metric_1'").count()

    @pytest.mark.parametrize("condition", ["value > 0.5 and metric_name = 'metric_3'", "metric_name in ('metric_9')"])
    def test_filters_that_are_taken_select_the_same_rows(self, spark, world, pushing, condition):
        table, _ = world
        frame = self.read(spark, table, columns=", ".join(COLUMNS), pushdown="true").where(condition)
        wanted = told(table.scan(condition, COLUMNS).to_arrow(), COLUMNS, finest="us")
        assert told(frame.toArrow(), COLUMNS, finest="us") == wanted

    def test_filters_are_taken_only_where_spark_pushes_them(self, spark, world):
        with pytest.raises(PySparkException, match="PUSHDOWN_DISABLED"):
            self.read(spark, world[0], pushdown="true").count()

    def test_times_that_spark_cut_are_found_by_what_is_left_of_them(self, spark, world, pushing):
        table, rows = world
        frame = self.read(spark, table, pushdown="true")
        moment = rows["timestamp"][7].cast(pa.timestamp("us", "UTC"), safe=False).as_py()
        found = frame.where(f"timestamp <= timestamp_ltz '{moment.isoformat(sep=' ')}' and host <=> host").toArrow()
        cut = rows["timestamp"].cast(pa.timestamp("us", "UTC"), safe=False).to_pylist()
        assert found.num_rows == sum(each <= moment for each in cut)

    def test_options_choose_rows_columns_and_version(self, spark, world):
        table, rows = world
        frame = self.read(spark, table, where="length(host) = 2", columns="host,value", version=str(table.version()))
        assert frame.columns == ["host", "value"]
        assert frame.count() == rows.num_rows - rows["host"].null_count
        assert self.read(spark, table, version="1").count() == 120

    @pytest.mark.s3
    def test_a_bucket_is_read_through_our_storage(self, spark, tmp_path, s3_url, s3_options):
        metastore = f"sqlite:///{tmp_path}/windrow.db"
        with connect({"url": s3_url, "metastore": metastore, "store_options": s3_options}) as lake:
            table = lake.create_table("metrics", sort=SORT, timestamp_precision="ns")
            table.ingest(points(1, 50))
            store = {f"store.{name}": value for name, value in s3_options.items()}
            frame = self.read(spark, table, metastore=metastore, tasks="2", **store)
            assert frame.count() == 50

    @pytest.mark.parametrize(
        ("options", "problem"),
        [
            ({"table": "metrisc"}, "did you mean 'metrics'"),
            ({"tabel": "x"}, "did you mean 'table'"),
            ({"version": "99"}, "99"),
            ({"where": "nothing = 1"}, "nothing"),
            ({"columns": "hots"}, "did you mean 'host'"),
        ],
    )
    def test_bad_options_are_told(self, spark, world, options, problem):
        reader = spark.read.format("windrow").options(**{"table": "metrics"} | options)
        with pytest.raises(PySparkException, match=problem):
            reader.load(world[0].context.url).collect()

    def test_a_schema_can_choose_columns_and_not_change_them(self, spark, world):
        reader = spark.read.format("windrow").option("table", "metrics")
        assert reader.schema("value double, host string").load(world[0].context.url).columns == ["value", "host"]
        with pytest.raises(PySparkException, match="'value' is double in the table"):
            reader.schema("value string").load(world[0].context.url).collect()


SCHEMA = pa.schema(
    {
        "text": pa.string(),
        "number": pa.int64(),
        "value": pa.float64(),
        "price": pa.decimal128(9, 2),
        "at": pa.timestamp("ns", "UTC"),
        "seen": pa.timestamp("us", "UTC"),
        "on": pa.bool_(),
    }
)
VALUES = {
    "text": ["", "a", "ab", "b"],
    "number": [-1, 0, 7, 2**62],
    "value": [-1.5, 0.0, 2.5, math.inf, math.nan],
    "price": [Decimal("-1.25"), Decimal("0.00"), Decimal("3.50")],
    "at": [NOON + timedelta(microseconds=n) for n in range(-2, 3)],
    "seen": [NOON + timedelta(microseconds=n) for n in range(-2, 3)],
    "on": [True, False],
}
TESTS = {
    datasource.EqualTo: lambda left, right: left == right,
    datasource.GreaterThan: lambda left, right: left > right,
    datasource.GreaterThanOrEqual: lambda left, right: left >= right,
    datasource.LessThan: lambda left, right: left < right,
    datasource.LessThanOrEqual: lambda left, right: left <= right,
}


def sorting(value):
    """NaN is the greatest, as Spark has it."""
    return (math.isnan(value), 0.0 if math.isnan(value) else value) if isinstance(value, float) else value


def kept_by_spark(one, row):
    """Whether Spark keeps a row by a filter; None where that is unknown."""
    if isinstance(one, datasource.Not):
        truth = kept_by_spark(one.child, row)
        return None if truth is None else not truth
    value = row[one.attribute[0]]
    if isinstance(one, datasource.IsNull | datasource.IsNotNull):
        return (value is None) == isinstance(one, datasource.IsNull)
    if isinstance(one, datasource.EqualNullSafe):
        return value is one.value if value is None or one.value is None else sorting(value) == sorting(one.value)
    if value is None:
        return None
    if isinstance(one, datasource.In):
        found = any(sorting(value) == sorting(each) for each in one.value if each is not None)
        return True if found else None if None in one.value else False
    if isinstance(one, datasource.StringStartsWith):
        return value.startswith(one.value)
    return TESTS[type(one)](sorting(value), sorting(one.value))


def a_filter(name):
    values, path = st.sampled_from(VALUES[name]), (name,)
    kinds = [st.builds(kind, st.just(path), values) for kind in TESTS]
    kinds += [st.builds(datasource.EqualNullSafe, st.just(path), st.none() | values)]
    kinds += [st.builds(datasource.In, st.just(path), st.lists(st.none() | values, max_size=3).map(tuple))]
    kinds += [st.just(datasource.IsNull(path)), st.just(datasource.IsNotNull(path))]
    if name == "text":
        kinds.append(st.builds(datasource.StringStartsWith, st.just(path), values))
    return st.one_of(kinds).flatmap(lambda each: st.sampled_from([each, datasource.Not(each)]))


FILTERS = st.lists(st.sampled_from(SCHEMA.names).flatmap(a_filter), max_size=3)
ROWS = st.fixed_dictionaries({name: st.none() | st.sampled_from(values) for name, values in VALUES.items()})


@given(filters=FILTERS, row=ROWS)
def test_no_row_that_spark_keeps_is_left_out(filters, row):
    predicate = spark_filters_to_predicate(filters, SCHEMA)
    if predicate is not None and all(kept_by_spark(each, row) for each in filters):
        assert matches(predicate, row)


def test_a_time_that_spark_cut_may_lie_up_to_a_microsecond_later():
    later = Comparison("at", Op.LESS, NOON + timedelta(microseconds=1))
    assert spark_filters_to_predicate([datasource.LessThanOrEqual(("at",), NOON)], SCHEMA) == later
    exactly = spark_filters_to_predicate([datasource.EqualTo(("at",), NOON)], SCHEMA)
    assert exactly == And((Comparison("at", Op.GREATER_OR_EQUAL, NOON), later))
    assert spark_filters_to_predicate([datasource.Not(datasource.EqualTo(("at",), NOON))], SCHEMA) is None


class TestOptions:
    def test_every_option_is_taken(self):
        options = ReadOptions.of(
            {
                "path": "s3://bucket/lake",
                "Table": "metrics",
                "metastore": "postgresql://u:hunter2@host/db",
                "where": "value > 1",
                "columns": "host, value",
                "version": "3",
                "tasks": "8",
                "pushdown": "true",
                "store.region": "eu",
            }
        )
        assert (options.lake, options.table, options.where, options.columns) == (
            "s3://bucket/lake",
            "metrics",
            "value > 1",
            ("host", "value"),
        )
        assert options.pushdown
        assert (options.version, options.share_count, options.store_options) == (3, 8, {"region": "eu"})
        assert "hunter2" not in repr(options)

    @pytest.mark.parametrize(
        ("options", "problem"),
        [
            ({"table": ""}, "option 'table' is missing"),
            ({"version": "first"}, "'version' is 'first'; write a whole number"),
            ({"drop_late": "true"}, "unknown option 'drop_late'"),
        ],
    )
    def test_bad_options_are_refused(self, options, problem):
        with pytest.raises(InvalidInput, match=problem):
            ReadOptions.of({"lake": "./lake", "table": "metrics"} | options)
