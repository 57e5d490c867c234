"""Compaction: planning a million splits, and 1,000 small splits from end to end beside Spark, delta-rs and DuckDB.

The set is eight windows of 125 time slices, 4,000 rows each. Windrow plans, merges, verifies, writes sidecars and
publishes; Spark reads, sorts and rewrites the windows; delta-rs compacts without sorting, or sorts along a Z curve;
DuckDB sorts each window. All write zstd with two threads, each in a process of its own. Spark is measured with all of
its processes.
"""

from __future__ import annotations

import importlib.util
import multiprocessing
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.measure import Measured, Options, Report, Size, TreeClock, apart, options, peak_rss, serve
from benchmarks.merge import PLAN, SETTINGS, SORT, THREADS, Shape, duckdb_way, read_plan, write_set
from benchmarks.metastore import Lakelet
from windrow.compaction.planner import PlannedMerge, Planner
from windrow.context import Context
from windrow.lake import Lake
from windrow.metastore import CommitKind, SqlMetastore
from windrow.model.window import Window
from windrow.table import Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_NOW = 2 * 10**15
_PER_WINDOW = 1000


@dataclass(frozen=True)
class Way:
    """One way to compact the set: made ready, then measured."""

    ready: Callable[[], Any]
    run: Callable[[Any], object]


def filled(url: str, windows: int, per_window: int) -> None:
    """Publish splits of many windows, some windows to a commit."""
    with Lakelet(url) as lake:
        for number in range(windows):
            for done in range(0, per_window, 50_000):
                lake.publish(Window(900 * number, 900), min(50_000, per_window - done))


def planned(url: str) -> tuple[int, int, float, float, int]:
    """Plan everything: splits, merges, seconds, CPU seconds, and the peak of this process, imports and all."""
    with SqlMetastore(url) as metastore:
        next(metastore.groups("table"))
        wall, cpu = time.perf_counter(), time.process_time()
        splits = merges = 0
        for decision in Planner(metastore, metastore.table("metrics"), _NOW).decisions():
            splits += decision.count
            merges += isinstance(decision, PlannedMerge)
        return splits, merges, time.perf_counter() - wall, time.process_time() - cpu, peak_rss()


def alone(url: str) -> tuple[int, int, float, float, int]:
    """Plan in a process of its own: what filling took would hide what planning takes."""
    with multiprocessing.get_context("spawn").Pool(1) as fresh:
        return fresh.apply(planned, (url,))


def planning(asked: Options, report: Report) -> None:
    """Measure the planner on tables that differ tenfold, and on one very large window."""
    few, many = asked.pick((1, 3), (10, 100), (100, 1000))
    with tempfile.TemporaryDirectory() as folder:
        urls = {name: f"sqlite:///{folder}/{name}.db" for name in ("few", "many", "one")}
        filled(urls["few"], few, _PER_WINDOW)
        filled(urls["many"], many, _PER_WINDOW)
        filled(urls["one"], 1, asked.pick(2000, 100_000, 921_600))
        rounds = [{name: alone(url) for name, url in urls.items()} for _ in range(asked.pick(1, 2, 3))]
    best = {name: min((each[name] for each in rounds), key=lambda found: found[3]) for name in urls}
    for name, (splits, merges, wall, cpu, rss) in best.items():
        shape = "one window" if name == "one" else f"windows of {_PER_WINDOW:,}"
        report.add(what=f"plan {splits:,} splits, {shape}", merges=merges, wall_s=wall, cpu_s=cpu, rss_mib=rss / 2**20)
    # Fewer splits than a million are scaled, so that the name keeps its meaning.
    scale = 10 / (many / few)
    report.ratios["plan_growth_1m_over_100k"] = scale * best["many"][3] / best["few"][3]
    report.ratios["plan_wall_growth_1m_over_100k"] = scale * best["many"][2] / best["few"][2]
    report.ratios["planner_rss_mib"] = best["many"][4] / 2**20
    report.ratios["planner_rss_mib_one_window"] = best["one"][4] / 2**20


