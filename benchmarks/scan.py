"""Scans: the virtual file against plain files, one against many, granules against row groups, and planning."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import windrow
from benchmarks.measure import Options, Report, interleaved, options
from windrow.cache import MemoryCache
from windrow.engines.duckdb.engine import DuckDBEngine, Relation
from windrow.engines.duckdb.foreign_relations import ForeignRelations
from windrow.metastore import CommitKind
from windrow.model.scope import CompactionScope
from windrow.model.settings import TableSettings
from windrow.model.sources import SourceKind
from windrow.model.split import SplitMetadata
from windrow.model.window import Window
from windrow.planning.data_files import DataFile, open_sidecars, weight_of
from windrow.planning.foreign_files import ForeignFiles
from windrow.planning.scan_context import ScanContext
from windrow.planning.scan_plan import ScanPlan, plan_files
from windrow.planning.table_plans import plan_table
from windrow.questions.naming import Question
from windrow.questions.where import parse_where
from windrow.reading.forcing import Forcing
from windrow.reading.read_context import ReadContext
from windrow.sidecar.pruning import SidecarPruner
from windrow.splits.writer import SplitName, write_split
from windrow.storage import LocalStore

START = 1_767_225_600  # 2026-01-01
MINUTES = 120
METRICS = 400

Q1 = """
select l_returnflag, l_linestatus, sum(l_quantity), sum(l_extendedprice), sum(l_extendedprice * (1 - l_discount)),
  sum(l_extendedprice * (1 - l_discount) * (1 + l_tax)), avg(l_quantity), avg(l_extendedprice), avg(l_discount),
  count(*)
from {source} where l_shipdate <= date '1998-{month:02d}-02' group by all order by all
"""
Q6 = """
select sum(l_extendedprice * l_discount) from {source} where l_shipdate >= date '199{year}-01-01'
  and l_shipdate < date '199{year}-12-31' and l_discount between 0.05 and 0.07 and l_quantity < 24
"""


def lineitem(folder: Path, scale: float) -> Path:
    """Write TPC-H's largest table."""
    program = Path(sys.executable).with_name("tpchgen-cli")
    given = ["parquet", f"--scale-factor={scale}", "--tables=lineitem", f"--output-dir={folder}", "--quiet"]
    subprocess.run([program, *given], check=True)
    return folder / "lineitem.parquet"


def full_scan(folder: Path, asked: Options, report: Report) -> None:
    """Q1 and Q6 over one large file: through the virtual file, by its path as users get it, and by DuckDB, twice.

    The least of many rounds of the same connection differs by a tenth from run to run, the round in the middle by a
    hundredth; so that one counts, and what DuckDB takes of itself says how far it can be trusted.
    """
    path = lineitem(folder, asked.pick(0.01, 0.25, 1))
    store = LocalStore(folder)
    context = ScanContext("x", store, parsed=MemoryCache(2**26, weigh=weight_of))
    relations = ForeignRelations(ForeignFiles(context))
    engines = {
        "windrow": DuckDBEngine(ReadContext("x", store, forcing=Forcing(SourceKind.VIRTUAL))),
        "windrow_by_path": DuckDBEngine(ReadContext("x", store)),
    }
    plain = {"duckdb": duckdb.connect(), "duckdb_again": duckdb.connect()}
    turns = {who: count() for who in (*engines, *plain)}

    def ask(who: str, query: str) -> Any:
        turn = next(turns[who])
        text = query.format(source=f"'{path}'", month=1 + turn % 12, year=3 + turn % 4)
        if who in plain:
            return plain[who].execute(text).fetchall()
        return engines[who].sql(text, {}, relations).table

    ratios: dict[str, list[float]] = {who: [] for who in turns if who != "duckdb"}
    for name, query in (("Q1", Q1), ("Q6", Q6)):
        ways = {who: partial(ask, who, query) for who in turns}
        interleaved(ways, 2)
        measured = {who: each.middle_cpu for who, each in interleaved(ways, asked.pick(2, 9, 41)).items()}
        report.add(what=f"full scan, {name}", **{f"{who}_cpu_ms": used * 1000 for who, used in measured.items()})
        for who, found in ratios.items():
            found.append(measured[who] / measured["duckdb"])
    for engine in engines.values():
        engine.close()
    for who, found in ratios.items():
        report.ratios[f"fullscan_cpu_{who}_over_duckdb"] = max(found)


