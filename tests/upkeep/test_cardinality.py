"""The cardinality of a table is put together from statistics: no data is read for it, and what is missing is named."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from windrow.errors import InvalidInput
from windrow.statistics.label_catalog import LABELS
from windrow.testing import RecordingStore

CONDITIONS = ("pod is null", "pod is not null", "pod = 'pod 1'", "coalesce(pod, '') = ''")
TSBS = Path(__file__).parents[1] / "data" / "tsbs"
START, WINDOW = 1_699_900_200_000_000, 900_000_000


def points(window: int, series: int, *, hosts: int, first_host: int = 0, metrics: int = 2) -> pa.Table:
    """Two points for each series of a window; hosts differ from `first_host` on."""
    numbers = np.arange(2 * series) % series
    return pa.table(
        {
            "metric_name": [f"metric {number % metrics}" for number in numbers],
            "host": [f"host {first_host + number // metrics % hosts}" for number in numbers],
            "zone": [f"zone {number % 3}" for number in numbers],
            "timestamp": pa.array(START + window * WINDOW + np.arange(2 * series) * 1000, pa.timestamp("us", "UTC")),
            "value": np.arange(2 * series) * 0.5,
        }
    )


@pytest.fixture
def metrics(lake):
    return lake.create_table("metrics", sort="metric_name|host|timeseries_id|timestamp/V2", window="15m", mirror=False)


def exact(table, expression: str) -> int:
    return table.sql(f"select count(distinct {expression}) from metrics").to_arrow().column(0)[0].as_py()


def test_small_counts_are_those_of_the_rows(metrics):
    for window in range(3):
        metrics.ingest(points(window, 60, hosts=10, first_host=5 * window))
    found = metrics.inspect.cardinality(learn=True)
    assert (found.rows, found.error, found.missing, found.hint) == (360, 0.0, (), None)
    assert found.series == exact(metrics, "timeseries_id")
    columns = {row.column: row for row in found.columns}
    for name in ("metric_name", "host", "zone", "value", "timestamp"):
        assert (columns[name].distinct, columns[name].error) == (exact(metrics, f'"{name}"'), 0.0)
    assert {row.column for row in found.columns if row.is_label} == {"host", "zone"}
    [pair] = found.pairs
    assert (pair.labels, pair.distinct, pair.error) == ("host, zone", exact(metrics, "(host, zone)"), 0.0)
    query = "select metric_name as metric, count(distinct timeseries_id) as series from metrics group by 1 order by 1"
    expected = metrics.sql(query).to_arrow().to_pylist()
    assert sorted(({"metric": row.metric, "series": row.series} for row in found.metrics), key=str) == expected
    assert sum(row.new for row in found.windows) == found.series
    assert [row.rows for row in found.windows] == [120] * 3


def test_the_label_that_grows_with_the_series_is_named(metrics):
    for window in range(6):
        metrics.ingest(points(window, 40, hosts=20, first_host=20 * window))
    found = metrics.inspect.cardinality(learn=True)
    assert found.exploding == "host"
    growth = {row.column: row.growth for row in found.columns if row.is_label}
    assert growth["host"] == pytest.approx(1, abs=0.2)
    assert growth["zone"] == 0
    assert [row.new == row.series for row in found.windows] == [True] * 6


def test_labels_that_stand_still_explode_nothing(metrics):
    for window in range(4):
        metrics.ingest(points(window, 40, hosts=20))
    found = metrics.inspect.cardinality(learn=True)
    assert found.exploding is None
    assert [row.new for row in found.windows] == [found.series, 0, 0, 0]
    assert not any(row.explodes for row in found.columns)


def test_many_series_are_within_the_error_that_is_stated(metrics):
    for window in range(3):
        metrics.ingest(points(window, 6000, hosts=3000, first_host=1200 * window))
    found = metrics.inspect.cardinality(learn=True)
    assert 0 < found.error < 0.02
    count = exact(metrics, "timeseries_id")
    assert found.series == pytest.approx(count, rel=4 * found.error)
    hosts = next(row for row in found.columns if row.column == "host")
    assert hosts.distinct == pytest.approx(5400, rel=4 * hosts.error)
    for row in found.metrics:
        assert row.series == pytest.approx(
            exact(metrics, f"case when metric_name = '{row.metric}' then timeseries_id end"), rel=4 * row.error
        )
    assert found.windows[1].new == pytest.approx(2400, abs=4 * found.windows[1].new_error)
    assert found.exploding == "host"


def test_no_data_is_read_once_statistics_exist(world):
    world.store = store = RecordingStore(world.store)
    with world.open() as lake:
        lake.create_table("metrics", sort="metric_name|host|timestamp/V2", window="15m").ingest(points(0, 50, hosts=9))
        first = lake.table("metrics").inspect.cardinality(learn=True)
    before = len(store.calls)
    with world.open() as lake:
        opened = len(store.calls)
        assert lake.table("metrics").inspect.cardinality() == first
        assert lake.table("metrics").inspect.cardinality(learn=True) == first
        assert lake.table("metrics").upkeep.analyze().columns == 0
        assert store.calls[opened:] == ()
    assert before > 0


def test_what_is_missing_is_named_and_how_to_get_it(metrics):
    metrics.ingest(points(0, 20, hosts=5))
    nothing = metrics.inspect.cardinality()
    assert (nothing.series, nothing.error, len(nothing.windows)) == (None, None, 0)
    assert nothing.missing[-1] == "labels and series"
    assert nothing.hint == "windrow analyze metrics reads what is missing, once"
    metrics.upkeep.analyze(["host", "timeseries_id"])
    some = metrics.inspect.cardinality()
    assert {row.column: row.distinct for row in some.columns}["host"] == 5
    assert some.series == exact(metrics, "timeseries_id")
    metrics.upkeep.analyze()
    metrics.ingest(points(1, 20, hosts=5))
    late = metrics.inspect.cardinality()
    assert (late.series, late.error) == (some.series, None)
    assert "host" in late.missing
    assert {row.column: row.error for row in late.columns}["host"] is None


def test_columns_that_came_later_are_null_before(metrics):
    metrics.ingest(points(0, 20, hosts=5))
    later = points(1, 20, hosts=5)
    metrics.ingest(later.append_column("pod", pa.array([f"pod {n % 4}" for n in range(40)])))
    found = metrics.inspect.cardinality(learn=True)
    assert found.missing == ()
    assert {row.column: (row.distinct, row.error) for row in found.columns}["pod"] == (4, 0.0)
    pairs = {row.labels: row.distinct for row in found.pairs}
    assert pairs["host, pod"] == exact(metrics, "case when pod is not null then (host, pod) end")
    counted = {text: metrics.sql(f"select * from metrics where {text}").to_arrow().num_rows for text in CONDITIONS}
    assert counted == {"pod is null": 40, "pod is not null": 40, "pod = 'pod 1'": 10, "coalesce(pod, '') = ''": 40}
    [pod] = [row for row in metrics.inspect.statistics() if row.column == "pod"]
    assert (pod.nulls, pod.learnt_rows) == (40, 80)


def test_a_column_that_changed_its_type_is_counted_as_far_as_its_values_compare(lake):
    table = lake.create_table("events", sort="host|timestamp/V2", window="15m", mirror=False)
    rows = points(0, 20, hosts=5).drop_columns(["metric_name", "zone"])
    table.ingest(rows.set_column(2, "value", pa.array(range(40))))
    lake.table("events").retype.run("value", "string", old_values="cast")
    changed = lake.table("events").inspect.cardinality(learn=True)
    assert {row.column: (row.distinct, row.error) for row in changed.columns}["value"] == (None, None)
    assert (changed.missing, changed.hint) == (("value (values of an earlier type)",), None)
    rows = points(1, 20, hosts=5).drop_columns(["metric_name", "zone"])
    lake.table("events").ingest(
        rows.set_column(2, "value", pa.array([str(number) for number in range(30)] + ["0"] * 10))
    )
    later = lake.table("events").inspect.cardinality(learn=True)
    assert {row.column: (row.distinct, row.error) for row in later.columns}["value"] == (30, None)
    assert lake.table("events").upkeep.analyze().columns == 0


def test_nan_only_and_all_null_columns_have_one_value_and_none(lake):
    table = lake.create_table("events", sort="host|timestamp/V2", window="15m", mirror=False)
    rows = points(0, 20, hosts=5).drop_columns(["metric_name", "zone", "value"])
    table.ingest(
        rows.append_column("nan", pa.array([float("nan")] * 40)).append_column("none", pa.nulls(40, pa.int64()))
    )
    found = lake.table("events").inspect.cardinality(learn=True)
    assert {row.column: (row.distinct, row.error) for row in found.columns if row.column in ("nan", "none")} == {
        "nan": (1, 0.0),
        "none": (0, 0.0),
    }


def test_an_older_version_has_its_own_counts_and_is_not_learnt_alone(metrics):
    metrics.ingest(points(0, 20, hosts=5))
    metrics.ingest(points(1, 20, hosts=5, first_host=5))
    newest = metrics.inspect.cardinality(learn=True)
    older = metrics.at(version=1).inspect
    assert older.cardinality().series * 2 == newest.series
    with pytest.raises(InvalidInput, match="newest version"):
        older.cardinality(learn=True)


def test_merges_pass_labels_on_without_reading(lake, metrics):
    for part in range(3):
        metrics.ingest(points(0, 60, hosts=10, first_host=5 * part))
    before = metrics.inspect.cardinality(learn=True)
    assert metrics.compact.run(threads=1).done == 1
    after = lake.table("metrics").inspect.cardinality()
    assert after.missing == ()
    assert (after.series, after.columns, after.pairs, after.metrics) == (
        before.series,
        before.columns,
        before.pairs,
        before.metrics,
    )
    assert metrics.upkeep.analyze().columns == 0


def test_damaged_records_count_as_none_and_are_learnt_again(metrics):
    metrics.ingest(points(0, 60, hosts=10))
    expected = metrics.inspect.cardinality(learn=True)
    metastore, table_id = metrics.context.metastore, metrics.record().table_id
    [split] = [split.split_id for page in metastore.splits(table_id, metrics.version()) for split in page]
    stored = metastore.statistics(table_id, [split], [LABELS, "host"])
    for damaged in (b"", b"noise", stored[0].data[:-1], stored[1].data):
        current = metastore.statistics(table_id, [split], [LABELS])
        metastore.store_statistics(table_id, [replace(each, data=damaged) for each in current])
        found = metrics.inspect.cardinality()
        assert (found.missing, len(found.pairs), found.series) == (("labels and series",), 0, expected.series)
        assert metrics.inspect.cardinality(learn=True) == expected


def test_points_of_a_benchmark_that_others_made_are_counted(lake):
    table = lake.create_table("cpu", sort="hostname|timestamp/V2", window="15m", mirror=False)
    for path in sorted(TSBS.glob("*.parquet")):
        table.ingest(pq.read_table(path))
    found = lake.table("cpu").inspect.cardinality(learn=True)
    labels = [row.column for row in found.columns if row.is_label]
    assert (found.series, found.error, len(labels), len(found.pairs)) == (400, 0.0, 10, 45)
    rows = pa.concat_tables(pq.read_table(path) for path in TSBS.glob("*.parquet"))
    for row in found.columns:
        assert (row.distinct, row.error) == (len(rows[row.column].unique()), 0.0)
    for row in found.pairs:
        count = rows.group_by(row.labels.split(", ")).aggregate([]).num_rows
        assert row.distinct == pytest.approx(count, rel=4 * row.error)


def test_an_empty_table_has_no_series(metrics):
    found = metrics.inspect.cardinality(learn=True)
    assert (found.rows, found.series, found.missing) == (0, None, ())


def test_people_see_tables_and_programs_values(metrics):
    metrics.ingest(points(0, 20, hosts=5))
    found = metrics.inspect.cardinality(learn=True)
    text = repr(found)
    assert text.startswith("table      metrics\n")
    assert [line for line in text.splitlines() if line.startswith("host")]
    assert Counter(map(type, found.to_dict().values()))[list] == 4
