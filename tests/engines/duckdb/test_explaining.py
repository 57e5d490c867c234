"""Explanations: how much there was, what each step left, why the rest is read, and what was read."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest
from tests.engines.streams import streamed

from windrow.engines.duckdb.explaining import explain_request
from windrow.errors import InvalidInput, NotFound

START = datetime(2026, 1, 1, tzinfo=UTC)
SELECTIVE = "select max(n) as n from metrics where host = 'h0' and timestamp >= timestamp '2026-01-01 01:45:00'"


def test_the_funnel_counts_what_there_was_and_what_is_left(lake):
    (table,) = lake.explain(SELECTIVE).tables
    steps = {step.step: (step.kept, step.asked, step.units) for step in table.steps}
    assert steps["time range"] == (1, 8, "windows")
    assert steps["split times"] == (1, 8, "splits")
    assert steps["zone maps"] == (1, 1, "splits")
    assert steps["statistics and nulls"] == (1, 1, "row groups")
    assert (table.name, table.files, table.rows, table.read) == ("metrics", 1, 10, None)
    assert set(table.columns) == {"host", "timestamp", "n"}
    assert table.why.startswith("what is left may hold rows that meet")
    assert "'h0'" in table.why


def test_without_a_condition_that_metadata_can_answer_all_is_read(lake):
    (table,) = lake.explain("select count(*) from metrics where n % 2 = 0").tables
    assert (table.files, table.rows) == (8, 80)
    assert table.why.startswith("read whole")


def test_nothing_is_read_where_metadata_leaves_nothing(lake):
    (table,) = lake.explain("select * from metrics where host = 'nobody'").tables
    assert (table.from_metadata, table.rows, table.bytes) == (True, 0, 0)


def test_a_query_is_run_only_when_that_is_asked(lake):
    # Of a column that nobody else reads nothing is decoded before.
    query = SELECTIVE.replace("max(n)", "max(price)")
    run, plain = lake.explain(query, analyze=True), lake.explain(query)
    assert (plain.rows, plain.running_ms) == (None, None)
    assert (run.rows, run.running_ms > 0, run.planning_ms > 0) == (1, True, True)
    (table,) = run.tables
    assert table.read.reads > 0
    assert table.read.bytes >= table.bytes
    # One for a file that nobody read before; else by stages: conditions tell which pages of other columns to read.
    assert table.read.requests in (1, 3)


def test_a_query_that_is_analyzed_is_run_once(lake):
    connection = lake._started()._connection
    connection.execute("create or replace sequence runs")
    said = lake.explain("select nextval('runs') from metrics limit 1", analyze=True)
    assert said.rows == 1
    assert "Total Time" in said.plan
    assert connection.execute("select nextval('runs')").fetchall() == [(2,)]


def test_what_is_kept_decoded_is_not_read_again(lake):
    for _ in range(2):
        lake.sql(SELECTIVE)
    (table,) = lake.explain(SELECTIVE, analyze=True).tables
    assert (table.read.bytes, table.read.requests, table.read.cache_hits) == (0, 0, 1)


def test_every_table_has_a_funnel(lake):
    said = lake.explain("select * from metrics a join (select host from metrics where n = 1) b using (host)")
    assert [table.name for table in said.tables] == ["metrics"]
    assert "Join" in said.plan


def test_parameters_are_used(lake):
    said = lake.explain("select n from metrics where timestamp < $upto", params={"upto": START + timedelta(minutes=15)})
    assert said.tables[0].files == 1


@pytest.mark.parametrize("verb", ["explain", "EXPLAIN ANALYZE", "Explain analyze"])
def test_a_query_that_begins_with_explain_is_explained(lake, verb):
    answer = lake.sql(f"{verb} {SELECTIVE}").to_dict()
    assert [row["explain_key"] for row in answer] == ["windrow", "physical_plan"]
    assert "1 of 8 splits" in answer[0]["explain_value"]
    assert ("run in" in answer[0]["explain_value"]) == ("nalyze" in verb or "ANALYZE" in verb)
    assert (lake.explain(f"{verb} {SELECTIVE}").rows == 1) == ("nalyze" in verb or "ANALYZE" in verb)


@pytest.mark.parametrize(
    "query",
    [
        "explain select 1",
        " \n EXPLAIN ANALYZE (select 1)",
        "-- why?\nexplain from metrics",
        "/* so\nlong */ explain with a as (select 1) from a",
        "explain values (1)",
        "explain (format json) select 1",
        "explain(ANALYZE, format 'text')\n(select 1)",
    ],
)
def test_what_is_to_be_explained(query):
    found = explain_request(query)
    assert (found.query.split()[0].strip("(").lower() in ("select", "from", "with", "values")) is True
    assert found.analyze == ("ANALYZE" in query)


@pytest.mark.parametrize(
    "query", ["select 'explain select 1'", "explain create table a (b int)", "explain (format json) x"]
)
def test_what_is_left_to_duckdb(query):
    assert explain_request(query) is None


@pytest.mark.parametrize("verb", ["explain (format json)", "EXPLAIN (analyze, FORMAT 'json')"])
def test_a_plan_is_written_as_the_query_wants_it(lake, verb):
    for _ in range(2):  # what the first query leaves behind is not what the second one lives on
        funnel, plan = lake.sql(f"{verb} {SELECTIVE}").to_dict()
        assert "1 of 8 splits" in funnel["explain_value"]
        assert json.loads(plan["explain_value"])
        lake.sql(SELECTIVE)
    assert ("run in" in funnel["explain_value"]) == ("analyze" in verb)
    with lake.stream(f"{verb} {SELECTIVE}") as batches:
        assert batches.read_all()["explain_key"].to_pylist() == ["windrow", "physical_plan"]
    with pytest.raises(InvalidInput, match="not a valid FORMAT"):
        lake.sql(f"explain (format nonsense) {SELECTIVE}")


JOINED = "explain select count(*) as n from metrics join hosts using (host)"


def test_frames_and_parameters_reach_a_query_that_is_explained(lake):
    hosts = pa.table({"host": ["h0"]})
    for answer in (lake.sql(JOINED), lake.sql(JOINED.replace("hosts", "given"), tables={"given": hosts})):
        assert "metrics" in answer.to_dict()[0]["explain_value"]
    answer = lake.sql(f"{JOINED} where n < ?", [10], tables=None)
    assert "1 of 8 splits" not in answer.to_dict()[0]["explain_value"]
    assert lake.explain(JOINED.replace("hosts", "given"), tables={"given": hosts}).tables[0].name == "metrics"
    assert set(lake.plan("from metrics join given using (host)", tables={"given": hosts})) == {"metrics"}


def test_a_stream_knows_explain(lake):
    found = streamed(lake, f"explain analyze {SELECTIVE}").to_pylist()
    assert [row["explain_key"] for row in found] == ["windrow", "physical_plan"]
    assert "run in" in found[0]["explain_value"]
    hosts = pa.table({"host": ["h0"]})
    assert streamed(lake, JOINED, tables={"hosts": hosts}).num_rows == 2


def test_a_table_takes_parameters_and_frames_and_knows_explain(lake):
    table, given = lake.table("metrics"), pa.table({"host": ["h0"]})
    assert table.sql("select count(*) as n from metrics where n < ?", [5]).to_dict() == [{"n": 5}]
    joined = "select count(*) as n from metrics join {} using (host)"
    assert table.sql(joined.format("given")).to_dict() == [{"n": 40}]
    assert table.sql(joined.format("named"), tables={"named": given}).to_dict() == [{"n": 40}]
    with pytest.raises(InvalidInput, match="'metrics' is a table of the lake too"):
        table.sql("select 1", tables={"metrics": given})
    assert "1 of 8 splits" in table.sql(f"explain {SELECTIVE}").to_dict()[0]["explain_value"]


def test_it_prints_and_gives_plain_values(lake):
    said = lake.explain(SELECTIVE, analyze=True)
    assert "1 of 8 windows" in str(said)
    assert "cache hits" in str(said)
    values = said.to_dict()
    assert values["tables"][0]["steps"][1] == {"step": "split times", "units": "splits", "asked": 8, "kept": 1}


def test_it_draws_itself(lake):
    drawn = ET.fromstring(lake.explain("select 1 from metrics where host < '<&>'").svg())
    assert drawn.tag.endswith("svg")
    assert sum(each.tag.endswith("rect") for each in drawn.iter()) >= 6


def test_what_cannot_be_answered_cannot_be_explained(lake):
    with pytest.raises(NotFound, match="nowhere"):
        lake.explain("select * from nowhere")
    with pytest.raises(InvalidInput, match="'nothing'"):
        lake.explain("select nothing from metrics")


def test_plans_can_be_had_without_running(lake):
    plans = lake.plan(SELECTIVE)
    assert (list(plans), plans["metrics"].rows) == (["metrics"], 10)


@pytest.mark.parametrize("analyze", [False, True])
def test_an_answer_out_of_metadata_says_so(lake, analyze):
    explained = lake.explain("select count(*), min(timestamp) from metrics", analyze=analyze)
    (table,) = explained.tables
    assert table.from_metadata
    assert (table.files, table.rows, table.bytes, table.read) == (0, 0, 0, None)
    assert table.why == "nothing is read: metadata has the answer"
    assert explained.rows == (1 if analyze else None)
