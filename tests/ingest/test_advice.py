"""What a person hears of rows that are taken: sparse ones, and sort columns that none of them has."""

import logging

import pyarrow as pa
import pyarrow.csv
import pytest

from windrow.ingest.advice import predicted_spread
from windrow.ingest.sources import source_of
from windrow.model.sparse import MANY_FILES, Spread
from windrow.model.window import window_starts

SORT = "host|timestamp/V2"
SPARSE = "400 rows lie in 400 files, about 1 in each"


def readings(count=400, step=1800, **columns):
    times = pa.array([1_700_000_000 + step * number for number in range(count)], pa.timestamp("s"))
    return pa.table({"host": ["a"] * count, "timestamp": times, "value": [1.0] * count, **columns})


@pytest.fixture
def table(lake):
    return lake.create_table("readings", sort=SORT, window="15m", cold_window="off")


class TestSparseData:
    def test_plan_ingest_and_check_tell_the_number_of_files_and_what_to_set(self, table, caplog):
        plan = table.ingest.plan(readings())
        assert plan.predicted_files == 400
        with caplog.at_level(logging.WARNING):
            result = table.ingest(readings())
        assert result.splits == 400
        assert SPARSE in caplog.text
        for warnings in (plan.warnings, result.warnings, table.upkeep.check().warnings):
            (warning,) = warnings
            assert SPARSE in warning
            assert 'cold_window="1w"' in warning
            assert "about 3 files" in warning

    def test_what_the_warning_promises_is_what_the_longest_window_gives(self, lake):
        table = lake.create_table("longer", sort=SORT, window="1h", cold_window="1w")
        plan, result = table.ingest.plan(readings()), table.ingest(readings())
        assert (plan.predicted_files, result.splits) == (3, 3)
        assert plan.warnings == result.warnings == ()

    def test_where_no_window_makes_fewer_files_other_ways_are_named(self, lake):
        settings = {"sort": SORT, "window": "1h", "cold_window": "1w", "partition_by": ["host"]}
        table = lake.create_table("tenants", **settings)
        (warning,) = table.ingest(readings().set_column(0, "host", [[str(each) for each in range(400)]])).warnings
        assert "no longer window makes fewer" in warning

    def test_dense_data_is_not_warned_of(self, table):
        dense = readings(5_000, step=1)
        assert table.ingest.plan(dense).warnings == ()
        assert table.ingest(dense).warnings == ()
        assert table.upkeep.check().warnings == ()

    def test_files_are_sampled_and_streams_are_not_read(self, table, tmp_path):
        for number in range(2):
            pyarrow.csv.write_csv(readings().slice(200 * number, 200), tmp_path / f"{number}.csv")
        plan = table.ingest.plan(str(tmp_path / "*.csv"))
        assert plan.predicted_files == 400
        assert SPARSE in plan.warnings[0]
        stream = readings().to_reader()
        assert table.ingest.plan(stream).warnings == ()
        assert stream.read_all().num_rows == 400

    def test_tenants_and_rows_without_a_time_are_places_of_their_own(self, lake):
        settings = lake.create_table(
            "tenants", sort=SORT, window="15m", cold_window="1d", partition_by=["host"]
        ).settings()
        rows = pa.table(
            {
                "host": ["a", "b", "a", "b", "a"],
                "timestamp": pa.array([0, 0, 900, None, 0], pa.timestamp("s")),
                "value": [1.0] * 5,
            }
        )
        assert predicted_spread(source_of(rows), settings, 0) == Spread(rows=5, files=4, in_longest=3)
        many = rows.append_column("n", [[0] * 5]).slice(0, 1)
        many = pa.concat_tables(
            [many.set_column(1, "timestamp", pa.array([900 * n], pa.timestamp("s"))) for n in range(9)]
        )
        for closed_before, files in ((0, 9), (86_400, 1)):
            assert predicted_spread(source_of(many), settings, closed_before) == Spread(9, files, 1)


class TestSortColumns:
    def test_one_that_no_row_has_is_warned_of_with_the_nearest_name(self, lake):
        table = lake.create_table("readings", sort="hots|Region|timestamp/V2")
        rows = readings(2, step=1)
        for warnings in (table.ingest.plan(rows).warnings, table.ingest(rows).warnings):
            first, second = warnings
            assert "sort column 'hots' is in no row" in first
            assert "is it 'host'?" in first
            assert "sort column 'Region' is in no row" in second
            assert "is it" not in second

    def test_one_that_earlier_rows_have_is_not(self, lake):
        table = lake.create_table("readings", sort="region|timestamp/V2")
        assert table.ingest(readings(2, step=1, region=["x", "y"])).warnings == ()
        assert table.ingest(readings(2, step=1)).warnings == ()

    def test_the_series_id_is_added_and_not_missed(self, lake):
        table = lake.create_table("series", sort="metric_name|timeseries_id|timestamp/V2")
        assert table.ingest(readings(2, step=1, metric_name=["m", "m"])).warnings == ()


def test_many_files_are_few_in_tests():
    starts, _ = window_starts(readings()["timestamp"], 900)
    assert len(set(starts.tolist())) == 400 > MANY_FILES
