"""Columns join the table in its type where every value stays what it is, or as the caller says."""

import json
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from windrow.errors import InvalidInput
from windrow.ingest.casts import converted, parse_casts

TIME = datetime(2024, 1, 1, tzinfo=UTC)
INEXACT = 2**53 + 1


def readings(values):
    times = pa.array([TIME] * len(values), pa.timestamp("us", "UTC"))
    return pa.table({"host": ["a"] * len(values), "timestamp": times, "value": values})


@pytest.fixture
def table(lake):
    made = lake.create_table("readings", sort="host|timestamp/V2")
    made.ingest(readings([0.5]))
    return made


def stored(lake):
    return lake.sql("select value from readings order by value").to_arrow()["value"].to_pylist()


def letters(lake, result):
    return [row for key in result.dead_letters for row in pq.read_table(lake.context.store.path(key)).to_pylist()]


class TestWholeNumbersAmongDoubles:
    @pytest.mark.parametrize("kind", [pa.int64(), pa.uint64(), pa.int32()], ids=str)
    def test_those_that_are_exact_are_taken(self, lake, table, kind):
        values = pa.array([3, None, 2**53 if kind != pa.int32() else 7], kind)
        assert table.ingest.plan(readings(values)).widened_columns == ()
        assert table.ingest(readings(values)).rows == 3
        assert stored(lake) == [0.5, 3.0, float(values[2].as_py()), None]
        assert {column.name: column.type for column in table.inspect.columns()}["value"] == "double"

    @pytest.mark.parametrize("value", [2**62, -(2**63), 2**54 + 4])
    def test_large_ones_that_are_exact_are_taken_too(self, lake, table, value):
        table.ingest(readings(pa.array([value])))
        assert float(value) in stored(lake)

    def test_one_that_is_not_is_refused_with_the_row_and_the_way_out(self, lake, table):
        with pytest.raises(InvalidInput, match=r"1 of 2 rows .*'value' is int64 and not exact as double") as error:
            table.ingest(readings(pa.array([1, INEXACT])))
        assert f"value={INEXACT}" in str(error.value)
        assert 'cast={"value": "double"}' in str(error.value)
        assert table.version() == 1
        assert table.ingest(readings(pa.array([1, INEXACT])), cast={"value": "double"}).rows == 2
        assert stored(lake) == [0.5, 1.0, float(2**53)]

    def test_dead_letters_take_the_rows_of_arrow_data_that_are_not(self, lake, table):
        result = table.ingest(readings(pa.array([1, INEXACT, 2])), dead_letter=True)
        assert (result.rows, result.unfit) == (2, 1)
        (letter,) = letters(lake, result)
        assert letter["row"]["value"] == INEXACT
        assert "not exact as double" in letter["reason"]

    @pytest.mark.parametrize("names", ["ab", "ba"])
    def test_csv_files_of_whole_numbers_join_those_of_doubles_in_any_order(self, lake, tmp_path, names):
        made = lake.create_table("readings", sort="host|timestamp/V2")
        for name, values in zip(names, ([1, 2], [1.5, 2.5]), strict=True):
            pyarrow.csv.write_csv(readings(pa.array(values)), tmp_path / f"{name}.csv")
        assert made.ingest(str(tmp_path / "*.csv")).rows == 4
        assert stored(lake) == [1.0, 1.5, 2.0, 2.5]

    def test_json_and_parquet_files_do_so_too(self, lake, tmp_path):
        made = lake.create_table("readings", sort="host|timestamp/V2")
        pq.write_table(readings(pa.array([1, 2])), tmp_path / "a.parquet")
        row = {"host": "a", "timestamp": "2024-01-01T00:00:00Z", "value": 1.5}
        (tmp_path / "b.json").write_text(json.dumps(row))
        assert made.ingest(str(tmp_path / "*.*"), cast={"timestamp": "timestamp[us, UTC]"}).rows == 3
        assert stored(lake) == [1.0, 1.5, 2.0]

    def test_doubles_do_not_join_a_table_of_whole_numbers(self, lake):
        made = lake.create_table("readings", sort="host|timestamp/V2")
        made.ingest(readings(pa.array([1])))
        with pytest.raises(InvalidInput, match="'value' is int64 in the table and double in the data"):
            made.ingest(readings(pa.array([1.5])))
        assert made.ingest(readings(pa.array([1.5])), cast={"value": "int64"}).rows == 1
        assert stored(lake) == [1, 1]


