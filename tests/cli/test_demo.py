"""The demo from start to end, small, on the shared session."""

from __future__ import annotations

import pytest

import windrow
from windrow.cli.demo_data import SERIES, DemoPlan, series_points
from windrow.errors import MissingDependency

POINTS = 2400
COLUMNS = ["metric_name", "metric_type", "service", "env", "host", "region", "timestamp", "value"]


def test_without_java_nothing_is_made(call, here, monkeypatch):
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    answer = call("demo", "--json")
    assert (answer.code, answer.json["error"]["kind"]) == (7, MissingDependency.__name__)
    assert list(here.iterdir()) == []


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
class TestDemo:
    def test_programs_get_all_of_it_as_one_object(self, call, here, spark):
        answer = call("demo", "it", "--points", str(POINTS), "--json")
        assert (answer.code, answer.err) == (0, "")
        report = answer.json
        assert (report["points"], report["version"], report["lake"]) == (POINTS, 1, str(here / "it"))
        assert report["windows"] == len(report["window_rows"])
        assert report["splits"] == sum(row["splits"] for row in report["window_rows"])
        assert sum(row["rows"] for row in report["window_rows"]) == POINTS
        assert report["size_bytes"] == sum(path.stat().st_size for path in (here / "it" / "metrics").rglob("*.parquet"))
        assert list(report["seconds"]) == ["spark_start", "ingest", "queries"]
        assert [len(query["rows"]) for query in report["queries"]] == [5, 5]

    def test_the_rows_of_the_table_are_the_generated_rows(self, call, here, spark):
        report = call("demo", "--points", str(POINTS), "--seed", "3", "--json").json
        newest = max(row["start"] for row in report["window_rows"] if row["start"] is not None)
        plan = DemoPlan(POINTS, 3, newest + 900)
        made = [row for series in range(SERIES) for row in series_points(plan, series).to_pylist()]
        with windrow.connect(here / "windrow-demo", create=False) as lake:
            kept = lake.sql(f"select {', '.join(COLUMNS)} from metrics").to_dict()
        assert sorted(map(comparable, kept)) == sorted(map(comparable, made))
        times = [row["timestamp"] for row in made]
        assert report["null_timestamps"] == times.count(None)
        assert report["late"] == sum(time is not None and time.timestamp() < plan.start for time in times)

    def test_people_are_led_through_it(self, call, here, spark):
        answer = call("demo", "my demo", "--points", str(POINTS))
        assert (answer.code, answer.err) == (0, "")
        assert "Made and ingested 2,400 points" in answer.out
        assert "overflow/PT15M" in answer.out
        assert answer.out.count("answered in") == 2
        assert "windrow --lake 'my demo' describe metrics" in answer.out
        assert call("--lake", "my demo", "describe", "metrics", "--json").json["rows"] == POINTS

    def test_it_can_be_made_anew(self, call, here, spark):
        call("demo", "--points", str(POINTS), "--json")
        assert call("demo", "--points", "1200").code == 4
        assert call("demo", "--points", "1200", "--overwrite", "--json").json["points"] == 1200
        assert call("--lake", "windrow-demo", "sql", "select count(*) as n from metrics", "--json").json == [
            {"n": 1200}
        ]


def comparable(row):
    time = row["timestamp"]
    return [str(row[name]) for name in COLUMNS if name != "timestamp"] + [str(time and time.timestamp())]
