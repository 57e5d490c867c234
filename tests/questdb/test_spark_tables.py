"""Spark reads QuestDB's tables: the same rows, by its own source and by scans."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException

from pyspark_windrow.options import ReadOptions
from windrow.databases import open_table
from windrow.errors import InvalidInput

from .read_tables import WITH_ROWS, as_json, copy_case, golden_rows


def spark_rows(case):
    """QuestDB's rows without what Spark lacks: decimals of 76 digits, and times finer than a microsecond."""
    columns, rows = golden_rows(case)
    places = [place for place, name in enumerate(columns) if name not in ("d256", "tn")]
    return [columns[place] for place in places], [[row[place] for place in places] for row in rows]


def spelled(frame, columns):
    found = frame.orderBy("ts").toArrow()
    dates = [each.with_type(pa.timestamp("ms", "UTC")) if each.name == "da" else each for each in found.schema]
    return as_json(found.cast(pa.schema(dates)), columns)


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
class TestRows:
    @pytest.mark.parametrize("case", WITH_ROWS)
    def test_a_scan_has_questdb_s_rows(self, spark, tmp_path, case):
        table = open_table(copy_case(case, tmp_path), native="skip")
        columns, rows = spark_rows(case)
        assert spelled(table.scan(columns=columns).to_spark(spark), columns) == rows

    @pytest.mark.parametrize("case", ["migrated-alltypes", "cols-2-column-top"])
    def test_the_source_has_questdb_s_rows(self, spark, tmp_path, case):
        columns, rows = spark_rows(case)
        given = {"questdb": str(copy_case(case, tmp_path)), "native": "skip", "columns": ", ".join(columns)}
        assert spelled(spark.read.format("windrow").options(**given).load(), columns) == rows

    def test_a_scan_becomes_a_frame_of_what_is_committed(self, spark, tmp_path):
        table = copy_case("o3-1-merge", tmp_path)
        data = table / "2024-02-02.2/data.parquet"
        data.write_bytes(data.read_bytes() + bytes(1000))
        scan = open_table(table, native="skip").scan("sy = 'late'", ["ts", "n"])
        assert [row.n for row in scan.to_spark(spark).orderBy("ts").collect()] == [-1, -2, -3]

    def test_wide_decimals_are_refused_by_name(self, spark, tmp_path):
        table = copy_case("types", tmp_path)
        with pytest.raises(InvalidInput, match="'d256' is decimal256.*Spark cannot hold"):
            open_table(table, native="skip").scan().to_spark(spark)
        with pytest.raises(PySparkException, match="'d256' is decimal256"):
            spark.read.format("windrow").options(questdb=str(table), native="skip").load()


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"questdb": "db", "table": "t", "lake": "./lake"}, "'lake' has no meaning for a database of QuestDB"),
        ({"questdb": "db", "table": "t", "version": "3"}, "'version' has no meaning"),
        ({"lake": "./lake", "table": "t", "native": "skip"}, "'native' has no meaning for a lake"),
        ({"questdb": "db", "table": "t", "recover": "maybe"}, "true or false"),
        ({"questdb": "db", "tabel": "t"}, "did you mean 'table'"),
    ],
)
def test_options_that_do_not_go_together_are_refused(options, problem):
    with pytest.raises(InvalidInput, match=problem):
        ReadOptions.of(options)
