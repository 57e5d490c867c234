"""A column gets another type: both schema epochs are one table, whichever way it is read."""

import pickle
from datetime import UTC, date, datetime, timedelta

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.engines.streams import streamed

import windrow
from windrow.engines.arrow import virtual_files
from windrow.engines.spark.data_frame import _reads_natively
from windrow.engines.spark.shares import Task, deal_out, files_of
from windrow.errors import Conflict, InvalidInput, NotFound
from windrow.ingest.run import Ingest
from windrow.ingest.settings import IngestSettings
from windrow.ingest.sources import source_of
from windrow.retyping import Retype

START = datetime(2026, 1, 1, tzinfo=UTC)
TEXTS = ["1", "20", "3.5", "many", None, "-7"]
NUMBERS = [100.0, 5.0, None, 2.5]
BEFORE = pa.table(
    {
        "timestamp": [START + timedelta(seconds=n) for n in range(6)],
        "host": [f"h{n}" for n in range(6)],
        "load": TEXTS,
    }
)
AFTER = pa.table(
    {
        "timestamp": [START + timedelta(seconds=10 + n) for n in range(4)],
        "host": [f"h{n}" for n in range(4)],
        "load": pa.array(NUMBERS, pa.float64()),
    }
)
BOTH = {
    "cast_or_null": [1.0, 20.0, 3.5, None, None, -7.0, *NUMBERS],
    "null": [None] * 6 + NUMBERS,
}


@pytest.fixture
def lake(tmp_path):
    with windrow.connect(tmp_path / "lake") as opened:
        yield opened


@pytest.fixture
def events(lake):
    """A table of two splits whose column `load` is text."""
    table = lake.create_table("events", sort="host|timestamp/V2")
    table.ingest(BEFORE.slice(0, 3))
    table.ingest(BEFORE.slice(3))
    return table


@pytest.fixture
def both(events):
    """The same, after the column became a number and rows with numbers came."""
    events.retype.run("load", "double", old_values="cast_or_null")
    events.ingest(AFTER)
    return events


def loads(rows):
    """The values of the column, in order of time."""
    return rows.sort_by("timestamp")["load"].to_pylist()


@pytest.mark.parametrize("rule", BOTH)
def test_old_values_are_read_by_the_rule(lake, events, rule):
    with pytest.raises(InvalidInput, match=r"table\.retype"):
        events.ingest(AFTER)
    result = events.retype.run("load", "double", old_values=rule)
    events.ingest(AFTER)
    assert (result.version, events.record().schema_epoch) == (3, 1)
    assert loads(events.scan().to_arrow()) == BOTH[rule]
    assert loads(lake.sql("select * from events").to_arrow()) == BOTH[rule]


def test_a_change_without_a_rule_is_refused_and_changes_nothing(events):
    for verb in (events.retype.plan, events.retype.run):
        with pytest.raises(InvalidInput, match="say by old_values how values that exist are read"):
            verb("load", "double")
        with pytest.raises(InvalidInput, match="'round' is no rule"):
            verb("load", "double", old_values="round")
    assert (events.version(), events.record().schema_epoch) == (2, 0)


def test_a_plan_counts_what_will_read_as_null_and_changes_nothing(events):
    plan = events.retype.plan("load", "double", old_values="cast_or_null")
    assert (plan.type_before, plan.type_after, plan.schema_epoch) == ("string", "double", 1)
    assert (plan.splits, plan.rows, plan.nulled) == (2, 6, 1)
    assert events.retype.plan("load", "double", old_values="null").nulled == 5
    assert (events.version(), events.record().schema_epoch) == (2, 0)


def test_a_strict_cast_is_refused_while_there_is_a_value_that_does_not_fit(events):
    with pytest.raises(InvalidInput, match="1 values of string cannot become double exactly, such as 'many'"):
        events.retype.run("load", "double", old_values="cast")
    with pytest.raises(InvalidInput, match="2 values of string cannot become int64 exactly"):
        events.retype.run("load", "int64", old_values="cast")
    assert (events.version(), events.record().schema_epoch) == (2, 0)


@pytest.mark.parametrize(
    ("column", "kind", "error", "problem"),
    [
        ("timestamp", "string", InvalidInput, "windows are told by it"),
        ("load", "string", InvalidInput, "is string already"),
        ("load", "dubble", InvalidInput, "is no type"),
        ("lode", "double", NotFound, "has no column 'lode'"),
        ("small", "int64", InvalidInput, "widens by itself"),
        ("small", pa.list_(pa.int64()), InvalidInput, "cannot become list"),
    ],
)
def test_a_change_that_cannot_be_made_or_needs_no_epoch_is_refused(events, column, kind, error, problem):
    events.ingest(BEFORE.append_column("small", pa.array([1] * 6, pa.int16())))
    with pytest.raises(error, match=problem):
        events.retype.run(column, kind, old_values="cast_or_null")
    assert events.record().schema_epoch == 0


