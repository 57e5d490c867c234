"""Experiments on a table's own rows."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import numpy as np
import pyarrow as pa
import pytest

from windrow.compaction.arrival import Sorting, compare_given, compare_stored
from windrow.compaction.experiments import FanIn
from windrow.compaction.layouts import Layout
from windrow.compaction.plot import line_plot
from windrow.compaction.simulation import Arrivals, SimulatedClock, Simulation
from windrow.compaction.tune import Advice, _advice, tune
from windrow.errors import InvalidInput
from windrow.metastore import SqlMetastore
from windrow.model.settings import TableSettings
from windrow.model.timeseries import timeseries_ids
from windrow.splits.sorting import sorted_rows

from .conftest import HOUR, POINTS_SORT, points, rows_of

SETTINGS = TableSettings.of(sort="metric_name|host|timestamp/V2")


def scraped(hosts, ticks, value, jitter=0):
    """A scrape of every host at every tick, in the order in which a collector delivers it; answers may be delayed."""
    rng = np.random.default_rng(1)
    host, tick = np.tile(np.arange(hosts), ticks), np.repeat(np.arange(ticks), hosts)
    times = (HOUR + tick) * 10**6 + rng.integers(0, jitter + 1, host.size)
    rows = pa.table(
        {
            "metric_name": ["cpu"] * host.size,
            "host": [f"host-{number:03d}" for number in host],
            "timestamp": pa.array(times, pa.timestamp("us", tz="UTC")),
            "value": value(rng, host, tick),
        }
    )
    return rows.take(pa.array(np.argsort(times, kind="stable")))


def own_level(rng, host, tick):
    """Each series has a value of its own that seldom changes."""
    return rng.normal(size=host.max() + 1)[host] + tick // 50


def common_level(rng, host, tick):
    """All series have the same value at a time, which never comes again."""
    return rng.normal(size=tick.max() + 1)[tick]


@pytest.mark.parametrize("arrival", ["by time", "as given"])
def test_sorting_pays_where_series_resemble_themselves(arrival):
    found = compared(scraped(200, 100, own_level, jitter=999_999), arrival)
    assert found.saves >= 0.15
    assert found.pays
    assert found.verdict().startswith("sorting pays: it saves")


@pytest.mark.parametrize("arrival", ["by time", "as given"])
def test_sorting_does_not_pay_where_times_resemble_themselves(arrival):
    found = compared(scraped(200, 100, common_level), arrival)
    assert found.saves < 0
    assert "does not pay in bytes: sorted rows take" in found.verdict()


def test_rows_that_arrive_sorted_are_told_so():
    rows = sorted_rows(scraped(20, 100, own_level), SETTINGS.sort)
    found = compared(rows, "as given")
    assert (found.saves, found.arrives_sorted, found.pays) == (0.0, True, False)
    assert "already" in found.verdict()


def test_a_stored_table_that_is_sorted_by_time_arrives_sorted():
    rows = scraped(20, 100, own_level)
    found = compare_stored(rows, TableSettings.of(sort="timestamp+|host/V2"))
    assert found.arrives_sorted


def test_ids_of_series_are_no_part_of_what_arrives():
    settings = TableSettings.of(sort="metric_name|timeseries_id|timestamp/V2")
    rows = scraped(200, 100, own_level, jitter=999_999)
    with_ids = rows.append_column("timeseries_id", timeseries_ids(rows, tags=["host"]))
    stored = compare_stored(sorted_rows(with_ids, settings.sort), settings)
    given = compare_given(rows, settings, 10**6)
    assert abs(stored.saves - given.saves) < 0.05
    assert stored.pays


def test_rows_as_they_came_are_those_of_the_fullest_window():
    both = pa.concat_tables([scraped(2, 10, own_level), scraped(200, 899, own_level)])
    assert compare_given(both, SETTINGS, 1000).rows == 1000
    with pytest.raises(InvalidInput, match="arrived: the rows have no column 'timestamp'"):
        compare_given(both.drop_columns(["timestamp"]), SETTINGS, 1000)
    with pytest.raises(InvalidInput, match="arrived: no row has a timestamp"):
        compare_given(both.slice(0, 0), SETTINGS, 1000)


def compared(rows, arrival):
    if arrival == "as given":
        return compare_given(rows, SETTINGS, 10**6)
    return compare_stored(sorted_rows(rows, SETTINGS.sort), SETTINGS)


def test_all_experiments_on_a_small_table(lake):
    table = lake.table("metrics")
    before, version, steps = rows_of(lake), table.version(), []
    record = table.record()
    result = tune(lake.context.metastore, lake.context.store, record, most_rows=500, on_step=steps.append)
    assert result.rows == 500
    assert result.sorting.rows == 500
    assert result.verdict == result.sorting.verdict()
    assert [each.fan_in for each in result.fan_in] == [4, 8, 16]
    assert [round(each.write_amplification, 1) for each in result.fan_in] == sorted(
        (round(each.write_amplification, 1) for each in result.fan_in), reverse=True
    )
    assert all(each.seconds > 0 and each.query_ms > 0 and each.bytes_out < each.bytes_in for each in result.fan_in)
    assert [each.target // 2**20 for each in result.layouts[:4]] == [64, 128, 256, 512]
    assert [each.window for each in result.layouts[4:]] == [300, 900, 3600]
    assert all(each.splits_after >= 1 for each in result.layouts)
    assert {each.how for each in result.layouts} == {"simulated"}
    assert "the sample has 500 of the window's" in result.layouts[0].why
    assert "fan-in 8" in steps
    assert ET.fromstring(result.plot()).tag.endswith("svg")
    assert (rows_of(lake), table.version()) == (before, version)


def test_targets_and_windows_are_measured_where_the_rows_are_there(lake):
    result = lake.table("metrics").compact.tune(rows=10_000)
    how = {(each.name, each.target, each.window): (each.how, each.why) for each in result.layouts}
    assert set(how.values()) == {("measured", "")}
    short, mine, long = (each for each in result.layouts if each.name == "window")
    assert short.size_bytes < mine.size_bytes < long.size_bytes
    assert [each.splits_after for each in result.layouts] == [1.0] * 7
    assert all(0 < each.write_amplification < 1 for each in result.layouts)


def test_a_longer_window_is_simulated_where_its_rows_are_missing(empty_lake):
    table = empty_lake.create_table("metrics", sort=POINTS_SORT, retention="15m")
    table.ingest(points(1, rows=200, windows=3))
    result = table.compact.tune()
    assert [each.how for each in result.layouts if each.name == "window"] == ["measured", "measured", "simulated"]
    assert result.layouts[-1].why == "3 of the 4 windows that it would hold have rows"


def test_an_empty_table_is_refused(empty_lake):
    table = empty_lake.create_table("metrics", sort=POINTS_SORT)
    with pytest.raises(InvalidInput, match="ingest something first"):
        table.compact.tune()


def test_advice_names_what_sorting_does_not_save():
    found = _advice(SETTINGS, saving(0.05), [fan_in(4, 2.0, 1.0), fan_in(16, 1.5, 0.8)], layouts())
    assert [each.setting for each in found] == ["sort"]
    assert "saves 5.0% against the order of arrival, less than 10%" in found[0].why


def test_advice_is_what_the_experiments_found():
    found = _advice(SETTINGS, saving(0.5), [fan_in(4, 2.0, 1.0), fan_in(8, 1.5, 0.8), fan_in(16, 1.4, 1.4)], layouts())
    assert found[0] == Advice("policy.merge_factor", 16, 8, "rows were written 1.50 times in 0.80 s, the least of all")
    assert len(found) == 1


def test_a_larger_target_is_advised_where_it_leaves_fewer_files():
    settings = SETTINGS.changed(target_split_size="64MiB")
    (found,) = _advice(settings, saving(0.5), [fan_in(16, 1.5, 0.8)], layouts())
    assert (found.setting, found.better) == ("target_split_size", 128 * 2**20)
    assert found.why == "measured: a closed window then has 1 files, not 2"


def test_settings_of_ones_own_are_tried_too(empty_lake):
    table = empty_lake.create_table("metrics", sort=POINTS_SORT, window="10m", target_split_size="32MiB")
    table.ingest(points(1, rows=200, windows=1))
    result = table.compact.tune()
    assert [each.target // 2**20 for each in result.layouts if each.name == "target"] == [32, 64, 128, 256, 512]
    how = {each.window: (each.how, each.why) for each in result.layouts if each.name == "window"}
    assert (how[600], how[300]) == (("measured", ""), ("measured", ""))
    assert how[900] == ("simulated", "windows of 10m make none of 15m")


def saving(share):
    return Sorting(100, "by time", int(1000 * (1 - share)), 1000, share, arrives_sorted=False)


def fan_in(factor, amplification, seconds):
    return FanIn(factor, 48, seconds, 10.0, amplification, 100, 90, 1.0)


def layouts():
    def one(name, target, window, after):
        return Layout(name, "measured", "", target * 2**20, window, 100 * 2**20, 10, after, 1.5, 1.0, 1.0)

    targets = [one("target", 64, 900, 2.0), one("target", 128, 900, 1.0), one("target", 256, 900, 1.0)]
    return [*targets, one("window", 256, 900, 1.0)]


class TestSimulation:
    def test_the_same_seed_gives_the_same_day(self, tmp_path):
        assert self.simulated(tmp_path / "a", 1) == self.simulated(tmp_path / "b", 1)
        assert self.simulated(tmp_path / "a2", 1) != self.simulated(tmp_path / "c", 2)

    def test_closed_windows_come_down_to_few_files_at_a_bounded_cost(self, tmp_path):
        samples, run = self.simulated(tmp_path, 1)
        assert samples[-1].closed_windows > 0
        assert samples[-1].splits_per_closed_window < 3
        assert samples[-1].write_amplification < 4
        assert run[0] > 0

    @pytest.mark.parametrize(
        ("policy", "bound"),
        [({"name": "constant-write-amplification", "max_merge_ops": 1}, 1), ({"rewrite_budget": 2}, 2)],
    )
    def test_late_splits_do_not_lift_the_bound(self, tmp_path, policy, bound):
        samples, _ = self.simulated(tmp_path, 1, **policy)
        assert 0 < samples[-1].write_amplification <= bound
        assert samples[-1].rewrites == bound

    def simulated(self, folder, seed, **policy):
        folder.mkdir(exist_ok=True)
        clock = SimulatedClock()
        settings = TableSettings.of(
            sort="host|timestamp/V2", window="1m", late_data_acceptance_window=60, policy={"merge_factor": 5, **policy}
        )
        arrivals = Arrivals(sources=1, late_share=0.05, latest=180, commit_every=10)
        with SqlMetastore(f"sqlite:///{folder}/m.db", clock=clock) as metastore:
            run = Simulation.of(metastore, settings, clock, arrivals, seed)
            return list(run.run(0.1, 60)), (run.merges, run.written, run.arrived)


def test_a_plot_is_text_that_browsers_draw():
    drawn = line_plot({"a < b": {"one": [(0, 0), (10, 5)], "two": [(0, 1)]}, "empty": {}}, "hours")
    root = ET.fromstring(drawn)
    assert len(root.findall("{http://www.w3.org/2000/svg}polyline")) == 2
    assert "a &lt; b" in drawn