class Bench:
    """The set, which was written to a folder, and fresh tables over it."""

    def __init__(self, shape: Shape, folder: Path) -> None:
        self.shape = shape
        self.folder = folder
        self.windows = read_plan(folder / PLAN)
        self.inputs = {Path(folder, split.key) for splits in self.windows for split in splits}
        self._number = 0

    @property
    def bytes_in(self) -> int:
        return sum(split.size_bytes for splits in self.windows for split in splits)

    def table(self) -> Table:
        """A table that has the splits as they were ingested, in a metastore of its own."""
        self._sweep()
        self._number += 1
        # The folder gets one metastore after the other, so that it is no lake of any of them.
        database = f"sqlite:///{self.folder}/m{os.getpid()}-{self._number}.db"
        lake = Lake(Context.open(str(self.folder), database, lake_key=0))
        metastore = lake.context.metastore
        metastore.create_table(self.shape.name, SETTINGS, table_id="bench")
        metastore.open_commit("bench", CommitKind.INGEST, commit_id="bench", lease=600)
        metastore.publish("bench", add=[split for splits in self.windows for split in splits])
        return lake.table(self.shape.name)

    def delta(self) -> Any:
        """A Delta table over links to the same files."""
        from deltalake import DeltaTable, Field, Schema, convert_to_deltalake
        from deltalake.schema import PrimitiveType

        self._number += 1
        copy = self.folder / f"delta-{os.getpid()}-{self._number}"
        for path in self.inputs:
            place = copy / path.parent.name / path.name
            place.parent.mkdir(parents=True, exist_ok=True)
            os.link(path, place)
        windows = Schema([Field("window_start", PrimitiveType("long"))])
        convert_to_deltalake(str(copy), partition_by=windows, partition_strategy="hive")
        return DeltaTable(str(copy))

    def clean(self) -> Path:
        """An empty folder for what a peer writes."""
        out = self.folder / "out"
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir()
        return out

    def _sweep(self) -> None:
        """Remove what earlier rounds merged; a table is never measured with them."""
        root = self.folder / self.shape.name
        for path in root.rglob("*.parquet"):
            if path not in self.inputs:
                path.unlink()
                path.with_name(f"_{path.stem}.pm").unlink(missing_ok=True)


def _compact(table: Table, spark: SparkSession | None = None) -> None:
    result = table.compact.run(spark=spark, threads=THREADS)
    if result.failed or result.skipped or result.splits_out != len({row.start for row in table.inspect.windows()}):
        raise AssertionError(f"not all was merged: {result}")


def _delta(kind: str) -> Callable[[Any], object]:
    from deltalake import WriterProperties

    properties = WriterProperties(compression="ZSTD", compression_level=3, max_row_group_size=131_072)

    def run(table: Any) -> None:
        if kind == "compact":
            done = table.optimize.compact(max_concurrent_tasks=THREADS, writer_properties=properties)
        else:
            done = table.optimize.z_order(list(SORT), max_concurrent_tasks=THREADS, writer_properties=properties)
        if done["numFilesRemoved"] <= done["numFilesAdded"]:
            raise AssertionError(f"delta-rs merged nothing: {done}")

    return run


def in_process_ways(bench: Bench) -> dict[str, Way]:
    """Windrow and what can do the work in one process."""
    ways = {"windrow": Way(bench.table, _compact)}
    if importlib.util.find_spec("deltalake"):
        ways["delta_compact"] = Way(bench.delta, _delta("compact"))
        ways["delta_zorder"] = Way(bench.delta, _delta("z_order"))
    ways["duckdb"] = Way(lambda: duckdb_way(bench.folder, bench.windows, bench.clean()), lambda sort: sort())
    return ways