@pytest.mark.parametrize(
    ("kind", "values", "to", "read"),
    [
        (pa.int64(), [1, 2**53 + 1, -4], "double", [1.0, None, -4.0]),
        (pa.float64(), [1.0, 1.5, float("nan"), 1e300], "int64", [1, None, None, None]),
        (pa.string(), ["7", "7.5", "7e2", " 8", "9007199254740993"], "int64", [7, None, 700, 8, 9007199254740993]),
        (pa.int64(), [1, 0, 5], "bool", [True, False, None]),
        (pa.int64(), [300, 7], "int8", [None, 7]),
        (pa.float64(), [0.25, 1.0], "string", ["0.25", "1.0"]),
        (pa.string(), ["2026-01-02", "2026-01-02 12:00", "x"], "date32", [date(2026, 1, 2), None, None]),
        (pa.string(), ["1.25", "1.257"], "decimal(10, 2)", ["1.25", None]),
        (
            pa.timestamp("us"),
            [datetime(2026, 1, 2, 3, tzinfo=UTC).replace(tzinfo=None), None],
            "timestamp[us, tz=UTC]",
            [datetime(2026, 1, 2, 3, tzinfo=UTC), None],
        ),
        (
            pa.string(),
            ["2026-01-02T03:00:00+02:00", "2026-01-02 03:00"],
            "timestamp[us, tz=UTC]",
            [datetime(2026, 1, 2, 1, tzinfo=UTC), datetime(2026, 1, 2, 3, tzinfo=UTC)],
        ),
        (
            pa.string(),
            ["2026-01-02T03:00:00+02:00", "2026-01-02 03:00Z", "2026-01-02", "3 o'clock"],
            "timestamp[us]",
            [datetime(2026, 1, 2, hour) for hour in (1, 3, 0)] + [None],  # noqa: DTZ001 - it has no zone
        ),
        (pa.timestamp("us", "UTC"), [datetime(2026, 1, 2, 3, tzinfo=UTC)], "string", ["2026-01-02 03:00:00"]),
    ],
)
def test_a_value_is_converted_exactly_or_reads_as_null(lake, kind, values, to, read):
    table = lake.create_table("events", sort="host|timestamp/V2")
    times = [START + timedelta(seconds=n) for n in range(len(values))]
    table.ingest(pa.table({"timestamp": times, "host": ["a"] * len(values), "load": pa.array(values, kind)}))
    unfit = sum(value is None for value in read) - values.count(None)
    result = table.retype.run("load", to, old_values="cast_or_null")
    assert result.plan.nulled == unfit
    found = table.scan().to_arrow().sort_by("timestamp")["load"]
    assert [str(value) if "decimal" in to and value is not None else value for value in found.to_pylist()] == read
    lake.sql("set timezone = 'Asia/Tokyo'")
    assert lake.sql("select load from events order by timestamp").to_arrow()["load"].cast(found.type) == found


CONDITIONS = [
    "load > 4",
    "load < 4",
    "load = 20",
    "load in (3.5, 100)",
    "load between 1 and 5",
    "load is null",
    "load is not null",
    "not load > 4",
    "load > 4 or host = 'h0'",
    "load > 4 and host >= 'h1'",
    "load > 1000",
    "host = 'h2'",
    "load <> 20 and host <> 'h3'",
]


@pytest.mark.parametrize("sort", ["host|timestamp/V2", "load|timestamp/V2"])
def test_a_condition_selects_the_rows_that_it_selects_of_one_table(lake, sort):
    table = lake.create_table("events", sort=sort, bloom_filters=["load"])
    for half in (BEFORE.slice(0, 3), BEFORE.slice(3)):
        table.ingest(half)
    table.retype.run("load", "double", old_values="cast_or_null")
    table.ingest(AFTER)
    expected = pa.concat_tables([BEFORE.select(["timestamp", "host"]), AFTER.select(["timestamp", "host"])])
    expected = expected.append_column("load", pa.array(BOTH["cast_or_null"], pa.float64()))
    for condition in CONDITIONS:
        query = f"from {{}} where {condition} order by timestamp"
        wanted = lake.sql(query.format("expected"), tables={"expected": expected}).to_arrow().to_pylist()
        for _ in range(2):  # the second time, what is cached answers
            assert lake.sql(query.format("events")).to_arrow().select(expected.column_names).to_pylist() == wanted
        assert streamed(lake, query.format("events")).num_rows == len(wanted)
        scan = table.scan(where=condition)
        assert loads(scan.to_arrow()) == [row["load"] for row in wanted], condition
        assert scan.count() == len(wanted)
        assert scan.to_duckdb().order("timestamp").select("load").fetchall() == [(row["load"],) for row in wanted]
        assert scan.to_polars().sort("timestamp").collect()["load"].to_list() == [row["load"] for row in wanted]
        assert table.sql(f"select count(*) as n from events where {condition}").to_arrow()["n"].to_pylist() == [
            len(wanted)
        ]
        assert table.plan(condition).rows >= len(wanted)
        assert lake.explain(f"select load from events where {condition}", analyze=True).rows == len(wanted)


