"""What loading first would buy: Parquet files against native tables (the paper's Fig. 11 and inequality 1).

`slowdown` is the CPU of a query over files divided by that over native tables of DuckDB, both joined in the same order,
which is written into their text. Executions until loading pays count the first execution, which leaves statistics
behind, the later ones, and the time that loading the tables of the query takes before it runs on them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from functools import partial
from pathlib import Path

import duckdb
import pyarrow as pa
from sqlglot import parse_one

import windrow
from benchmarks.bars import bar_plot
from benchmarks.measure import Measured, Options, Report, Size, interleaved
from benchmarks.pages import DOCS, markdown_table, write_figures
from benchmarks.statistics import run
from benchmarks.statistics_executions import arrow, executed, geomean, timed
from benchmarks.tpch import QUERIES, TABLES, generated, load, over_files, over_tables, tables_of
from windrow.engines.duckdb.sample_conditions import evaluate_with
from windrow.questions.explicit_order import Target, rewrite
from windrow.questions.join_blocks import join_blocks
from windrow.statistics.join_cardinality import Cardinalities
from windrow.statistics.join_graph import JoinTree
from windrow.statistics.join_order import best_plan
from windrow.statistics.table_statistics import ColumnStatistics, DistinctCount, TableStatistics

__all__ = ["executions_until_loading_pays", "measure"]

_SAMPLE = 1024
Schemas = Mapping[str, pa.Schema]


def executions_until_loading_pays(load: float, native: float, first: float, later: float) -> float | None:
    """From how many executions on loading first is cheaper; None if it never is.

    >>> executions_until_loading_pays(load=100.0, native=1.0, first=3.0, later=2.0)
    99.0
    >>> executions_until_loading_pays(load=100.0, native=2.0, first=3.0, later=2.0)
    """
    return None if later <= native else max(0.0, (load - first + later) / (later - native))


def _statistics(connection: duckdb.DuckDBPyConnection, name: str) -> TableStatistics:
    """What there is to know of a native table."""
    columns = [row[0] for row in connection.execute(f"describe {name}").fetchall()]
    counts = ", ".join(f"count(distinct {column})" for column in columns)
    rows, *distinct = connection.execute(f"select count(*), {counts} from {name}").fetchall()[0]
    sample = f"from {name} using sample reservoir({_SAMPLE} rows) repeatable (7)"
    known = {
        column: ColumnStatistics(DistinctCount(float(count), is_exact=True))
        for column, count in zip(columns, distinct, strict=True)
    }
    return TableStatistics(rows, known, connection.sql(sample).to_arrow_table())


def _orders(
    query: str, schemas: Schemas, tables: Mapping[str, TableStatistics], cursor: duckdb.DuckDBPyConnection
) -> list[JoinTree]:
    """The best order of each group of joins in a query."""
    blocks = join_blocks(parse_one(over_tables(query), read="duckdb"), schemas)
    orders = []
    for block in blocks:
        cardinalities = Cardinalities(block.graph, tables, evaluate_with(cursor))
        orders.append(best_plan(block.graph, partial(_row_count, cardinalities)).tree)
    return orders


def _row_count(cardinalities: Cardinalities, relations: int) -> float:
    return cardinalities.of(relations).rows


def _ordered(text: str, schemas: Schemas, orders: list[JoinTree], columns: list[str]) -> str:
    """A query whose joins are in the given orders."""
    tree = parse_one(text, read="duckdb")
    for block, order in zip(join_blocks(tree, schemas), orders, strict=True):
        rewrite(block, order, Target(needs_barriers=True), columns if block.select is tree else None)
    return tree.sql("duckdb")


def _same_order(
    connection: duckdb.DuckDBPyConnection, folder: Path, files: Path, rounds: int
) -> dict[str, dict[str, Measured]]:
    """Every query over files and over tables in the same order of joins, in turn."""
    schemas = {name: connection.table(name).limit(0).to_arrow_table().schema for name in TABLES}
    of_files = {f"{files}/{name}.parquet".lower(): schema for name, schema in schemas.items()}
    tables = {name: _statistics(connection, name) for name in TABLES}
    measured = {}
    with windrow.connect(folder / "lake") as lake:
        for query in QUERIES:
            orders = _orders(query, schemas, tables, connection.cursor())
            columns = connection.sql(over_tables(query)).columns
            native = _ordered(over_tables(query), schemas, orders, columns)
            over = _ordered(over_files(query, files), of_files, orders, columns)
            ways: dict[str, Callable[[], object]] = {
                "files": partial(lake.sql, over),
                "native": partial(arrow, connection, native),
            }
            interleaved(ways, 1)
            measured[query] = interleaved(ways, rounds)
    return measured


def measure(folder: Path, asked: Options, report: Report) -> None:
    """Report slowdowns and the executions until loading pays."""
    files, rounds = generated(folder, asked.pick(0.01, 0.1, 1)), asked.pick(1, 2, 5)
    executed(folder, generated(folder, 0.01), 1)  # warms what a process starts with
    loads = {name: Measured() for name in TABLES}
    with closing(duckdb.connect()) as connection:
        for _ in range(asked.pick(1, 2, 3)):
            for name, loaded in loads.items():
                timed(loaded, partial(load, connection, files, name))
        native = interleaved({query: partial(arrow, connection, over_tables(query)) for query in QUERIES}, rounds)
        ordered = _same_order(connection, folder, files, rounds)
    over_parquet = executed(folder, files, rounds)
    rows, slowdowns, counts = [], [], []
    for query, ways in over_parquet.items():
        loading = sum(loads[name].least_cpu for name in tables_of(query))
        first, later = ways["first"].least_cpu, ways["second"].least_cpu
        pays = executions_until_loading_pays(loading, native[query].least_cpu, first, later)
        slowdowns.append(ordered[query]["files"].least_cpu / ordered[query]["native"].least_cpu)
        counts += [] if pays is None else [pays]
        milliseconds = {"load": loading, "native": native[query].least_cpu, "first": first, "later": later}
        rows.append(
            {
                "query": query.upper().replace("Q0", "Q"),
                **{f"{name} ms": seconds * 1000 for name, seconds in milliseconds.items()},
                "pays after": "never" if pays is None else round(pays),
                "slowdown": slowdowns[-1],
            }
        )
        report.add(what=f"loading, {query}", **{key.replace(" ", "_"): value for key, value in rows[-1].items()})
    report.ratios["parquet_over_native_same_order_geomean"] = geomean(slowdowns)
    report.ratios["loading_pays_after_least"] = min(counts, default=0.0)
    report.ratios["loading_pays_after_mean"] = sum(counts) / max(1, len(counts))
    report.ratios["loading_never_pays_queries"] = float(len(rows) - len(counts))
    if asked.size is Size.FULL:
        write_figures(DOCS / "statistics.md", "loading", markdown_table(rows))
        bars = {"files over native": slowdowns}
        plot = bar_plot([str(row["query"]) for row in rows], {"CPU in the same order of joins": bars}, line=1.0)
        (DOCS / "statistics-loading.svg").write_text(plot, encoding="utf-8")


if __name__ == "__main__":
    run(["loading"])
