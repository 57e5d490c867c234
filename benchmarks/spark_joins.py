"""Orders of joins on Spark SQL: `lake.spark_sql` beside `spark.sql`, over views of files without statistics.

The queries of TPC-H whose order statistics change; adaptive execution is on for both. CPU is that of the whole process
tree, the session is kept, and rows are collected.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.measure import Options, Report, Size, interleaved, options
from benchmarks.pages import DOCS, markdown_table, write_figures
from benchmarks.statistics_executions import geomean
from benchmarks.statistics_joins import learnt_lake
from benchmarks.tpch import QUERIES, TABLES, generated, over_tables
from benchmarks.tpch_sets import written
from windrow.lake import Lake
from windrow.runners.session import spark_session
from windrow.statistics import join_choice

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_FOLDERS = {"tables": "a folder for the files of TPC-H, which are kept and used again"}


def _collected(spark: SparkSession, text: str) -> Sequence[object]:
    return spark.sql(text).collect()


def measure(folder: Path, asked: Options, report: Report) -> None:
    """Report the CPU of queries in both orders."""
    source = generated(folder, asked.pick(0.01, 0.1, 1))
    files = written(source, source / "sets", "nostats")
    views = {name: f"{files}/{name}.parquet" for name in TABLES}
    with ExitStack() as stack:
        cache = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        lake: Lake = stack.enter_context(learnt_lake(folder, cache, files))
        if asked.size is not Size.FULL:
            # small tables are not worth a look
            stack.callback(setattr, join_choice, "LEAST_ROWS", join_choice.LEAST_ROWS)
            stack.callback(setattr, join_choice, "LEAST_COST", join_choice.LEAST_COST)
            join_choice.LEAST_ROWS, join_choice.LEAST_COST = 0, 0.0
        spark = spark_session("local[2]", log=folder / "spark.log")
        for name, path in views.items():
            spark.read.parquet(path).createOrReplaceTempView(name)
        rows: list[dict[str, object]] = []
        for query in QUERIES:
            text = over_tables(query)
            better = lake.query_for_spark(text, views)
            if better == text or (asked.size is Size.TINY and rows):
                continue
            ways = {"windrow": partial(_collected, spark, better), "spark": partial(_collected, spark, text)}
            if ways["windrow"]() != ways["spark"]():
                raise AssertionError(f"{query}: the answers differ")
            measured = interleaved(ways, asked.pick(1, 2, 3), tree=True)
            cpu = {f"{name} ms": each.least_cpu * 1000 for name, each in measured.items()}
            wall = {f"{name} wall ms": each.least_wall * 1000 for name, each in measured.items()}
            ratio = measured["spark"].least_cpu / measured["windrow"].least_cpu
            rows.append({"query": query.upper().replace("Q0", "Q"), **cpu, "spark / windrow": ratio, **wall})
            report.add(**{key.replace(" ", "_"): value for key, value in rows[-1].items()})
    report.ratios["spark_geomean_nostats"] = geomean([float(str(row["spark / windrow"])) for row in rows])
    report.ratios["spark_rewritten"] = float(len(rows))
    if asked.size is Size.FULL:
        write_figures(DOCS / "statistics.md", "joins-spark", markdown_table(rows))


def main(argv: Sequence[str] | None = None) -> None:
    """Run the benchmark."""
    asked = options(argv, __doc__, _FOLDERS)
    report = Report("spark_joins", ("pyspark", "pyarrow"))
    with tempfile.TemporaryDirectory() as passing:
        folder = asked.paths.get("tables", Path(passing))
        folder.mkdir(parents=True, exist_ok=True)
        measure(folder, asked, report)
    report.show(asked)


if __name__ == "__main__":
    main()
