"""Metric points into a table on Spark, beside Spark's own sorted, partitioned Parquet writer.

Points arrive in order of time, a few of them late, in eight Parquet files. Windrow's ways include windows, sorting,
sidecars, zone maps, durable writes and the publishing transaction, from the files' paths, with a shuffle too, and from
a DataFrame; Spark's are `sortWithinPartitions` and `partitionBy` by tenant and hour, behind a shuffle (`spark_native`)
and without one (`spark_native_map`). All write zstd. CPU is that of the whole process tree: driver, Java and Python
workers.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

import windrow
from benchmarks.measure import Options, Report, interleaved, options, reset_tree_peak, tree_peak
from benchmarks.merge import named, values_of
from windrow.model.sort_schema import SortSchema
from windrow.runners.session import spark_session
from windrow.splits.encodings import choose_encodings
from windrow.splits.sorting import sorted_rows
from windrow.table import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SORT = "metric_name|service|env|host|timestamp+/V2"
KEYS = ("metric_name", "service", "env", "host", "timestamp")
FILES = 8
TENANTS = 4
HOURS = 7
STEP = 30_000
START = 1_700_002_800_000
SERVICES, METRICS, HOSTS = 50, 200, 2000


def points(rows: int, seed: int = 0) -> pa.Table:
    """Points in the order of their arrival: every series each 30 seconds, half of the hosts with a jitter.

    One point in fifty comes up to half an hour late.
    """
    rng = np.random.default_rng(seed)
    moments = HOURS * 3_600_000 // STEP
    series = rng.choice(METRICS * HOSTS, -(-rows // moments), replace=False)
    moment, place = np.divmod(np.arange(rows), series.size)
    metric, host = np.divmod(series[place], HOSTS)
    times = START + moment * STEP + host * 7919 % STEP + np.where(host % 2, rng.integers(0, 50, rows), 0)
    delay = rng.exponential(5_000, rows) + np.where(rng.random(rows) < 0.02, rng.random(rows) * 1_800_000, 0)
    table = pa.table(
        {
            "timestamp": pa.array(times).cast(pa.timestamp("ms", "UTC")),
            "tenant": named(host % TENANTS, "tenant-{}"),
            "metric_name": named(metric, "metric.{:03d}.count"),
            "service": named(metric % SERVICES, "service-{:02d}"),
            "env": named(host // TENANTS % 4, "env-{}", host % 37 == 0),
            "host": named(host, "host-{:04d}.example", host % 97 == 0),
            "region": named(host % 6, "region-{}", host % 11 == 0),
            "pod": named(host, "pod-{:05d}-abc"),
            "value": pa.array(values_of(rng, metric)),
        }
    )
    return table.take(pa.array(np.argsort(times + delay, kind="stable")))


def write_files(table: pa.Table, folder: Path) -> list[str]:
    """Write the points as they arrive; the files a user has."""
    size = -(-table.num_rows // FILES)
    names = [str(folder / f"{number}.parquet") for number in range(FILES)]
    for number, name in enumerate(names):
        pq.write_table(table.slice(number * size, size), name)
    return names


class Ways:
    """What is measured; every run writes to a place of its own."""

    def __init__(self, spark: SparkSession, files: list[str], scratch: Path) -> None:
        self.spark, self.files, self.scratch = spark, files, scratch
        self.numbers = count()
        self.written: dict[str, Path] = {}

    def _place(self, name: str) -> Path:
        if name in self.written:
            shutil.rmtree(self.written[name])
        self.written[name] = self.scratch / f"{name}-{next(self.numbers)}"
        return self.written[name]

    def _table(self, name: str) -> Table:
        lake = windrow.connect(str(self._place(name)))
        return lake.create_table("metrics", sort=SORT, window="1h", partition_by=["tenant"])

    def files_way(self, name: str, *, shuffle: bool | None = None) -> None:
        self._table(name).ingest(self.files, spark=self.spark, shuffle=shuffle)

    def frame_way(self, name: str) -> None:
        self._table(name).ingest(self._frame())

    def _frame(self) -> DataFrame:
        return self.spark.read.parquet(*self.files)

    def native_way(self, name: str, *, shuffle: bool) -> None:
        from pyspark.sql import functions as f

        seconds = f.unix_seconds("timestamp")
        rows = self._frame().withColumn("window_start", seconds - seconds % 3600)
        if shuffle:
            rows = rows.repartition(FILES, "tenant", "window_start")
        rows.sortWithinPartitions("tenant", "window_start", *KEYS).write.option("compression", "zstd").partitionBy(
            "tenant", "window_start"
        ).parquet(str(self._place(name)))

    def all(self) -> dict[str, Callable[[], None]]:
        return {
            "windrow": partial(self.files_way, "windrow"),
            "spark_native": partial(self.native_way, "spark_native", shuffle=True),
            "windrow_shuffle": partial(self.files_way, "windrow_shuffle", shuffle=True),
            "windrow_frame": partial(self.frame_way, "windrow_frame"),
            "spark_native_map": partial(self.native_way, "spark_native_map", shuffle=False),
        }


def _files(folder: Path) -> tuple[int, int, int]:
    """How many data files a way wrote, their bytes, and those of all sidecars."""
    sizes = [path.stat().st_size for path in folder.rglob("*.parquet")]
    return len(sizes), sum(sizes), sum(path.stat().st_size for path in folder.rglob("*.pm"))


def _check(ways: Ways, rows: int) -> None:
    """Nobody lost a row."""
    for name, folder in ways.written.items():
        found = sum(pq.read_metadata(path).num_rows for path in folder.rglob("*.parquet"))
        if found != rows:
            raise SystemExit(f"{name} wrote {found} of {rows} rows")


def measure(chosen: Options, report: Report, table: pa.Table) -> None:
    """Ingest the points in all ways."""
    spark = spark_session("local[2]", options={"spark.driver.memory": "4g"})
    with tempfile.TemporaryDirectory() as scratch:
        ways = Ways(spark, write_files(table, Path(scratch)), Path(scratch))
        peaks: dict[str, int] = {}
        watched = {name: partial(_watched, name, way, peaks) for name, way in ways.all().items()}
        for way in watched.values() if chosen.size else ():
            way()
        results = interleaved(watched, chosen.pick(1, 2, 3), tree=True)
        _check(ways, table.num_rows)
        for name, result in results.items():
            files, size, sidecars = _files(ways.written[name])
            report.add(
                way=name,
                cpu_s=round(result.least_cpu, 2),
                wall_s=round(result.least_wall, 2),
                rows_a_second=round(table.num_rows / result.least_wall),
                files=files,
                mb=round(size / 1e6, 2),
                sidecar_mb=round(sidecars / 1e6, 2),
                task_rss_mb=round(peaks[name] / 2**20),
            )
        _ratios(report, results, {name: _files(folder)[1] for name, folder in ways.written.items()})


def _watched(name: str, way: Callable[[], None], peaks: dict[str, int]) -> None:
    """Run a way and note the most memory that a Python worker took for it, in any round."""
    reset_tree_peak()
    way()
    peaks[name] = max(peaks.get(name, 0), tree_peak("python"))


def _ratios(report: Report, results: Any, sizes: dict[str, int]) -> None:
    for ours in (name for name in results if name.startswith("windrow")):
        for theirs in ("spark_native", "spark_native_map"):
            report.ratios[f"cpu_{theirs}_over_{ours}"] = results[theirs].least_cpu / results[ours].least_cpu
            report.ratios[f"wall_{theirs}_over_{ours}"] = results[theirs].least_wall / results[ours].least_wall
        report.ratios[f"bytes_{ours}_over_spark_native"] = sizes[ours] / sizes["spark_native"]


def sorted_over_arrival(table: pa.Table, sort: str) -> float:
    """How large rows are when they are sorted, beside the same rows as they came; written alike."""
    return _size(sorted_rows(table, SortSchema.parse(sort))) / _size(table)


def _size(table: pa.Table) -> int:
    sink = pa.BufferOutputStream()
    pq.write_table(
        table,
        sink,
        compression="zstd",
        compression_level=3,
        row_group_size=128 * 1024,
        max_rows_per_page=8192,
        **choose_encodings(table),
    )
    return int(sink.tell())


def nab(folder: Path) -> pa.Table:
    """The Numenta anomaly benchmark's series of cloud metrics, as they would arrive together."""
    parts = []
    for path in sorted(folder.glob("*.csv")):
        part = pyarrow.csv.read_csv(path)
        parts.append(part.append_column("metric_name", pa.array([path.stem] * part.num_rows)))
    return pa.concat_tables(parts).sort_by("timestamp")


def main(argv: Sequence[str] | None = None) -> None:
    """Measure all ways."""
    chosen = options(argv, __doc__, paths={"nab": "the folder of the Numenta anomaly benchmark's CSV files"})
    report = Report("ingest", ("pyspark", "pyarrow", "numpy"))
    table = points(chosen.pick(20_000, 1_000_000, 5_000_000))
    measure(chosen, report, table)
    report.ratios["bytes_sorted_over_arrival"] = sorted_over_arrival(table, SORT)
    if "nab" in chosen.paths:
        report.ratios["bytes_sorted_over_arrival_nab"] = sorted_over_arrival(
            nab(chosen.paths["nab"]), "metric_name|timestamp/V2"
        )
    report.show(chosen)


if __name__ == "__main__":
    main()