def points(seed: int, rows: int, first: float, seconds: float) -> pa.Table:
    """Points of many metrics in a slice of time."""
    random = np.random.default_rng(seed)
    times = ((START + first + random.uniform(0, seconds, rows)) * 1e6).astype(np.int64)
    return pa.table(
        {
            "metric_name": pa.array([f"metric_{n:04d}" for n in random.integers(0, METRICS, rows)]),
            "host": pa.array([f"host_{n:03d}" for n in random.integers(0, 50, rows)]),
            "timestamp": pa.array(times, pa.timestamp("us", "UTC")),
            "value": random.normal(size=rows),
        }
    )


def one_or_many(folder: Path, asked: Options, report: Report) -> None:
    """150 tiny files as one virtual file, and as one each."""
    count = asked.pick(10, 150, 150)
    store = LocalStore(folder / "tiny")
    for number in range(count):
        sink = pa.BufferOutputStream()
        pq.write_table(points(number, 40, number, 1).sort_by("metric_name"), sink)
        store.put(f"{number}.parquet", sink.getvalue())
    files = [DataFile(store, f"{n}.parquet", store.head(f"{n}.parquet").identity) for n in range(count)]
    context = ScanContext("x", store, parsed=MemoryCache(2**26, weigh=weight_of), threads=2)
    schema = pa.schema([(name, kind) for name, kind in zip(*_columns(points(0, 1, 0, 1)), strict=True)])

    def one(question: Question) -> ScanPlan:
        return plan_files(context, files, columns=question.columns)

    def many(question: Question) -> ScanPlan:
        plans = [plan_files(context, [file], columns=question.columns) for file in files]
        return ScanPlan([each for plan in plans for each in plan.virtual], plans[0].steps)

    engine = DuckDBEngine(ReadContext("x", store))
    turn = iter(range(10**6))

    def ask(plan: Any) -> None:
        query = f"select count(*), max(value), min(host) from t where value > -{10 + next(turn)}"
        engine.sql(query, {"t": lambda: Relation(schema, plan)})

    ways = {"one": lambda: ask(one), "many": lambda: ask(many)}
    interleaved(ways, 2)
    measured = interleaved(ways, asked.pick(2, 10, 20))
    engine.close()
    ours, theirs = measured["one"].least_cpu, measured["many"].least_cpu
    report.add(what=f"{count} tiny files as one virtual file", cpu_ms=ours * 1000, one_each_cpu_ms=theirs * 1000)
    report.ratios["virtual_one_over_many_150"] = ours / theirs


def _columns(table: pa.Table) -> tuple[Sequence[str], Sequence[pa.DataType]]:
    return table.schema.names, table.schema.types


def granules(folder: Path, asked: Options, report: Report) -> None:
    """Bytes of the selective query on a compacted split: by granules, and by row groups."""
    rows = asked.pick(20_000, 500_000, 500_000)
    store = LocalStore(folder / "compacted")
    settings = TableSettings.of(sort="metric_name|host|timestamp/V2", window="15m")
    scope = CompactionScope("t", "default", 0, 0, str(settings.sort), 900)
    name = SplitName("t", "split", "commit", 0)
    table = points(1, rows, 0, 900)
    split = write_split(store, table, settings, scope, Window(START, 900), name, _ids(table))
    file = DataFile(store, split.key, store.head(split.key).identity, split.sidecar)
    context = ScanContext("x", store, threads=1)
    low, high = "2026-01-01 00:04:00", "2026-01-01 00:06:00"
    predicate = parse_where(
        f"metric_name = 'metric_0123' and timestamp >= timestamp '{low}' and timestamp < timestamp '{high}'"
    )
    columns = ["metric_name", "timestamp", "value"]
    plan = plan_files(context, [file], predicate=predicate, columns=columns)
    [sidecar] = open_sidecars(context, [file])
    kept = SidecarPruner(predicate).prune(sidecar)
    places = [sidecar.column_position(column) for column in columns]
    by_groups = int(sidecar.chunks["total_compressed"][kept][:, places].sum())
    report.add(what="selective query on a compacted split", bytes=plan.bytes, row_group_bytes=by_groups)
    report.ratios["granule_bytes_ratio"] = plan.bytes / by_groups