class TestCasts:
    def test_text_becomes_numbers_and_what_is_none_is_a_dead_letter(self, lake, table):
        rows = readings(pa.array(["1.5", "x", None, "2"]))
        with pytest.raises(InvalidInput, match="1 of 4 rows .*'value' is string and cannot become double"):
            table.ingest(rows, cast={"value": "double"})
        result = table.ingest(rows, cast={"value": "double"}, dead_letter=True)
        assert (result.rows, result.unfit) == (3, 1)
        assert stored(lake) == [0.5, 1.5, 2.0, None]
        assert letters(lake, result)[0]["row"]["value"] == "x"

    def test_a_file_of_text_is_read_in_the_type_so_that_zeros_stay(self, lake, tmp_path):
        made = lake.create_table("readings", sort="host|timestamp/V2")
        (tmp_path / "a.csv").write_text("host,timestamp,value\na,2024-01-01T00:00:00Z,007\n")
        made.ingest(tmp_path / "a.csv", cast={"value": "string"})
        assert stored(lake) == ["007"]

    def test_files_of_types_that_no_type_holds_join_by_a_cast(self, lake, tmp_path):
        made = lake.create_table("readings", sort="host|timestamp/V2")
        pq.write_table(readings(pa.array([1.5])), tmp_path / "a.parquet")
        pq.write_table(readings(pa.array(["x"])), tmp_path / "b.parquet")
        with pytest.raises(InvalidInput, match="cast them"):
            made.ingest(str(tmp_path / "*.parquet"))
        assert made.ingest(str(tmp_path / "*.parquet"), cast={"value": "string"}).rows == 2
        assert stored(lake) == ["1.5", "x"]

    def test_a_column_that_is_not_there_and_a_type_that_is_none_are_refused(self, table):
        with pytest.raises(InvalidInput, match="cast: column 'valu' is not in the data, which has host"):
            table.ingest(readings([1.0]), cast={"valu": "double"})
        with pytest.raises(InvalidInput, match="cast: column 'value' cannot become 'duoble'"):
            table.ingest.plan(readings([1.0]), cast={"value": "duoble"})
        with pytest.raises(InvalidInput, match="cast: column 'value': list.* cannot become double"):
            table.ingest(readings(pa.array([[1.0]])), cast={"value": "double"})

    def test_types_have_the_names_of_arrow_and_of_sql(self):
        named = {"a": "double", "b": "VARCHAR", "c": "timestamp[ns, UTC]", "d": pa.large_string(), "e": "timestamptz"}
        utc = pa.timestamp("ns", "UTC"), pa.timestamp("us", "UTC")
        assert list(parse_casts(named).values()) == [pa.float64(), pa.string(), utc[0], pa.string(), utc[1]]

    def test_every_value_that_cannot_be_cast_is_found(self):
        texts = pa.chunked_array([["1", "a", "2"], ["b", None, "3", "c"]])
        found = converted(texts, pa.int64(), lossy=True)
        assert found.values.to_pylist() == [1, None, 2, None, None, 3, None]
        assert found.lost.to_pylist() == [False, True, False, True, False, False, True]
        assert converted(pa.chunked_array([[1.7, -1.7]]), pa.int64(), lossy=True).values.to_pylist() == [1, -1]
        assert converted(pa.chunked_array([[1e30]]), pa.int64(), lossy=True).lost.to_pylist() == [True]
