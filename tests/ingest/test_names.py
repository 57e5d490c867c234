"""Names of columns are unique whatever their case, and none is empty or holds a NUL: at every way into a table."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from windrow.errors import InvalidInput

SORT = "host|timestamp/V2"
TIMES = pa.array([0, 1], pa.timestamp("us", "UTC"))


def rows(**columns):
    return pa.table({"host": ["a", "b"], "timestamp": TIMES, **columns})


@pytest.fixture
def events(lake):
    return lake.create_table("events", sort=SORT)


BAD = {
    "in one batch": ({"A": [1, 2], "a": [3, 4]}, "columns 'A' and 'a' differ by case alone"),
    "empty": ({"": [1, 2]}, "a column has an empty name"),
    "with a NUL": ({"a\0b": [1, 2]}, r"column 'a\\x00b' has a NUL in its name"),
}


@pytest.mark.parametrize(("columns", "problem"), BAD.values(), ids=BAD)
def test_a_batch_with_such_names_is_refused(events, columns, problem):
    with pytest.raises(InvalidInput, match=problem):
        events.ingest(rows(**columns))
    with pytest.raises(InvalidInput, match=problem):
        events.ingest(rows(**columns), dead_letter=True)
    assert events.version() == 0


@pytest.mark.parametrize(("columns", "problem"), BAD.values(), ids=BAD)
def test_a_file_with_such_names_is_not_registered(events, tmp_path, columns, problem):
    pq.write_table(rows(**columns), tmp_path / "bad.parquet")
    with pytest.raises(InvalidInput, match=problem):
        events.register.run(tmp_path / "bad.parquet")
    assert events.version() == 0


def test_a_later_batch_is_refused_with_both_spellings(lake, events):
    events.ingest(rows(A=[1, 2]))
    with pytest.raises(InvalidInput, match="column 'a' differs from 'A' of the table by case alone; rename it to 'A'"):
        events.ingest(rows(a=[3, 4]))
    with pytest.raises(InvalidInput, match="'a' differs from 'A'"):
        events.ingest.plan(rows(a=[3, 4]))
    assert lake.sql('select sum("a") as s from events').to_dict() == [{"s": 3}]


def test_a_later_file_is_not_registered(events, tmp_path):
    events.ingest(rows(A=[1, 2]))
    pq.write_table(rows(a=[3, 4]), tmp_path / "later.parquet")
    with pytest.raises(InvalidInput, match=r"later.parquet: column 'a' differs from 'A'"):
        events.register.plan(tmp_path / "later.parquet")
    with pytest.raises(InvalidInput, match=r"later.parquet: column 'a' differs from 'A'"):
        events.register.run(tmp_path / "later.parquet")


def test_files_of_one_ingest_are_compared(events, tmp_path):
    for name in "Aa":
        pq.write_table(rows(**{name: [1, 2]}), tmp_path / f"{ord(name)}.parquet")
    with pytest.raises(InvalidInput, match=r"97.parquet: column 'a' differs from 'A'"):
        events.ingest([tmp_path / "65.parquet", tmp_path / "97.parquet"])
    result = events.ingest([tmp_path / "65.parquet", tmp_path / "97.parquet"], dead_letter=True)
    assert (result.rows, result.conflicting) == (2, 2)


def test_a_column_of_a_failed_run_does_not_take_the_name(events):
    with pytest.raises(InvalidInput, match="would be dropped"):
        events.ingest(rows(A=[1, 2]), drop_late=True)
    events.ingest(rows(a=[1, 2]))
    assert [column.name for column in events.inspect.columns()][-1] == "a"


def test_the_series_id_is_a_name_like_others(lake):
    table = lake.create_table("metrics", sort="metric_name|timeseries_id|timestamp/V2")
    points = pa.table({"metric_name": ["m"], "value": [1.0], "timestamp": TIMES[:1], "Timeseries_ID": [7]})
    with pytest.raises(InvalidInput, match="'Timeseries_ID' and 'timeseries_id' differ by case alone"):
        table.ingest(points)


@pytest.mark.parametrize(
    "settings",
    [
        {"sort": "host|Host|timestamp/V2"},
        {"sort": SORT, "partition_by": ["Host"]},
        {"sort": SORT, "tags": ["a", "A"]},
        {"sort": SORT, "bloom_filters": ["HOST"]},
    ],
    ids=str,
)
def test_settings_name_a_column_in_one_spelling(lake, events, settings):
    with pytest.raises(InvalidInput, match="differ by case alone"):
        lake.create_table("other", **settings)
    with pytest.raises(InvalidInput, match="differ by case alone"):
        events.change.run(**settings)


@pytest.mark.parametrize("name", ["", "a\0b"])
def test_settings_name_no_empty_column_and_none_with_a_nul(lake, name):
    with pytest.raises(InvalidInput):
        lake.create_table("other", sort=f"host|{name}|timestamp/V2")
    with pytest.raises(InvalidInput):
        lake.create_table("other", sort=SORT, partition_by=[name])


def otlp(path, **attributes):
    point = {"timeUnixNano": "1700000000000000000", "asDouble": 1.0}
    pairs = [{"key": name, "value": {"stringValue": value}} for name, value in attributes.items()]
    gauge = {"name": "cpu", "gauge": {"dataPoints": [point | {"attributes": pairs}]}}
    path.write_text(json.dumps({"resourceMetrics": [{"scopeMetrics": [{"metrics": [gauge]}]}]}))
    return path


def test_attributes_of_otlp_keep_their_spelling_in_the_map(lake, tmp_path):
    metrics = lake.create_table("metrics", sort="metric_name|timestamp/V2")
    metrics.ingest(otlp(tmp_path / "one.json", host="a", Host="b"), rare_attributes=0)
    metrics.ingest(otlp(tmp_path / "two.json", HOST="c"), rare_attributes=0)
    assert [column.name for column in metrics.inspect.columns() if column.name.lower() == "host"] == ["Host"]
    found = lake.sql("select host, attributes['host'] as b, attributes['HOST'] as c from metrics order by 1").to_dict()
    assert found == [{"Host": "b", "b": "a", "c": None}, {"Host": None, "b": None, "c": "c"}]
