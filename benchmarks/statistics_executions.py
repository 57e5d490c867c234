"""The first execution of each query against the second, over files that nothing was known of (the paper's Fig. 7).

Each lake has a cache folder of its own, which is empty: the first execution reads footers and leaves statistics behind,
the second one of the very same query finds them. `learning` is what the learner does when the first one has ended.
`duckdb` is DuckDB on the same files, on a connection that is kept. Where a folder for large files is given, the same at
scale 10 with less memory than the files have bytes (section 4.2 of the paper).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import Any

import duckdb
import pyarrow as pa

import windrow
from benchmarks.bars import bar_plot
from benchmarks.measure import Measured, Options, Report, Size
from benchmarks.pages import DOCS, markdown_table, write_figures
from benchmarks.statistics import run
from benchmarks.tpch import QUERIES, generated, over_files
from windrow.cache import CacheSettings

__all__ = ["arrow", "executed", "geomean", "measure", "timed"]

WAYS = ("first", "learning", "second", "duckdb")
_DRAIN = 600.0
Ways = dict[str, Measured]


def timed(measured: Measured, way: Callable[[], object]) -> None:
    """Run something once, and add what it took."""
    cpu, wall = process_time(), perf_counter()
    way()
    measured.wall.append(perf_counter() - wall)
    measured.cpu.append(process_time() - cpu)


def geomean(values: list[float]) -> float:
    """The geometric mean."""
    return math.exp(sum(map(math.log, values)) / len(values))


def executed(folder: Path, files: Path, rounds: int, memory_limit: str | None = None) -> dict[str, Ways]:
    """Run all queries so often, each twice in a lake that knows nothing, with DuckDB in turn; by query and way."""
    measured = {query: {way: Measured() for way in WAYS} for query in QUERIES}
    with duckdb.connect() as plain:
        if memory_limit is not None:
            plain.execute("set memory_limit = ?", [memory_limit])
        for number, (query, ways) in product(range(rounds), measured.items()):
            text = over_files(query, files)
            turns = (
                partial(_in_new_lake, folder, text, ways, memory_limit),
                partial(timed, ways["duckdb"], partial(arrow, plain, text)),
            )
            for turn in turns[:: 1 if number % 2 else -1]:
                turn()
    return measured


def arrow(connection: duckdb.DuckDBPyConnection, text: str) -> pa.Table:
    """The answer of DuckDB to a query."""
    return connection.sql(text).to_arrow_table()


def _in_new_lake(folder: Path, text: str, ways: Ways, memory_limit: str | None) -> None:
    with (
        TemporaryDirectory() as cache,
        windrow.connect(folder / "lake", cache=CacheSettings(folder=Path(cache)), memory_limit=memory_limit) as lake,
    ):
        lake.sql("select 1")  # starts the engine
        learner = lake.context.learner
        assert learner is not None
        timed(ways["first"], lambda: lake.sql(text).to_arrow())
        timed(ways["learning"], partial(learner.drain, _DRAIN))
        timed(ways["second"], lambda: lake.sql(text).to_arrow())


def measure(folder: Path, asked: Options, report: Report) -> None:
    """Report the CPU of both executions of all queries, and draw it; likewise of large files, if a folder is given."""
    files = generated(folder, asked.pick(0.01, 0.1, 1))
    executed(folder, generated(folder, 0.01), 1)  # warms what a process starts with
    measured = executed(folder, files, asked.pick(1, 2, 3))
    rows = _reported(measured, "executions", report)
    if asked.size is Size.FULL:
        write_figures(DOCS / "statistics.md", "executions", markdown_table(rows))
        bars = {way: [ways[way].least_cpu * 1000 for ways in measured.values()] for way in WAYS}
        plot = bar_plot([str(row["query"]) for row in rows], {"CPU of an execution, ms": bars})
        (DOCS / "statistics-executions.svg").write_text(plot, encoding="utf-8")
    if "large" in asked.paths:
        _measure_large(asked, report)


def _measure_large(asked: Options, report: Report) -> None:
    large = asked.paths["large"]
    large.mkdir(parents=True, exist_ok=True)
    files = generated(large, asked.pick(0.01, 1, 10))
    measured = executed(large, files, 1, asked.pick("128MB", "256MB", "2GB"))
    rows = _reported(measured, "large", report)
    if asked.size is Size.FULL:
        write_figures(DOCS / "statistics.md", "large", markdown_table(rows))


def _reported(measured: dict[str, Ways], what: str, report: Report) -> list[dict[str, Any]]:
    rows = list[dict[str, Any]]()
    for query, ways in measured.items():
        cpu = {f"{way} ms": each.least_cpu * 1000 for way, each in ways.items()}
        wall = {f"{way} wall ms": each.least_wall * 1000 for way, each in ways.items()}
        rows.append({"query": query.upper().replace("Q0", "Q"), **cpu})
        report.add(what=f"{what}, {query}", **{name.replace(" ", "_"): each for name, each in (cpu | wall).items()})
    for name, (over, under) in {
        "first_over_second": ("first", "second"),
        "learning_over_first": ("learning", "first"),
        "first_over_duckdb": ("first", "duckdb"),
        "duckdb_over_second": ("duckdb", "second"),
    }.items():
        sums = [sum(ways[way].least_cpu for ways in measured.values()) for way in (over, under)]
        report.ratios[f"{what}_{name}_all"] = sums[0] / sums[1]
        if over != "learning":
            each = [ways[over].least_cpu / ways[under].least_cpu for ways in measured.values()]
            report.ratios[f"{what}_{name}_geomean"] = geomean(each)
    return rows


if __name__ == "__main__":
    run(["executions"])
