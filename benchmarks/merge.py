"""N sorted splits into one: CPU, wall, memory and bytes beside DuckDB, Polars and DataFusion.

Each set is written by the split writer. Windrow's time includes the default verification and the sidecar; all engines
write zstd level 3 and row groups of 131,072 rows with two threads, each in a warm process of its own. `overlap` is time
slices of the same series, `random` scatters the rows, `disjoint` gives each input a range of series, `tiny125` is eight
windows of 125 inputs of 4,000 rows. Two sets do not flatter us: `jitter8` has timestamps that never repeat, `tags8`
tags that do not follow the host, and maps.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.measure import (
    Measured,
    Options,
    Report,
    apart,
    options,
    peak_rss,
    reset_peak_rss,
    serve,
)
from windrow.merging.heap import own_process
from windrow.merging.merge import MergeOptions
from windrow.merging.splits import merge_splits
from windrow.model.scope import CompactionScope
from windrow.model.settings import TableSettings
from windrow.model.split import SplitMetadata
from windrow.model.window import Window
from windrow.splits.writer import SplitName, write_split
from windrow.storage import open_store

SORT = ("metric_name", "service", "env", "host", "timestamp")
SETTINGS = TableSettings.of(sort="metric_name|service|env|host|timestamp+/V2")
SCOPE = CompactionScope("bench", "default", 0, 0, SETTINGS.sort.canonical(), 900)
START = 1_700_000_100
POINTS = 90
THREADS = 2


@dataclass(frozen=True)
class Shape:
    """A set: how rows are spread over inputs, and how many there are."""

    name: str
    spread: str
    inputs: int
    rows: int
    windows: int = 1
    jitter: bool = False
    loose_tags: bool = False


def shapes(chosen: Options) -> list[Shape]:
    rows = chosen.pick(500, 60_000, 500_000)
    tiny = chosen.pick(4, 60, 125)
    sets = [
        Shape("overlap8", "overlap", 8, rows),
        Shape("tiny125", "overlap", tiny, chosen.pick(100, 4_000, 4_000), chosen.pick(1, 2, 8)),
        Shape("disjoint8", "disjoint", 8, rows),
        Shape("random8", "random", 8, rows),
        Shape("overlap16", "overlap", 16, rows),
        Shape("jitter8", "overlap", 8, rows, jitter=True),
        Shape("tags8", "overlap", 8, rows // 2, loose_tags=True),
    ]
    return sets[:2] if chosen.size < 2 else sets


def named(codes: np.ndarray[Any, Any], pattern: str, null: np.ndarray[Any, Any] | None = None) -> pa.Array:
    names = pa.array([pattern.format(code) for code in range(int(codes.max(initial=0)) + 1)])
    return pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int32), mask=null), names).cast(pa.string())


def values_of(rng: np.random.Generator, metric: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A quarter of the metrics counts, one is constant, one has three decimals, one full precision."""
    kinds = [
        rng.integers(0, 1000, metric.size),
        metric,
        np.round(rng.gamma(2, 20, metric.size), 3),
        rng.normal(size=metric.size),
    ]
    return np.choose(metric % 4, [kind.astype(np.float64) for kind in kinds])