def test_polars_asks_its_own_conditions_of_both_epochs(both):
    found = both.scan().to_polars().filter(pl.col("load") > 4).sort("timestamp").collect()
    assert found["load"].to_list() == [20.0, 100.0, 5.0]


@pytest.mark.parametrize(
    ("query", "answer"),
    [
        ("select count(*) from events", (10,)),
        ("select count(load), min(load), max(load) from events", (7, -7.0, 100.0)),
        ("select count(*), max(timestamp) from events where load > 4", (3, START + timedelta(seconds=11))),
        ("select min(host), max(host) from events", ("h0", "h5")),
        ("select count(*) from events where host = 'h4'", (1,)),
    ],
)
def test_counts_and_extremes_are_those_of_both_epochs(lake, both, query, answer):
    assert both.version() == 4
    assert tuple(lake.sql(query).to_arrow().to_pylist()[0].values()) == answer


def test_metadata_still_answers_what_did_not_change(lake, both):
    assert both.version() == 4
    query = "select count(*), min(host), max(host) from events"
    assert "metadata has the answer" in lake.explain(query).funnel


def test_splits_of_an_earlier_epoch_are_pruned_by_columns_that_did_not_change(both):
    assert both.plan("host = 'h5' and load > 4").rows == 3, "the second split alone"
    assert both.plan("load > 99").rows == 10, "old values may be anything"


def test_an_older_version_shows_the_old_type(lake, both):
    assert loads(both.at(version=2).scan().to_arrow()) == TEXTS
    assert loads(both.at(version=2).sql("from events where load <> '20'").to_arrow()) == ["1", "3.5", "many", "-7"]
    assert [str(row.type) for row in both.at(version=2).inspect.columns() if row.name == "load"] == ["string"]
    assert loads(both.at(version=3).scan().to_arrow()) == BOTH["cast_or_null"][:6]
    assert loads(both.scan().to_arrow()) == BOTH["cast_or_null"]


def test_values_go_through_every_change_that_followed(both):
    both.retype.run("load", "int64", old_values="cast_or_null")
    both.ingest(AFTER.set_column(2, "load", pa.array([8, 9, None, 11], pa.int64())))
    both.retype.run("load", "string", old_values="cast")
    expected = ["1", "20", None, None, None, "-7", "100", "5", None, None, "8", "9", None, "11"]
    found = both.scan().to_arrow()
    assert sorted(map(str, found["load"].to_pylist())) == sorted(map(str, expected))
    assert sorted(map(str, loads(both.at(version=4).scan().to_arrow()))) == sorted(map(str, BOTH["cast_or_null"]))
    assert both.scan(where="load = '20'").count() == 1


def test_a_column_goes_on_widening_in_its_epoch(events):
    events.retype.run("load", "int16", old_values="cast_or_null")
    events.ingest(AFTER.set_column(2, "load", pa.array([1, 2, None, 4], pa.int64())))
    assert loads(events.scan().to_arrow()) == [1, 20, None, None, None, -7, 1, 2, None, 4]
    assert events.scan().to_arrow().schema.field("load").type == pa.int64()


def test_tasks_elsewhere_read_both_epochs(both):
    selection = both.scan(where="load > 4 or load is null", columns=["load", "timestamp"]).selection
    plan = virtual_files(selection, both.scan().context).source.plan
    task = pickle.loads(pickle.dumps(Task.of(selection, both.context.url, {})))
    shares = deal_out(files_of(plan), 1)
    assert sum(len(share.files) for share in shares) == 3
    rows = pa.Table.from_batches([batch for share in shares for batch in task.rows(share)])
    assert loads(rows) == [20.0, None, None, 100.0, 5.0, None]


def test_labels_of_a_column_that_became_text_are_those_of_both_epochs(lake):
    table = lake.create_table("events", sort="host|timestamp/V2")
    table.ingest(AFTER)
    table.retype.run("load", "string", old_values="cast_or_null")
    table.ingest(BEFORE)
    assert {row.value for row in table.inspect.labels("load")} == {"100.0", "5.0", "2.5", *filter(None, TEXTS)}


