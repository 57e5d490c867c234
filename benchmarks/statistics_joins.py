"""Orders of joins by statistics: how far estimates are off, and what repeated queries gain over DuckDB on their files.

Three sets of files: as pyarrow writes them, without statistics, and with keys far apart. Everything is learnt before;
`windrow` repeats a query whose order was chosen before, `windrow, new` runs one of a shape that was never met, so that
it is parsed and looked at too. `duckdb` is DuckDB on the same files, on a connection that is kept.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time

import duckdb

import windrow
from benchmarks.measure import Measured, Options, Report, Size, interleaved
from benchmarks.pages import DOCS, markdown_table, write_figures
from benchmarks.statistics import run
from benchmarks.statistics_executions import arrow, geomean
from benchmarks.tpch import QUERIES, TABLES, generated, over_files
from benchmarks.tpch_sets import SETS, written
from windrow.cache import CacheSettings
from windrow.engines.estimates import JoinEstimates
from windrow.lake import Lake
from windrow.statistics.q_errors import q_error

__all__ = ["learnt_lake", "measure"]

_SECONDS = 1.0
"""So long each way of a query is run, if that is more than the fewest rounds: short queries need more of them."""
_NEW_SHAPES = 3
Errors = tuple[float, float]
"""The greatest q-error of the joins of a query: of our estimates, and of DuckDB's."""


def learnt_lake(folder: Path, cache: Path, files: Path) -> Lake:
    """A lake that has learnt all that there is to know of some files, and learns nothing more."""
    lake = windrow.connect(folder / "lake", cache=CacheSettings(folder=cache), statistics=0)
    for name in TABLES:
        lake.files(f"{files}/{name}.parquet").analyze()
    return lake


def _errors(lake: Lake, text: str) -> tuple[Errors | None, float | None]:
    """The greatest errors of a query's joins, and the factor by which its order is better; None where none is."""
    groups = lake.explain(text, analyze=True).joins
    joins = [join for group in groups for join in group.joins if join.actual is not None]
    ours = [join.q_error for join in joins if join.q_error is not None]
    theirs = [
        q_error(join.expected_by_duckdb, join.actual)
        for join in joins
        if join.expected_by_duckdb is not None and join.actual is not None
    ]
    errors = (max(ours), max(theirs, default=1.0)) if ours else None
    return errors, max(map(_factor, groups), default=0.0) or None


def _factor(group: JoinEstimates) -> float:
    return group.factor or 0.0


def _timed(lake: Lake, plain: duckdb.DuckDBPyConnection, text: str, least: int) -> dict[str, Measured]:
    shapes = count(1)
    ways: dict[str, Callable[[], object]] = {
        "windrow": lambda: lake.sql(text).to_arrow(),
        "duckdb": partial(arrow, plain, text),
    }
    interleaved(ways, 1)
    began = process_time()
    interleaved(ways, 1)
    rounds = max(least, int(_SECONDS / max(1e-3, (process_time() - began) / len(ways)))) if least > 1 else 1
    measured = interleaved(ways, rounds)
    # the same query with one more space is another text
    new = {"windrow, new": lambda: lake.sql(text + " " * next(shapes)).to_arrow()}
    return measured | interleaved(new, min(least, _NEW_SHAPES))


def _of_set(
    folder: Path, files: Path, least: int
) -> dict[str, tuple[Errors | None, float | None, dict[str, Measured]]]:
    """What is measured over one set of files, by query."""
    with TemporaryDirectory() as cache, learnt_lake(folder, Path(cache), files) as lake, duckdb.connect() as plain:
        found = {}
        for query in QUERIES:
            text = over_files(query, files)
            found[query] = (*_errors(lake, text), _timed(lake, plain, text, least))
        return found


def measure(folder: Path, asked: Options, report: Report) -> None:
    """Report errors of estimates, and the CPU of queries over all sets."""
    source = generated(folder, asked.pick(0.01, 0.1, 1))
    sets = {name: written(source, source / "sets", name) for name in SETS}
    found = {name: _of_set(folder, files, asked.pick(1, 3, 4)) for name, files in sets.items()}
    _report_errors(found, asked, report)
    rows, ratios = [], dict[str, list[float]]()
    for query in QUERIES:
        row: dict[str, object] = {"query": query.upper().replace("Q0", "Q")}
        for name, measured in found.items():
            _, factor, ways = measured[query]
            ratio = ways["duckdb"].least_cpu / ways["windrow"].least_cpu
            ratios.setdefault(name, []).append(ratio)
            if factor is not None:
                ratios.setdefault(f"{name}, rewritten", []).append(ratio)
                new = ways["duckdb"].least_cpu / ways["windrow, new"].least_cpu
                ratios.setdefault(f"{name}, rewritten, new", []).append(new)
            for way, each in ways.items():
                row[f"{name}, {way} ms"] = each.least_cpu * 1000
            row[f"{name}, duckdb / windrow"] = ratio
            row[f"{name}, rewritten"] = "" if factor is None else f"{factor:.2f}"
        rows.append(row)
        report.add(what=f"joins, {query}", **{key.replace(" ", "_"): value for key, value in row.items()})
    for name in ("nostats", "sparse"):
        # files of a tiny size are joined as DuckDB does
        report.ratios[f"geomean_rewritten_{name}"] = geomean(ratios.get(f"{name}, rewritten", [1.0]))
        report.ratios[f"geomean_rewritten_{name}_new"] = geomean(ratios.get(f"{name}, rewritten, new", [1.0]))
    report.ratios["worst_query"] = min(ratio for name in SETS for ratio in ratios[name])
    if asked.size is Size.FULL:
        shown = [{key: each for key, each in row.items() if not key.endswith("new ms")} for row in rows]
        write_figures(DOCS / "statistics.md", "joins-executions", markdown_table(shown))


def _report_errors(
    found: dict[str, dict[str, tuple[Errors | None, float | None, dict[str, Measured]]]],
    asked: Options,
    report: Report,
) -> None:
    rows = []
    for query in QUERIES:
        errors = {name: measured[query][0] for name, measured in found.items()}
        row: dict[str, object] = {"query": query.upper().replace("Q0", "Q")}
        for name, each in errors.items():
            row |= {f"{name}, ours": None if each is None else each[0], f"{name}, DuckDB": each and each[1]}
        if any(each is not None for each in errors.values()):
            rows.append(row)
    for name, measured in found.items():
        known = [each[0] for each in measured.values() if each[0] is not None]
        report.ratios[f"max_q_error_{name}"] = max(ours for ours, _ in known)
        report.ratios[f"max_q_error_{name}_duckdb"] = max(theirs for _, theirs in known)
    report.ratios["max_q_error"] = max(report.ratios[f"max_q_error_{name}"] for name in found)
    if asked.size is Size.FULL:
        write_figures(DOCS / "statistics.md", "joins-estimates", markdown_table(rows))


if __name__ == "__main__":
    run(["joins"])