def rows_of(shape: Shape, window: Window, seed: int) -> tuple[pa.Table, np.ndarray[Any, Any]]:
    """All rows of a window in their order, and the input of each."""
    rng = np.random.default_rng(seed)
    total = shape.inputs * shape.rows
    series = np.unique(rng.choice(200 * 2000, max(total // POINTS, 1), replace=False))
    point, place = np.divmod(np.arange(total), series.size)
    metric, host = np.divmod(series[place], 2000)
    step = (
        point
        * (900_000 // max(int(point.max()) + 1, 1))
        // (1 if shape.jitter else 10_000)
        * (1 if shape.jitter else 10_000)
    )
    times = window.start * 1000 + step + (rng.integers(0, 9_999, total) if shape.jitter else 0)
    # every input has the same number of rows: a slice of time with soft edges, or a random draw
    drawn = point + rng.normal(0, 0.5, total) if shape.spread == "overlap" else rng.random(total)
    owner = np.empty(total, np.int64)
    owner[np.argsort(drawn)] = np.arange(total) * shape.inputs // total
    tag = rng.integers(0, 2000, total) if shape.loose_tags else host
    columns = {
        "metric_name": named(metric, "metric.{:03d}.count"),
        "service": named(metric % 50, "service-{:02d}"),
        "env": named(host % 4, "env-{}", host % 37 == 0),
        "host": named(host, "host-{:04d}.example", host % 97 == 0),
        "timestamp": pa.array(times).cast(pa.timestamp("ms")),
        "value": pa.array(values_of(rng, metric)),
        "region": named(tag % 6, "region-{}", tag % 11 == 0),
        "version": named(tag % 12, "v1.{}", tag % 13 == 0),
        "pod": named(tag, "pod-{:05d}-abc"),
    }
    order = np.lexsort(
        [times, np.where(host % 97 == 0, 2000, host), np.where(host % 37 == 0, 4, host % 4), metric % 50, metric]
    )
    if shape.spread == "disjoint":
        owner[order] = np.arange(total) * shape.inputs // total
    if shape.loose_tags:
        offsets = np.arange(total + 1, dtype=np.int32) * 2
        keys, items = pa.array(["zone", "build"] * total), pa.array([f"{n % 50}" for n in range(2 * total)])
        columns["attributes"] = pa.MapArray.from_arrays(offsets, keys, items)
    return pa.table(columns).take(pa.array(order)), owner[order]


PLAN = "plan.json"


def write_set(shape: Shape, folder: Path) -> list[list[SplitMetadata]]:
    """Write the inputs, and the splits of each window as the plan of what is merged, which are returned too."""
    store = open_store(str(folder))
    windows = []
    for number in range(shape.windows):
        window = Window.of(START + 900 * number, 900)
        table, owner = rows_of(shape, window, seed=number)
        ids = {name: place + 1 for place, name in enumerate(table.column_names)}
        splits = []
        for each in range(shape.inputs):
            part = table.take(pa.array(np.flatnonzero(owner == each)))
            name = SplitName(shape.name, f"in-{number}-{each:03d}", "bench", 0)
            splits.append(write_split(store, part, SETTINGS, SCOPE, window, name, ids))
        windows.append(splits)
    (folder / PLAN).write_text(json.dumps([[split.to_dict() for split in splits] for splits in windows]))
    return windows


def _name(window: int, number: int) -> SplitName:
    return SplitName("out", f"{window}-{number}", "bench", 0)


def windrow_way(
    folder: Path, windows: Sequence[Sequence[SplitMetadata]], out: Path, **changes: Any
) -> Callable[[], None]:
    store = open_store(str(folder))
    own_process()

    def run() -> None:
        for number, splits in enumerate(windows):
            made = merge_splits(
                store,
                splits,
                SETTINGS,
                partial(_name, number),
                MergeOptions(threads=THREADS),
                **changes,
            )
            for split in made:
                (out / f"{split.split_id}.parquet").write_text(f"{split.size_bytes}")

    return run


def _order_by() -> str:
    return ", ".join(f"{column} asc nulls last" for column in SORT)


def duckdb_way(folder: Path, windows: Sequence[Sequence[SplitMetadata]], out: Path) -> Callable[[], None]:
    import duckdb

    connection = duckdb.connect()
    connection.execute(f"set threads={THREADS}")

    def run() -> None:
        for number, splits in enumerate(windows):
            files = [str(folder / split.key) for split in splits]
            connection.execute(
                f"copy (select * from read_parquet({files}, hive_partitioning=false) order by {_order_by()}) to "
                f"'{out}/{number}.parquet' (format parquet, compression zstd, compression_level 3, "
                "row_group_size 131072, write_bloom_filter false)"
            )

    return run


def polars_way(folder: Path, windows: Sequence[Sequence[SplitMetadata]], out: Path) -> Callable[[], None]:
    import polars as pl

    def run() -> None:
        for number, splits in enumerate(windows):
            scan = pl.scan_parquet([folder / split.key for split in splits], hive_partitioning=False)
            scan.sort(SORT, nulls_last=True).sink_parquet(
                out / f"{number}.parquet", compression="zstd", compression_level=3, row_group_size=131_072
            )

    return run


def datafusion_way(folder: Path, windows: Sequence[Sequence[SplitMetadata]], out: Path) -> Callable[[], None]:
    from datafusion import SessionConfig, SessionContext

    sources = []
    for number, splits in enumerate(windows):
        links = out / f"inputs-{number}"
        links.mkdir()
        for split in splits:
            (links / f"{split.split_id}.parquet").symlink_to(folder / split.key)
        sources.append((links, len(splits), folder / splits[0].key))

    def run() -> None:
        for number, (links, count, first) in enumerate(sources):
            context = SessionContext(SessionConfig().with_target_partitions(count))
            columns = ", ".join(_datafusion_columns(first))
            context.sql(
                f"create external table t({columns}) stored as parquet with order ({_order_by()}) location '{links}/'"
            )
            context.sql(
                f"copy (select * from t order by {_order_by()}) to '{out}/{number}.parquet' stored as parquet options "
                "('format.compression' 'zstd(3)', 'format.max_row_group_size' '131072', "
                "'format.dictionary_enabled::value' 'false')"
            ).collect()

    return run


def _datafusion_columns(file: Path) -> list[str]:
    import pyarrow.parquet as pq

    kinds = {"string": "varchar", "double": "double", "timestamp[ms]": "timestamp"}
    return [f"{field.name} {kinds[str(field.type)]}" for field in pq.read_schema(file)]


WAYS: dict[str, Callable[..., Callable[[], None]]] = {
    "windrow": windrow_way,
    "duckdb": duckdb_way,
    "polars": polars_way,
    "datafusion": datafusion_way,
}


def peers(shape: Shape) -> list[str]:
    """The engines that are installed and can do it; DataFusion's SQL has no map columns."""
    found = [name for name in WAYS if name == "windrow" or importlib.util.find_spec(name)]
    return [name for name in found if name != "datafusion" or not shape.loose_tags]


def _bytes(out: Path) -> int:
    return sum(
        int(path.read_text()) if path.stat().st_size < 20 else path.stat().st_size for path in out.glob("*.parquet")
    )


def _load_kernels() -> None:
    """Merge a few rows: compiled code counts as an import as far as memory goes."""
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as out:
        few = Shape("warm", "overlap", 2, 200)
        windrow_way(Path(folder), write_set(few, Path(folder)), Path(out))()


def child(engine: str, folder: str, plan: str, *, warm: bool) -> None:
    """One merge in a process of its own: what all of it cost, and how far memory rose beyond the imports.

    A peer does not pay for the import of this module, which it would not need. What a cold process costs and what
    memory a warm one takes are asked of two processes.
    """
    imported = 0 if engine == "windrow" else time.process_time()
    with tempfile.TemporaryDirectory() as out:
        way = WAYS[engine](Path(folder), read_plan(plan), Path(out))
        if engine == "windrow" and warm:
            _load_kernels()
        before = reset_peak_rss()
        way()
        print(json.dumps({"cpu": time.process_time() - imported, "rss": peak_rss() - before}))


def server(engine: str, folder: str, plan: str, out: str) -> None:
    """Merge in a warm process of its own, whenever the parent says so."""
    serve(WAYS[engine](Path(folder), read_plan(plan), Path(out)))


def read_plan(plan: str | Path) -> list[list[SplitMetadata]]:
    """The splits of each window, as they were written down."""
    return [[SplitMetadata.from_dict(split) for split in splits] for splits in json.loads(Path(plan).read_text())]


def _in_processes(outs: dict[str, Path], folder: Path, plan: Path, rounds: int) -> dict[str, Measured]:
    code = "from benchmarks.merge import server; server({!r}, {!r}, {!r}, {!r})"
    return apart({name: code.format(name, str(folder), str(plan), str(out)) for name, out in outs.items()}, rounds)


def _alone(engine: str, folder: Path, plan: Path) -> dict[str, float]:
    """The CPU of a cold process, the lesser of two, and the memory of a warm one."""
    cold, again, warm = (_in_process(engine, folder, plan, warm=warm) for warm in (False, False, True))
    return {"cpu": min(cold["cpu"], again["cpu"]), "rss": warm["rss"]}


def _in_process(engine: str, folder: Path, plan: Path, *, warm: bool) -> dict[str, float]:
    code = f"from benchmarks.merge import child; child({engine!r}, {str(folder)!r}, {str(plan)!r}, warm={warm})"
    environment = {**os.environ, "POLARS_MAX_THREADS": str(THREADS)}
    # packages are installed with their bytecode, and so is this one
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    done = subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.PIPE, text=True, env=environment)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def measure(shape: Shape, chosen: Options, report: Report) -> None:
    """Measure one set."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        write_set(shape, folder)
        plan = folder / PLAN
        outs = {name: folder / f"out-{name}" for name in peers(shape)}
        for out in outs.values():
            out.mkdir()
        results = _in_processes(outs, folder, plan, chosen.pick(1, 2, 5))
        alone = {name: _alone(name, folder, plan) for name in outs}
        sizes = {name: _bytes(out) for name, out in outs.items()}
    for name in outs:
        report.add(
            set=shape.name,
            engine=name,
            cpu_s=round(results[name].least_cpu, 3),
            wall_s=round(results[name].least_wall, 3),
            process_cpu_s=round(alone[name]["cpu"], 2),
            rss_mb=round(alone[name]["rss"] / 2**20),
            mb=round(sizes[name] / 1e6, 2),
        )
    _ratios(shape.name, results, alone, sizes, report)


def _ratios(name: str, results: Any, alone: dict[str, dict[str, float]], sizes: dict[str, int], report: Report) -> None:
    own = results["windrow"]
    others = [engine for engine in results if engine != "windrow"]
    for engine in others:
        report.ratios[f"cpu_{engine}_over_windrow_{name}"] = results[engine].least_cpu / own.least_cpu
        report.ratios[f"wall_{engine}_over_windrow_{name}"] = results[engine].least_wall / own.least_wall
        report.ratios[f"process_cpu_{engine}_over_windrow_{name}"] = alone[engine]["cpu"] / alone["windrow"]["cpu"]
    if "datafusion" in others:
        report.ratios[f"rss_windrow_over_datafusion_{name}"] = alone["windrow"]["rss"] / max(
            alone["datafusion"]["rss"], 1
        )
    if others:
        report.ratios[f"bytes_windrow_over_best_peer_{name}"] = sizes["windrow"] / min(sizes[one] for one in others)


def main(argv: Sequence[str] | None = None) -> None:
    """Measure every set of the size."""
    chosen = options(argv, __doc__)
    os.environ.setdefault("POLARS_MAX_THREADS", str(THREADS))
    packages = ("duckdb", "polars", "datafusion", "pyarrow", "numpy", "zstandard")
    report = Report("merge", tuple(name for name in packages if importlib.util.find_spec(name)))
    for shape in shapes(chosen):
        measure(shape, chosen, report)
    report.show(chosen)


if __name__ == "__main__":
    main()
