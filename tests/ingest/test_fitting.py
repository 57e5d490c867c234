"""Rows become those of the table: times in its unit, points with all that they need; what does not fit is counted."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from windrow.errors import InvalidInput, InvariantViolation
from windrow.ingest.run import Ingest
from windrow.ingest.settings import IngestSettings
from windrow.ingest.sources import source_of
from windrow.ingest.task_reports import RowCounts, text_of

SORT = "metric_name|host|timestamp/V2"
OTLP = Path(__file__).parents[1] / "data" / "otlp" / "metrics.json"
START = 1_700_000_000_000_000_000
"""Nanoseconds."""


def points(times, **columns):
    count = len(times)
    rows = {"metric_name": ["cpu"] * count, "host": ["a"] * count, "timestamp": times, "value": [1.0] * count}
    return pa.table(rows | columns)


def nanoseconds(*counts, zone="UTC"):
    return pa.array(counts, pa.timestamp("ns", zone))


def years(*numbers, unit="us"):
    return pa.array([datetime(year, 1, 1, tzinfo=UTC) for year in numbers], pa.timestamp("us", "UTC")).cast(
        pa.timestamp(unit, "UTC")
    )


def type_of(table, name="timestamp"):
    return next(column.type for column in table.inspect.columns() if column.name == name)


def stored(lake, table="metrics"):
    return lake.sql(f"select epoch_ns(timestamp) as t from {table} order by t").to_arrow()["t"].to_pylist()


@pytest.fixture
def metrics(lake):
    return lake.create_table("metrics", sort=SORT)


@pytest.fixture
def fine(lake):
    return lake.create_table("fine", sort=SORT, timestamp_precision="ns")


class TestUnits:
    @pytest.mark.parametrize("zone", [None, "UTC"])
    def test_a_frame_of_pandas_is_stored_in_microseconds(self, lake, metrics, zone):
        times = pd.date_range(datetime.now(UTC) - timedelta(minutes=9), periods=3, freq="min", tz="UTC", unit="ns")
        frame = (
            points(pa.array([0, 0, 0])).to_pandas().assign(timestamp=times.tz_localize(None) if zone is None else times)
        )
        assert str(frame.dtypes["timestamp"]).startswith("datetime64[ns")
        result = metrics.ingest(pa.Table.from_pandas(frame.assign(timestamp=frame["timestamp"].dt.floor("us"))))
        assert (result.rows, result.rounded) == (3, 0)
        assert type_of(metrics).startswith("timestamp[us")
        recent = lake.sql("select count(*) as n from metrics where timestamp > now() - interval 1 hour").to_dict()
        assert recent == [{"n": 3}]
        lake.sql("select date_trunc('hour', timestamp), time_bucket(interval 1 minute, timestamp) from metrics")
        lake.sql("select * from metrics where timestamp > ?", [datetime(2024, 1, 1, tzinfo=UTC)])

    def test_digits_beyond_are_cut_down_and_the_rows_counted(self, lake, metrics):
        times = nanoseconds(START, START + 1, START + 999, -1, None)
        result = metrics.ingest(points(times, start=nanoseconds(0, 1, 0, 0, 1)))
        assert (result.rows, result.rounded) == (5, 4)
        assert result.to_dict()["rounded"] == 4
        assert stored(lake) == [-1000, START, START, START, None]

    @pytest.mark.parametrize("unit", ["s", "ms"])
    def test_coarser_times_become_microseconds(self, lake, metrics, unit):
        metrics.ingest(points(years(1500, 9999, unit=unit)))
        assert type_of(metrics) == "timestamp[us, tz=UTC]"
        found = lake.sql("select year(timestamp) as y from metrics order by y").to_dict()
        assert found == [{"y": 1500}, {"y": 9999}]

    def test_no_batch_turns_a_table_to_nanoseconds(self, lake, metrics):
        metrics.ingest(points(years(1500, 9999)))
        metrics.ingest(points(nanoseconds(START)), dead_letter=True)
        assert type_of(metrics) == "timestamp[us, tz=UTC]"
        found = lake.sql("select year(timestamp) as y from metrics order by y").to_dict()
        assert found == [{"y": 1500}, {"y": 2023}, {"y": 9999}]
        plan = metrics.ingest.plan(points(nanoseconds(START)))
        assert plan.widened_columns == ()

    def test_dictionaries_of_times_are_cut_down_too(self, lake, metrics):
        coded = pa.DictionaryArray.from_arrays(pa.array([0, 1, 0]), nanoseconds(START + 1, START + 2000))
        assert metrics.ingest(points(coded)).rounded == 2
        assert stored(lake) == [START, START, START + 2000]

    def test_files_are_brought_to_the_unit(self, lake, metrics, tmp_path):
        pq.write_table(points(nanoseconds(START + 7)), tmp_path / "one.parquet")
        pq.write_table(points(years(2024, unit="ms")), tmp_path / "two.parquet")
        result = metrics.ingest([tmp_path / "one.parquet", tmp_path / "two.parquet"], dead_letter=True)
        assert (result.rows, result.rounded, result.conflicting) == (2, 1, 0)
        assert type_of(metrics) == "timestamp[us, tz=UTC]"

    def test_a_table_may_ask_for_nanoseconds(self, lake, fine):
        result = fine.ingest(points(nanoseconds(START + 1)))
        fine.ingest(points(years(2024, unit="s")))
        assert (result.rounded, type_of(fine)) == (0, "timestamp[ns, tz=UTC]")
        assert stored(lake, "fine")[0] == START + 1

    def test_points_of_opentelemetry_follow_the_table(self, lake, metrics, fine):
        assert metrics.ingest(OTLP).rows == fine.ingest(OTLP).rows
        assert type_of(metrics) == type_of(metrics, "start_timestamp") == "timestamp[us, tz=UTC]"
        assert type_of(fine) == type_of(fine, "start_timestamp") == "timestamp[ns, tz=UTC]"
        cut = [None if each is None else each // 1000 * 1000 for each in stored(lake, "fine")]
        assert stored(lake) == cut

    def test_columns_that_a_table_has_in_nanoseconds_stay_so(self, lake, fine):
        fine.ingest(points(nanoseconds(START + 1)))
        older = replace(fine.settings(), timestamp_precision="us")
        lake.context.metastore.change_settings(fine.record().table_id, older)
        result = fine.ingest(points(nanoseconds(START + 2), later=nanoseconds(START + 2)))
        assert type_of(fine) == "timestamp[ns, tz=UTC]"
        assert (type_of(fine, "later"), result.rounded) == ("timestamp[us, tz=UTC]", 1)
        assert stored(lake, "fine") == [START + 1, START + 2]

    def test_the_precision_is_one_of_two_and_stays(self, lake, metrics):
        with pytest.raises(InvalidInput, match="timestamp_precision: 'ms' is none of us, ns"):
            lake.create_table("other", sort=SORT, timestamp_precision="ms")
        with pytest.raises(InvalidInput, match="timestamp_precision: cannot change"):
            metrics.change.run(timestamp_precision="ns")

    def test_a_file_of_nanoseconds_is_registered_where_the_table_has_them(self, metrics, fine, tmp_path):
        pq.write_table(points(nanoseconds(START + 7)), tmp_path / "one.parquet")
        with pytest.raises(InvalidInput, match=r"one.parquet: column 'timestamp' is timestamp\[ns.*ingest the file"):
            metrics.register.run(tmp_path / "one.parquet")
        fine.register.run(tmp_path / "one.parquet")
        assert type_of(fine) == "timestamp[ns, tz=UTC]"

    def test_a_file_of_spark_with_times_of_96_bits_is_registered_as_microseconds(self, lake, metrics, tmp_path):
        rows = points(nanoseconds(START, zone=None))
        pq.write_table(rows, tmp_path / "one.parquet", use_deprecated_int96_timestamps=True)
        metrics.register.run(tmp_path / "one.parquet")
        assert type_of(metrics) == "timestamp[us]"
        found = lake.sql("select epoch_ns(timestamp) as t from metrics where timestamp < now()").to_dict()
        assert found == [{"t": START}]
        assert metrics.scan().to_arrow()["timestamp"].cast(pa.int64()).to_pylist() == [START // 1000]


OUTSIDE = "lie out of the years 1677 to 2262"


class TestRanges:
    def test_times_beyond_nanoseconds_are_refused_by_row(self, fine):
        with pytest.raises(InvalidInput, match=rf"2 of 3 rows .*'timestamp' .*{OUTSIDE}.*first .*host=a"):
            fine.ingest(points(years(1500, 2024, 9999)))
        assert fine.version() == 0

    def test_times_beyond_nanoseconds_become_dead_letters(self, lake, fine):
        result = fine.ingest(points(years(1500, 2024, 2025)), dead_letter=True)
        assert (result.rows, result.unfit, len(result.dead_letters)) == (2, 1, 1)
        letter = pq.read_table(lake.context.store.root / result.dead_letters[0]).to_pylist()[0]
        assert OUTSIDE in letter["reason"]
        assert letter["row"]["timestamp"].year == 1500

    @pytest.mark.parametrize("far", [2**62, -(2**62), 253_402_300_800_000_000], ids=str)
    def test_times_beyond_the_years_of_a_calendar_are_refused(self, metrics, far):
        with pytest.raises(InvalidInput, match=r"1 of 2 rows .*'timestamp' .*lie out of the years 1 to 9999"):
            metrics.ingest(points(pa.array([0, far], pa.timestamp("us", "UTC"))))
        seconds = pa.array([0, far], pa.timestamp("s", "UTC"))
        assert metrics.ingest(points(seconds), dead_letter=True).unfit == 1

    @pytest.mark.parametrize(
        ("unit", "kind", "far"),
        [
            ("s", pa.int64(), 2**62),
            ("s", pa.int64(), -(2**62)),
            ("s", pa.int64(), 2**63 // 10**6 + 1),
            ("s", pa.int64(), -(2**63) // 10**6),
            ("ms", pa.int64(), 2**62),
            ("s", pa.uint64(), 2**63 + 1),
            ("ns", pa.uint64(), 2**63 + 1),
            (None, pa.date32(), 2**31 - 1),
            (None, pa.date32(), -(2**31)),
            (None, pa.date64(), 86_400_000 * (2**63 // 86_400_000)),
        ],
        ids=str,
    )
    def test_an_integer_or_a_date_out_of_range_becomes_a_dead_letter(self, lake, unit, kind, far):
        table = lake.create_table("other", sort=SORT, timestamp_unit=unit)
        counts = kind if pa.types.is_integer(kind) else pa.int32() if kind == pa.date32() else pa.int64()
        times = pa.array([0, far, 0], counts).view(kind)
        rows = points(times)
        with pytest.raises(InvalidInput, match=r"1 of 3 rows .*'timestamp'.* cannot be counted in microseconds"):
            table.ingest(rows)
        assert table.version() == 0
        result = table.ingest(rows, dead_letter=True)
        assert (result.rows, result.unfit, len(result.dead_letters)) == (2, 1, 1)
        letter = pq.read_table(lake.context.store.root / result.dead_letters[0])
        assert "cannot be counted" in letter["reason"][0].as_py()
        assert letter["row"].combine_chunks().field("timestamp").view(counts).to_pylist() == [far]


class TestPoints:
    @pytest.mark.parametrize("name", ["metric_name", "value"])
    def test_a_point_without_name_or_value_is_refused(self, metrics, name):
        values = {"metric_name": ["cpu", None, None], "value": [1.0, None, None]}[name]
        rows = points(years(2024, 2024, 2024), host=["a", "b", "c"]).set_column(
            {"metric_name": 0, "value": 3}[name], name, [values]
        )
        with pytest.raises(InvalidInput, match=rf"2 of 3 rows .*column '{name}' is null.*first .*host=b"):
            metrics.ingest(rows)
        assert metrics.version() == 0

    def test_such_points_become_dead_letters(self, lake, metrics):
        rows = points(years(*[2024] * 5), value=[1.0, None, 3.0, 4.0, 5.0], metric_name=["m", "m", None, "m", "m"])
        result = metrics.ingest(rows, dead_letter=True)
        assert (result.rows, result.unfit) == (3, 2)
        reasons = {pq.read_table(lake.context.store.root / key)["reason"][0].as_py() for key in result.dead_letters}
        assert reasons == {"DM-1: column 'metric_name' is null", "DM-1: column 'value' is null"}

    def test_too_many_of_them_stop_the_ingest(self, metrics):
        with pytest.raises(InvalidInput, match="2 lack what a point needs"):
            metrics.ingest(points(years(2024, 2024, 2024), value=[None, None, 1.0]), dead_letter=True)

    def test_a_value_that_is_no_number_is_still_one(self, metrics):
        assert metrics.ingest(points(years(2024), value=[float("nan")])).rows == 1

    def test_events_may_lack_values(self, lake):
        events = lake.create_table("events", sort="host|timestamp/V2")
        assert events.ingest(points(years(2024), value=pa.array([None], pa.float64()))).unfit == 0

    def test_a_file_with_such_points_is_not_registered(self, metrics, tmp_path):
        pq.write_table(points(years(2024, 2024), value=[1.0, None]), tmp_path / "raw.parquet")
        with pytest.raises(InvalidInput, match=r"raw.parquet: DM-1: column 'value' is null in 1 of 2 rows"):
            metrics.register.run(tmp_path / "raw.parquet")


@pytest.mark.parametrize(("read", "invariant"), [(3, "DM-2"), (1, "DM-3")])
def test_an_ingest_whose_counts_differ_is_not_published(lake, metrics, read, invariant):
    run = Ingest.of(lake.context, "metrics", IngestSettings())
    source = source_of(points(years(2024, 2025)))
    opened = run.open(source.schema)
    reports = source.run(opened.task.report, None)
    told = [text_of(RowCounts(read=read)) if report.startswith('{"counts"') else report for report in reports]
    with pytest.raises(InvariantViolation, match=invariant):
        run.publish(opened.commit.attempt, told)
    assert metrics.version() == 0