def test_attributes_of_an_earlier_epoch_are_converted_too(lake):
    table = lake.create_table("events", sort="host|timestamp/V2")
    times = [START + timedelta(seconds=n) for n in range(3)]
    maps = pa.array([[("code", "7")], [("code", "x")], []], pa.map_(pa.string(), pa.string()))
    rows = {"timestamp": times, "host": ["a"] * 3, "code": [None, None, "9"], "attributes": maps}
    table.ingest(pa.table(rows))
    before = table.scan(columns=["code", "timestamp"]).to_arrow().sort_by("timestamp")["code"].to_pylist()
    table.retype.run("code", "int64", old_values="cast_or_null")
    after = table.scan(columns=["code", "timestamp"]).to_arrow().sort_by("timestamp")["code"].to_pylist()
    assert (before, after) == (["7", "x", "9"], [7, None, 9])
    assert lake.sql("select sum(code) as n from events").to_arrow()["n"].to_pylist() == [16]


def test_registered_files_stay_in_their_epoch(lake, events, tmp_path):
    pq.write_table(BEFORE, tmp_path / "old.parquet")
    events.register.run(tmp_path / "old.parquet")
    events.retype.run("load", "double", old_values="cast_or_null")
    pq.write_table(BEFORE, tmp_path / "same.parquet")
    with pytest.raises(InvalidInput, match="load"):
        events.register.run(tmp_path / "same.parquet")
    pq.write_table(AFTER, tmp_path / "new.parquet")
    events.register.run(tmp_path / "new.parquet")
    assert lake.sql("select sum(load) as n from events").to_arrow()["n"].to_pylist() == [2 * 17.5 + 107.5]


def test_compaction_merges_each_epoch_by_itself(both):
    both.ingest(AFTER)
    both.change.run(policy={"merge_factor": 2})
    merged = both.compact.run()
    assert (merged.done, both.version()) == (2, 7)
    splits = [split for page in both.context.metastore.splits(both.record().table_id, both.version()) for split in page]
    assert sorted((split.scope.doc_mapping_uid, split.row_count) for split in splits) == [(0, 6), (1, 8)]
    assert sorted(map(str, loads(both.scan().to_arrow()))) == sorted(map(str, BOTH["cast_or_null"] + NUMBERS))
    assert both.compact.run().done == 0
    assert not both.upkeep.check(data=True).findings


def test_an_ingest_that_was_planned_before_a_change_is_not_published_after_it(events):
    run = Ingest.of(events.context, "events", IngestSettings())
    source = source_of(BEFORE)
    opened = run.open(source.schema)
    reports = source.run(opened.task.report, None, None)
    events.retype.run("load", "double", old_values="cast_or_null")
    with pytest.raises(Conflict, match="written for schema epoch 0, and the table is at epoch 1") as refused:
        run.publish(opened.commit.attempt, reports)
    assert refused.value.retryable
    assert (events.version(), events.scan().count()) == (3, 6)


def test_an_ingest_that_reserves_its_columns_after_a_change_is_not_published_under_the_old_epoch(events):
    run = Ingest.of(events.context, "events", IngestSettings())
    events.retype.run("load", "double", old_values="cast_or_null")
    with pytest.raises(Conflict, match="written for schema epoch 0"):
        run.run(source_of(AFTER))
    assert events.scan().count() == 6


def test_rows_that_come_while_a_strict_cast_is_planned_are_looked_at_too(events, monkeypatch):
    events.retype.run("load", "double", old_values="cast_or_null")
    events.ingest(AFTER)
    verbs, came = events.retype, iter([2.0, 0.5])
    plain = Retype._nulled

    def meanwhile(self, *arguments):
        found = plain(self, *arguments)
        for value in came:
            events.ingest(AFTER.set_column(2, "load", pa.array([value] * 4)))
            break
        return found

    monkeypatch.setattr(Retype, "_nulled", meanwhile)
    with pytest.raises(InvalidInput, match=r"cannot become int32 exactly, such as (3\.5|2\.5|0\.5)"):
        verbs.run("load", "int32", old_values="cast")
    assert events.record().schema_epoch == 1


def test_a_type_that_comes_back_brings_no_value_back(lake, events):
    """Files of the first epoch have the type that the table has now; nobody may read them as they are."""
    events.retype.run("load", "double", old_values="null")
    events.retype.run("load", "string", old_values="cast")
    for _ in range(3):  # what is asked often is decoded and cached
        assert lake.sql("select load from events where host = 'h1'").to_arrow()["load"].to_pylist() == [None]
        assert lake.sql("select load from events where load = '20'").to_arrow().num_rows == 0
    assert lake.sql("select count(load) as n, max(load) as m from events").to_arrow().to_pylist() == [
        {"n": 0, "m": None}
    ]
    assert events.scan(where="load is null").count() == 6
    assert not list(events.inspect.labels("load"))
    selection = events.scan().selection
    plan = virtual_files(selection, events.scan().context).source.plan
    assert not _reads_natively(selection, plan, files_of(plan)), "Spark's own reader knows no rule"