def server(name: str, shape: Mapping[str, Any], folder: str) -> None:
    """Compact in a warm process of its own, whenever the parent says so."""
    way = in_process_ways(Bench(Shape(**shape), Path(folder)))[name]
    serve(way.run, ready=way.ready)


def spark_ways(bench: Bench, spark: SparkSession) -> dict[str, Way]:
    """Windrow on Spark, and Spark alone."""

    def rewrite(out: Path) -> None:
        rows = spark.read.parquet(str(bench.folder / bench.shape.name)).drop("partition_id")
        whole = rows.repartition(len(bench.windows), "window_start").sortWithinPartitions("window_start", *SORT)
        whole.write.partitionBy("window_start").option("compression", "zstd").parquet(str(out / "spark"))

    def ready() -> Path:
        bench._sweep()  # noqa: SLF001 - Spark reads the folder
        return bench.clean()

    return {"windrow": Way(bench.table, lambda table: _compact(table, spark)), "spark_rewrite": Way(ready, rewrite)}


def rounds(ways: Mapping[str, Way], count: int, used: Callable[[], float]) -> dict[str, Measured]:
    """Run every way once a round, in an order that turns; making ready is not measured."""
    results = {name: Measured() for name in ways}
    order = list(ways)
    for _ in range(count):
        for name in order:
            thing = ways[name].ready()
            cpu, wall = used(), time.perf_counter()
            ways[name].run(thing)
            results[name].wall.append(time.perf_counter() - wall)
            results[name].cpu.append(used() - cpu)
        order = order[1:] + order[:1]
    return results


def end_to_end(asked: Options, report: Report) -> None:
    """Compact the set in processes of their own, then on Spark."""
    shape = Shape("tiny", "overlap", asked.pick(4, 125, 125), asked.pick(100, 4000, 4000), asked.pick(2, 2, 8))
    with tempfile.TemporaryDirectory() as scratch:
        write_set(shape, Path(scratch))
        bench = Bench(shape, Path(scratch))
        code = "from benchmarks.compaction import server; server({!r}, {!r}, {!r})"
        programs = {name: code.format(name, asdict(shape), scratch) for name in in_process_ways(bench)}
        _report("in process", bench, apart(programs, asked.pick(1, 3, 7)), report)
        if asked.size is not Size.TINY:
            _on_spark(bench, asked, report)


def _on_spark(bench: Bench, asked: Options, report: Report) -> None:
    from windrow.runners.session import spark_session

    spark = spark_session(f"local[{THREADS}]", log=bench.folder / "spark.log")
    try:
        ways = spark_ways(bench, spark)
        used = TreeClock()
        rounds(ways, 2, used)
        _report("on Spark", bench, rounds(ways, asked.pick(1, 2, 5), used), report)
    finally:
        spark.stop()


def _report(where: str, bench: Bench, results: Mapping[str, Measured], report: Report) -> None:
    splits = sum(map(len, bench.windows))
    for name, found in results.items():
        report.add(
            what=f"{splits:,} splits, {bench.bytes_in / 1e6:.1f} MB, {where}",
            way=name,
            wall_s=found.least_wall,
            cpu_s=found.least_cpu,
        )
    own = results["windrow"]
    for name in (each for each in results if each != "windrow"):
        report.ratios[f"cpu_{name}_over_windrow"] = results[name].least_cpu / own.least_cpu
        report.ratios[f"wall_{name}_over_windrow"] = results[name].least_wall / own.least_wall


def main(argv: Sequence[str] | None = None) -> None:
    """Run the benchmark."""
    asked = options(argv, __doc__)
    packages = ("duckdb", "deltalake", "pyspark", "pyarrow", "sqlalchemy")
    report = Report("compaction", tuple(name for name in packages if importlib.util.find_spec(name)))
    planning(asked, report)
    end_to_end(asked, report)
    report.show(asked)


if __name__ == "__main__":
    main()
