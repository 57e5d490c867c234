"""TSBS cpu-only: fifteen questions of time-series users beside ClickHouse, DuckDB, Delta with Polars, hive folders.

400 hosts report for a day; 288 files of five minutes come in the order of arrival. Windrow has windows of an hour and
else the defaults, and is compacted. `hive` are DuckDB's folders of hours, sorted, whose hours each question names;
`duckdb_sorted` is a sorted table of DuckDB's own; `clickhouse` a MergeTree after OPTIMIZE FINAL; `delta` a table in
z-order, read by Polars; `duckdb` the files as they came. Each system has two threads and a process of its own; in each
round every system answers the same questions. `tsbs_<peer>_over_windrow_<type>` are lower quartiles of latency: what
others on the machine add is left out, what parameters differ in is not. `..._geomean` are over the types without
lastpoint, `..._narrow_geomean` and `..._wide_geomean` over theirs. Answers are compared before.
"""

from __future__ import annotations

import json
import math
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from benchmarks.measure import Options, Report, Worker, options
from benchmarks.tsbs_data import Tsbs
from benchmarks.tsbs_questions import NARROW, TYPES, WIDE
from benchmarks.tsbs_systems import LOADERS, OPENERS

PEERS = tuple(name for name in LOADERS if name != "windrow")
IN_A_ROW = 3
"""A process that slept while others ran has lost the processor's caches: it is asked some questions in a row."""
COLD = ("windrow", "hive", "duckdb_sorted", "clickhouse")
CONCURRENT = ("windrow", "hive", "duckdb_sorted", "clickhouse")


def python(function: str, *given: object) -> list[str]:
    """The command of a process that calls a function of `tsbs_systems`."""
    code = f"from benchmarks.tsbs_systems import {function}; {function}({', '.join(map(repr, given))})"
    return [sys.executable, "-c", code]