def _ids(table: pa.Table) -> dict[str, int]:
    return {name: number + 1 for number, name in enumerate(table.column_names)}


def planning(folder: Path, asked: Options, report: Report) -> None:
    """Plan the selective query over 1,000 and 10,000 splits: only those that overlap its two minutes have files."""
    sizes = asked.pick((80, 240), (1000, 10_000), (1000, 10_000))
    ways = {f"{count} splits": _planner(folder / str(count), count) for count in sizes}
    interleaved(ways, 3)
    measured = interleaved(ways, asked.pick(3, 25, 50))
    few, many = (found.least_cpu * 1000 for found in measured.values())
    report.add(what=f"plan over {sizes[0]:,} files", cpu_ms=few)
    report.add(what=f"plan over {sizes[1]:,} files", cpu_ms=many)
    report.ratios["plan_ms_10000_files"] = many
    report.ratios["plan_growth_1000_to_10000"] = many / few


def _planner(folder: Path, count: int) -> Any:
    """A table of so many time-sliced splits, and a way to plan a query of two of its 120 minutes."""
    lake = windrow.connect(folder)
    lake.create_table("metrics", sort="metric_name|host|timestamp/V2", window="15m")
    store, metastore, record = lake.context.store, lake.context.metastore, lake.table("metrics").record()
    scope = CompactionScope(record.table_id, "default", 0, 0, str(record.settings.sort), 900)
    sample = points(0, 1, 0, 1)
    ids = {name: column.field_id for name, column in metastore.reserve_columns(record.table_id, sample.schema).items()}
    seconds, rows = MINUTES * 60 / count, max(4_000_000 // count, 20)
    middle = MINUTES * 30
    template: SplitMetadata | None = None
    splits: list[SplitMetadata] = []
    for number in range(count):
        first = number * seconds
        window = Window(START + int(first) // 900 * 900, 900)
        name = SplitName("metrics", f"split-{number:06d}", "commit", 0)
        if template is not None and not middle - 180 <= first <= middle + 180:
            splits.append(_unwritten(template, name.split_id, window, first, seconds))
            continue
        table = points(number, min(rows, 400), first, seconds * 0.999)
        template = write_split(store, table, record.settings, scope, window, name, ids)
        splits.append(template)
    metastore.open_commit(record.table_id, CommitKind.INGEST, commit_id="commit", lease=600)
    metastore.publish("commit", add=splits, columns=list(ids))
    context = ScanContext("x", store, parsed=MemoryCache(2**28, weigh=weight_of), threads=2)
    record = lake.table("metrics").record()
    turn = iter(range(10**6))

    def plan() -> None:
        metric = next(turn) % METRICS
        low = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(START + middle - 60))
        high = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(START + middle + 60))
        text = (
            f"metric_name = 'metric_{metric:04d}' and timestamp >= timestamp '{low}' and timestamp < timestamp '{high}'"
        )
        question = Question(("metric_name", "timestamp", "value"), parse_where(text))
        plan_table(context, metastore, record, record.version, question)

    return plan


def _unwritten(template: SplitMetadata, split_id: str, window: Window, first: float, seconds: float) -> SplitMetadata:
    """A split that no plan of the query opens, so that it needs no file."""
    low = int((START + first) * 1e6)
    return replace(
        template,
        split_id=split_id,
        window=window,
        key=f"metrics/{split_id}.parquet",
        time_min=low,
        time_max=low + int(seconds * 999_000),
        sidecar=None,
    )


def main(argv: list[str] | None = None) -> None:
    """Run the benchmark."""
    asked = options(argv, __doc__)
    report = Report("scan", ("duckdb", "pyarrow", "numpy"))
    with tempfile.TemporaryDirectory() as folder:
        for part in (planning, one_or_many, granules, full_scan):
            part(Path(folder), asked, report)
    report.show(asked)


if __name__ == "__main__":
    main()
