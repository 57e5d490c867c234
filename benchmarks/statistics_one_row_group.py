"""Files of one row group, by three writers: how the threads of a scan share them, beside DuckDB alone.

Each lake has a cache folder of its own, which is empty: the first execution learns where pages are, the second one
finds that. Nothing else is collected. On a machine that others use wall time says little: `busiest` is the CPU of the
thread that used most, which is what a query takes at least, however many cores are free.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, process_time

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

import windrow
from benchmarks.measure import Measured, Options, Report, Size
from benchmarks.pages import DOCS, markdown_table, write_figures
from benchmarks.statistics import run
from benchmarks.statistics_executions import arrow
from benchmarks.tpch import QUERIES
from windrow.cache import CacheSettings

__all__ = ["measure"]

_QUERIES = ("q01", "q06")
_WAYS = ("first", "second", "duckdb first", "duckdb second")


@dataclass
class _Threads(Measured):
    """Rounds of one way, and in each the CPU of the thread that used most."""

    busiest: list[float] = field(default_factory=list)

    def time(self, way: Callable[[], object]) -> None:
        """Run something once."""
        before, cpu, wall = _used_by_threads(), process_time(), perf_counter()
        way()
        self.wall.append(perf_counter() - wall)
        self.cpu.append(process_time() - cpu)
        self.busiest.append(max(used - before.get(thread, 0.0) for thread, used in _used_by_threads().items()))


def _used_by_threads() -> dict[str, float]:
    """The CPU seconds of each thread of this process."""
    found = {}
    for task in Path("/proc/self/task").iterdir():
        try:
            found[task.name] = int((task / "schedstat").read_text().split()[0]) / 1e9
        except OSError:
            continue  # it ended while we looked
    return found


def _written(folder: Path, scale: float) -> Mapping[str, Path]:
    """The rows of lineitem in one row group, by writer; a folder that has them is left as it is."""
    place = folder / f"one-row-group-sf{scale:g}"
    files = {writer: place / writer / "lineitem.parquet" for writer in ("arrow-rs", "pyarrow", "duckdb")}
    if not (place / "done").exists():
        for path in files.values():
            path.parent.mkdir(parents=True, exist_ok=True)
        program, goal = Path(sys.executable).with_name("tpchgen-cli"), files["arrow-rs"].parent
        options = ["--tables=lineitem", "--row-group-bytes=100GB", f"--output-dir={goal}", "--quiet"]
        subprocess.run([program, "parquet", f"--scale-factor={scale}", *options], check=True)
        table = pq.read_table(files["arrow-rs"])
        texts = [pa.string() if pa.types.is_string_view(kind) else kind for kind in table.schema.types]
        table = table.cast(pa.schema(list(zip(table.column_names, texts, strict=True))))
        pq.write_table(table, files["pyarrow"], row_group_size=len(table))
        with duckdb.connect() as connection:
            connection.execute("set threads = 1")
            copied = f"copy (from '{files['pyarrow']}') to '{files['duckdb']}'"
            connection.execute(f"{copied} (format parquet, row_group_size {len(table)})")
        (place / "done").touch()
    return files


def _executed(files: Mapping[str, Path], folder: Path, rounds: int) -> dict[tuple[str, str], dict[str, _Threads]]:
    """Every query over every file, twice in a lake that knows nothing and twice on a new connection of DuckDB."""
    measured = {pair: {way: _Threads() for way in _WAYS} for pair in product(files, _QUERIES)}
    for _, ((writer, query), ways) in product(range(rounds), measured.items()):
        text = QUERIES[query].format(lineitem=f"'{files[writer]}'")
        with (
            TemporaryDirectory() as cache,
            windrow.connect(folder / "lake", cache=CacheSettings(folder=Path(cache)), statistics=0) as lake,
            duckdb.connect() as plain,
        ):
            lake.sql("select 1")  # starts the engine
            plain.sql("select 1").fetchall()
            for turn in ("first", "second"):
                ways[f"duckdb {turn}"].time(partial(arrow, plain, text))
                ways[turn].time(partial(lake.sql, text))
    return measured


def measure(folder: Path, asked: Options, report: Report) -> None:
    """Report CPU, wall time and the busiest thread of both executions, and DuckDB's beside them."""
    files = _written(folder, asked.pick(0.01, 0.1, 1))
    _executed(_written(folder, 0.01), folder, 1)  # warms what a process starts with
    rows = []
    for (writer, query), ways in _executed(files, folder, asked.pick(1, 3, 6)).items():
        row: dict[str, object] = {"writer": writer, "query": query.upper().replace("Q0", "Q")}
        for way, each in ways.items():
            row[f"{way}: CPU ms"] = each.least_cpu * 1000
            row[f"{way}: busiest"] = min(each.busiest) * 1000
            report.add(
                what=f"one row group, {writer}, {query}, {way}",
                cpu_ms=each.least_cpu * 1000,
                wall_ms=each.least_wall * 1000,
                busiest_ms=min(each.busiest) * 1000,
            )
        rows.append(row)
        second, plain = ways["second"], ways["duckdb second"]
        name = f"one_row_group_{writer}_{query}"
        report.ratios[f"{name}_cpu_over_duckdb"] = second.least_cpu / plain.least_cpu
        report.ratios[f"{name}_wall_duckdb_over_second"] = plain.least_wall / second.least_wall
        report.ratios[f"{name}_busiest_duckdb_over_second"] = min(plain.busiest) / min(second.busiest)
    if asked.size is Size.FULL:
        write_figures(DOCS / "statistics.md", "one row group", markdown_table(rows))


if __name__ == "__main__":
    run(["one_row_group"])
