"""A selective query on Spark: `scan.to_spark` and `format("windrow")` beside `spark.read.parquet` over all files.

One metric of 292 in two minutes of two hours, to its count, sum and maximum; other literals in each round, planning
included, session kept. `spark_kept` is a DataFrame that is made once, and knows its files from then on, `spark_fresh`
one for each query. `windrow` chooses who reads, `windrow_tasks` is read by tasks of ours, as a bucket would be,
`windrow_source` by the Python data source with pushed filters. The full scan sums one column by another. CPU is that of
the whole process tree.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import windrow
from benchmarks.measure import Options, Report, interleaved, options
from benchmarks.query_tables import COLUMNS, METRICS, START, Slices, windrow_table, write_files
from windrow.lake import Lake
from windrow.runners.session import spark_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_ASKED = 120
_ANSWER = ("count(*) as n", "sum(value) as total", "max(value) as most")
_PUSHDOWN = "spark.sql.python.filterPushdown.enabled"
_ALWAYS = "length(metric_name) > 0"
"""A condition that holds for every row, and that only DuckDB can answer."""


class Asked:
    """Conditions, each with other literals than the one before, in which every way gets the same."""

    def __init__(self, seconds: int) -> None:
        self._seconds = seconds
        self._numbers: dict[str, count[int]] = {}

    def next(self, way: str) -> str:
        """The next condition of a way, as both engines read it."""
        number = next(self._numbers.setdefault(way, count()))
        first = START + (number * 613) % (self._seconds - _ASKED)
        low, high = (
            datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S+00:00") for at in (first, first + _ASKED)
        )
        metric = f"metric_{(number * 37) % METRICS:04d}"
        return f"metric_name = '{metric}' and timestamp >= '{low}' and timestamp < '{high}'"


class Ways:
    """What is measured: each gives the answer to the next condition."""

    def __init__(self, spark: SparkSession, lake: Lake, folder: Path, seconds: int) -> None:
        self.spark, self.lake, self.folder = spark, lake, folder
        self.table = lake.table("metrics")
        self.asked = Asked(seconds)
        self.answers: dict[str, list[Any]] = {}
        self._kept = self._files()

    def _files(self) -> DataFrame:
        return self.spark.read.parquet(str(self.folder))

    def _source(self) -> DataFrame:
        given = {"table": "metrics", "columns": ",".join(COLUMNS), "pushdown": "true"}
        return self.spark.read.format("windrow").options(**given).load(self.lake.url)

    def selective(self) -> dict[str, Callable[[], None]]:
        """The selective query."""
        ways: dict[str, Callable[[str], DataFrame]] = {
            "windrow": lambda where: self.table.scan(where, COLUMNS).to_spark(self.spark),
            "spark_kept": self._kept.where,
            "windrow_tasks": lambda where: self.table.scan(f"{where} and {_ALWAYS}", COLUMNS).to_spark(self.spark),
            "spark_fresh": lambda where: self._files().where(where),
            "windrow_source": lambda where: self._source().where(where),
        }
        return {name: self._way(name, rows) for name, rows in ways.items()}

    def _way(self, name: str, rows: Callable[[str], DataFrame]) -> Callable[[], None]:
        def run() -> None:
            [row] = rows(self.asked.next(name)).selectExpr(*_ANSWER).collect()
            self.answers.setdefault(name, []).append((row.n, round(row.total or 0, 3), row.most))

        return run

    def full(self) -> dict[str, Callable[[], None]]:
        """All rows of two columns."""
        columns = ["metric_name", "value"]
        ways: dict[str, Callable[[], DataFrame]] = {
            "full windrow": lambda: self.table.scan(None, columns).to_spark(self.spark),
            "full spark_kept": lambda: self._kept,
            "full windrow_tasks": lambda: self.table.scan(_ALWAYS, columns).to_spark(self.spark),
            "full windrow_source": self._source,
        }
        return {name: self._sums(rows) for name, rows in ways.items()}

    def _sums(self, rows: Callable[[], DataFrame]) -> Callable[[], None]:
        return lambda: self._check(rows().groupBy("metric_name").sum("value").collect())

    @staticmethod
    def _check(found: list[Any]) -> None:
        if len(found) > METRICS:
            raise SystemExit(f"{len(found)} metrics instead of {METRICS}")


def measure(asked: Options, report: Report, spark: SparkSession, folder: Path) -> None:
    """Ask on a table of many small files."""
    slices = Slices(*asked.pick((16, 100), (500, 400), (10_000, 400)))
    home = asked.paths.get("tables", folder)
    if not (home / "plain").exists():
        write_files(slices, home / "plain")
    there = (home / "lake").exists()
    with windrow.connect(home / "lake") if there else windrow_table(slices, home / "lake") as lake:
        ways = Ways(spark, lake, home / "plain", int(slices.files * slices.seconds))
        rounds, warming = asked.pick((1, 0), (3, 1), (3, 1))
        _run(ways.selective(), warming)
        found = interleaved(ways.selective(), rounds, tree=True)
        if len({str(answers) for answers in ways.answers.values()}) != 1:
            raise SystemExit(f"answers differ: {ways.answers}")
        found |= interleaved(ways.full(), 1, tree=True)
    for name, measured in found.items():
        report.add(way=name, files=slices.files, wall_ms=measured.least_wall * 1000, cpu_ms=measured.least_cpu * 1000)
    peer = min(found["spark_kept"].least_wall, found["spark_fresh"].least_wall)
    report.ratios |= {
        "spark_native_over_windrow_spark": peer / found["windrow"].least_wall,
        "spark_native_over_windrow_tasks": peer / found["windrow_tasks"].least_wall,
        "spark_native_over_windrow_source": peer / found["windrow_source"].least_wall,
        "full_windrow_tasks_over_spark_native": found["full windrow_tasks"].least_wall
        / found["full spark_kept"].least_wall,
        "full_windrow_source_over_spark_native": found["full windrow_source"].least_wall
        / found["full spark_kept"].least_wall,
    }


def _run(ways: dict[str, Callable[[], None]], times: int) -> None:
    for _ in range(times):
        for way in ways.values():
            way()


def main(argv: Sequence[str] | None = None) -> None:
    asked = options(argv, __doc__, {"tables": "a folder for the tables, which are kept and used again"})
    report = Report("spark_query", ("pyspark", "pyarrow", "duckdb"))
    with tempfile.TemporaryDirectory() as folder:
        spark = spark_session("local[2]", log=Path(folder) / "spark.log")
        before = spark.conf.get(_PUSHDOWN, "false")
        spark.conf.set(_PUSHDOWN, "true")
        try:
            measure(asked, report, spark, Path(folder))
        finally:
            spark.conf.set(_PUSHDOWN, str(before))
    report.show(asked)


if __name__ == "__main__":
    main()
