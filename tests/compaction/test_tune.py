"""Experiments on a table's own rows."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest

from windrow.compaction.experiments import FanIn, sorting_saves
from windrow.compaction.plot import line_plot
from windrow.compaction.simulation import Arrivals, SimulatedClock, Simulation
from windrow.compaction.tune import Advice, Layout, _advice, tune
from windrow.errors import InvalidInput
from windrow.metastore import SqlMetastore
from windrow.model.settings import TableSettings

from .conftest import POINTS_SORT, points, rows_of

SETTINGS = TableSettings.of(sort="metric_name|host|timestamp/V2")


def test_sorting_is_measured_on_the_same_rows():
    after, before = sorting_saves(points(1, rows=20_000), SETTINGS)
    assert after < 0.9 * before


def test_all_experiments_on_a_small_table(lake):
    table = lake.table("metrics")
    before, version, steps = rows_of(lake), table.version, []
    record = table.record
    result = tune(lake.context.metastore, lake.context.store, record, most_rows=500, on_step=steps.append)
    assert result.rows == 500
    assert 0 < result.sorted_bytes < result.unsorted_bytes
    assert [each.fan_in for each in result.fan_in] == [4, 8, 16]
    assert [round(each.write_amplification, 1) for each in result.fan_in] == sorted(
        (round(each.write_amplification, 1) for each in result.fan_in), reverse=True
    )
    assert all(each.seconds > 0 and each.query_ms > 0 and each.bytes_out < each.bytes_in for each in result.fan_in)
    assert [each.target // 2**20 for each in result.layouts[:4]] == [64, 128, 256, 512]
    assert [each.window for each in result.layouts[4:]] == [300, 900, 3600]
    assert all(each.splits_after >= 1 for each in result.layouts)
    assert "fan-in 8" in steps
    assert ET.fromstring(result.plot()).tag.endswith("svg")
    assert (rows_of(lake), table.version) == (before, version)


def test_an_empty_table_is_refused(empty_lake):
    table = empty_lake.create_table("metrics", sort=POINTS_SORT)
    with pytest.raises(InvalidInput, match="ingest something first"):
        table.compact.tune()


def test_advice_names_what_sorting_does_not_save():
    found = _advice(SETTINGS, 0.05, [fan_in(4, 2.0, 1.0), fan_in(16, 1.5, 0.8)], layouts())
    assert [each.setting for each in found] == ["sort", "target_split_size"]
    assert "5%" in found[0].why


def test_advice_is_what_the_experiments_found():
    found = _advice(SETTINGS, 0.5, [fan_in(4, 2.0, 1.0), fan_in(8, 1.5, 0.8), fan_in(16, 1.4, 1.4)], layouts())
    assert found[0] == Advice("policy.merge_factor", 16, 8, "rows were written 1.50 times in 0.80 s, the least of all")
    assert (found[1].setting, found[1].better) == ("target_split_size", 128 * 2**20)


def fan_in(factor, amplification, seconds):
    return FanIn(factor, 48, seconds, 10.0, amplification, 100, 90, 1.0)


def layouts():
    def one(name, target, window, after):
        return Layout(name, target * 2**20, window, 100 * 2**20, 10, after, 1.5, 1.0, 1.0)

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