def printed(function: str, *given: object) -> Any:
    """What a process of its own prints last, as JSON."""
    found = subprocess.run(python(function, *given), stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(found.stdout.splitlines()[-1])


class Set:
    """The files of a set, and what the systems made of them, in one folder."""

    def __init__(self, folder: Path, rows: Tsbs, seconds: int) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.rows = rows
        self.files = folder / "files"
        if not self.files.exists():
            rows.write(folder / "files.half", seconds)
            (folder / "files.half").rename(self.files)
        # what a first load costs, of compiled code and of threads, is not measured
        self.warm = folder / "warm"
        if not self.warm.exists():
            Tsbs(4, 1).write(self.warm, 1800)

    def place(self, name: str) -> Path:
        return self.folder / name

    def load(self, names: Iterable[str], rounds: int) -> dict[str, dict[str, float]]:
        """Take the files in, in turn, some times; the least CPU of each step, and bytes."""
        found: dict[str, dict[str, float]] = {}
        for _ in range(rounds):
            for name in names:
                shutil.rmtree(self.place(name), ignore_errors=True)
                costs = printed("load", name, str(self.files), str(self.place(name)), str(self.warm))
                before = found.get(name, costs)
                found[name] = {step: min(cost, before[step]) for step, cost in costs.items()}
        return found


def loaded(set_: Set, asked: Options, report: Report) -> None:
    """Take the files into each system."""
    costs = set_.load(LOADERS, asked.pick(1, 1, 2))
    for name, steps in costs.items():
        report.add(
            what="ingest", way=name, cpu_s=steps.get("ingest"), mb=steps.get("ingested_bytes", steps["bytes"]) / 1e6
        )
        if "compact" in steps:
            report.add(what="compact", way=name, cpu_s=steps["compact"], mb=steps["bytes"] / 1e6)
    ours = costs["windrow"]
    for peer in PEERS[:-1]:
        report.ratios[f"ingest_{peer}_cpu_over_windrow"] = costs[peer]["ingest"] / ours["ingest"]
        report.ratios[f"bytes_over_{peer}"] = ours["bytes"] / costs[peer]["bytes"]
    report.ratios["compaction_cpu_over_ingest"] = ours["compact"] / ours["ingest"]
    report.ratios["bytes_compacted_over_ingested"] = ours["bytes"] / ours["ingested_bytes"]


def loaded_tiny(set_: Set, asked: Options, report: Report) -> None:
    """The same rows in ten times as many files."""
    costs = set_.load(("windrow", "hive"), asked.pick(1, 1, 2))
    for name, steps in costs.items():
        report.add(what="ingest tiny files", way=name, cpu_s=steps["ingest"])
    report.ratios["ingest_tiny_hive_cpu_over_windrow"] = costs["hive"]["ingest"] / costs["windrow"]["ingest"]


def compared(set_: Set, numbers: int) -> None:
    """All systems give the same answers."""
    rows = set_.rows
    found = {name: printed("answers", name, str(set_.place(name)), numbers, rows.hosts, rows.end) for name in OPENERS}
    for name, answers in found.items():
        for question, answer in answers.items():
            if not is_same(answer, found["duckdb"][question]):
                raise RuntimeError(
                    f"{name} answers {question} with {answer[:3]}, others {found['duckdb'][question][:3]}"
                )


def is_same(ours: list[list[Any]], theirs: list[list[Any]]) -> bool:
    """Whether two answers are equal, but for the last digits of means."""
    if [len(row) for row in ours] != [len(row) for row in theirs]:
        return False
    pairs = ((a, b) for row, other in zip(ours, theirs, strict=True) for a, b in zip(row, other, strict=True))
    return all(a == b or (isinstance(a, float) and math.isclose(a, b, abs_tol=2e-6)) for a, b in pairs)


def warm(set_: Set, asked: Options, report: Report) -> None:
    """Latency of each type in each system, processes in turn; and what is resident then."""
    rows = set_.rows
    given = (IN_A_ROW, rows.hosts, rows.end)
    latency: dict[str, dict[str, list[float]]] = {name: {kind: [] for kind in TYPES} for name in OPENERS}
    with ExitStack() as stack:
        workers = {name: Worker(python("server", name, str(set_.place(name)), *given)[-1]) for name in OPENERS}
        for worker in workers.values():
            stack.callback(worker.close)
        order = list(workers)
        for number in range(asked.pick(1, 5, 10) + 1):
            for name in order:
                _, wall = workers[name]()
                for place, kind in enumerate(TYPES):
                    latency[name][kind] += wall[place * IN_A_ROW :][:IN_A_ROW] if number else []
            order = order[1:] + order[:1]
        peaks = {name: worker.peak_rss for name, worker in workers.items()}
    _report_latency(report, {name: {k: quartile(v) for k, v in each.items()} for name, each in latency.items()})
    for name, peak in peaks.items():
        report.add(what="resident", way=name, mb=peak / 1e6)
    for peer in ("hive", "clickhouse"):
        report.ratios[f"rss_over_{peer}"] = peaks["windrow"] / peaks[peer]


def quartile(values: list[float]) -> float:
    return sorted(values)[len(values) // 4]


def _report_latency(report: Report, found: Mapping[str, Mapping[str, float]]) -> None:
    for kind in TYPES:
        ours = found["windrow"][kind]
        over = {peer: found[peer][kind] / ours for peer in PEERS}
        report.add(what="warm, peers over windrow", way=kind, windrow_ms=ours * 1000, **over)
        for peer, ratio in over.items():
            report.ratios[f"tsbs_{peer}_over_windrow_{kind}"] = ratio
    for peer in PEERS:
        for word, kinds in (("", TYPES[:-1]), ("narrow_", NARROW), ("wide_", WIDE)):
            ratios = [report.ratios[f"tsbs_{peer}_over_windrow_{kind}"] for kind in kinds]
            report.ratios[f"tsbs_{peer}_over_windrow_{word}geomean"] = statistics.geometric_mean(ratios)


def cold(set_: Set, asked: Options, report: Report) -> None:
    """A process that starts, answers one narrow question and ends: seconds and CPU seconds."""
    least: dict[str, tuple[float, float]] = {}
    for _ in range(asked.pick(1, 3, 5)):
        for name in COLD[: asked.pick(2, 4, 4)]:
            command = python("one", name, str(set_.place(name)), set_.rows.hosts, set_.rows.end)
            cpu, began = _children(), time.perf_counter()
            subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
            spent = time.perf_counter() - began, _children() - cpu
            least[name] = min(spent, least.get(name, spent))
    for name, (wall, spent_cpu) in least.items():
        report.add(what="cold process", way=name, wall_s=wall, cpu_s=spent_cpu)
        if name != "windrow":
            report.ratios[f"cold_{name}_over_windrow"] = wall / least["windrow"][0]


def _children() -> float:
    times = os.times()
    return times.children_user + times.children_system


def concurrent(set_: Set, asked: Options, report: Report) -> None:
    """Narrow questions a second that one thread gets answered, and eight, on one lake."""
    seconds, rows = asked.pick(0.1, 1.0, 2.0), set_.rows
    rates: dict[tuple[str, int], float] = {}
    for _ in range(asked.pick(1, 2, 3)):
        for name in CONCURRENT[: asked.pick(3, 4, 4)]:
            for threads in (1, 8) if name != "clickhouse" else (1,):
                rate = printed("rate", name, str(set_.place(name)), threads, seconds, rows.hosts, rows.end)
                rates[name, threads] = max(rate, rates.get((name, threads), 0.0))
    for (name, threads), each in rates.items():
        report.add(what=f"{threads} threads", way=name, questions_a_second=each)
    for peer in ("duckdb_sorted", "hive"):
        report.ratios[f"threads_8_windrow_over_{peer}"] = rates["windrow", 8] / rates[peer, 8]


def answered(set_: Set, asked: Options, _: Report) -> None:
    """Compare answers."""
    compared(set_, asked.pick(2, 2, 3))


PARTS = (loaded, answered, warm, cold, concurrent)


def main(argv: list[str] | None = None) -> None:
    """Run the benchmark."""
    paths = {"tables": "a folder for the tables, which are made anew"}
    asked = options(argv, __doc__, paths, {"hosts": "how many report", "hours": "how long they report"})
    report = Report("tsbs", ("duckdb", "polars", "deltalake", "chdb"))
    hosts = asked.numbers.get("hosts", asked.pick(9, 60, 400))
    rows = Tsbs(hosts, asked.numbers.get("hours", asked.pick(13, 24, 24)))
    with tempfile.TemporaryDirectory() as passing:
        folder = asked.paths.get("tables", Path(passing))
        for name, seconds, parts in (
            ("slices", asked.pick(1800, 300, 300), PARTS),
            ("tiny", asked.pick(600, 60, 30), (loaded_tiny,)),
        ):
            set_ = Set(folder / name, rows, seconds)
            for part in parts:
                part(set_, asked, report)
    report.show(asked)


if __name__ == "__main__":
    main()
