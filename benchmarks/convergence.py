"""A day of compaction in simulated time: splits per window, files a query opens, and how often rows are written.

A source writes a split a second, 0.1 % of them late. Planner, policies and metastore are the real ones; merges
only count rows and bytes. At full size it compares policies over three hours, then lets a day pass and draws
docs/compaction-convergence.svg anew, and at last lets two days pass over a table with a split a minute, whose windows
are gathered into cold ones.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.measure import Report, Size, options
from windrow.compaction.plot import line_plot
from windrow.compaction.simulation import Arrivals, SimulatedClock, Simulation, TableSample
from windrow.metastore import SqlMetastore
from windrow.model.settings import TableSettings

_PLOT = Path(__file__).parents[1] / "docs" / "compaction-convergence.svg"
_POLICIES: dict[str, dict[str, Any]] = {
    "stable-log, factor 4": {"merge_factor": 4, "max_merge_factor": 5},
    "stable-log, factor 8": {"merge_factor": 8, "max_merge_factor": 10},
    "stable-log, factor 10": {"merge_factor": 10, "max_merge_factor": 12},
    "stable-log, factor 16": {"merge_factor": 16, "max_merge_factor": 20},
    "constant, factor 10": {"name": "constant-write-amplification", "merge_factor": 10, "max_merge_factor": 12},
}

_MANY = Arrivals()
_FEW = Arrivals(rows=10_000, late_rows=100, seconds_between=60, commit_every=300)
"""A window of them has a megabyte: a day, gathered, is one file."""


def simulated(
    hours: float, policy: dict[str, Any], sample_every: int, arrivals: Arrivals = _MANY, cold: str | None = "1d"
) -> tuple[list[TableSample], Simulation]:
    """Let time pass over an empty table."""
    clock = SimulatedClock()
    settings = TableSettings.of(sort="metric_name|host|timestamp/V2", policy=policy, cold_window=cold)
    with tempfile.TemporaryDirectory() as folder, SqlMetastore(f"sqlite:///{folder}/m.db", clock=clock) as metastore:
        run = Simulation.of(metastore, settings, clock, arrivals)
        return list(run.run(hours, sample_every)), run


def add(report: Report, name: str, samples: Sequence[TableSample], run: Simulation) -> None:
    """Report how a run ended and what it cost."""
    last = samples[-1]
    report.add(
        what=name,
        hours=last.hours,
        closed_windows=last.closed_windows,
        splits_per_closed_window=last.splits_per_closed_window,
        most_in_a_closed_window=max(sample.most_in_a_closed_window for sample in samples),
        splits_per_open_window=max(sample.splits_per_open_window for sample in samples),
        write_amplification=last.write_amplification,
        merges=run.merges,
        cold_windows=last.cold_windows,
        splits_per_cold_window=last.splits_per_cold_window,
        files=last.splits,
        rewrites=last.rewrites,
    )


def draw(samples: Sequence[TableSample]) -> str:
    """Draw the day."""
    over: dict[str, list[tuple[float, float]]] = {
        name: [(sample.hours, float(getattr(sample, name))) for sample in samples]
        for name in (
            "splits_per_closed_window",
            "most_in_a_closed_window",
            "splits_per_open_window",
            "write_amplification",
        )
    }
    return line_plot(
        {
            "closed windows: splits": {
                "on average": over["splits_per_closed_window"],
                "at most": over["most_in_a_closed_window"],
            },
            "open windows: splits": {"on average": over["splits_per_open_window"]},
            "write amplification": {"bytes merged / arrived": over["write_amplification"]},
        },
        "hours",
    )


def main(argv: Sequence[str] | None = None) -> None:
    """Run the simulation."""
    asked = options(argv, __doc__)
    report = Report("convergence", ("sqlalchemy",))
    names = asked.pick(["stable-log, factor 16"], ["stable-log, factor 16"], list(_POLICIES))
    for name in names:
        add(report, name, *simulated(asked.pick(0.2, 2, 3), _POLICIES[name], asked.pick(120, 600, 600)))
    if asked.size is Size.FULL:
        samples, run = simulated(24, {}, 600)
        add(report, "a day, as tables are by default", samples, run)
        _PLOT.write_text(draw(samples), encoding="utf-8")
        for cold in ("1d", None):
            add(report, f"a split a minute, cold window {cold or 'off'}", *simulated(50, {}, 600, _FEW, cold))
    last = report.table[-1]
    for ratio in ("splits_per_closed_window", "splits_per_open_window", "write_amplification"):
        report.ratios[ratio] = float(last[ratio])
    report.show(asked)


if __name__ == "__main__":
    main()
