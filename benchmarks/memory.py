"""Peak memory of every way in and out over data 20 times the budget, on 2 and on 64 threads.

Each way runs in a process of its own. What counts is how far its resident memory rises beyond what is resident after
the imports and a run over a few rows. `allowed` is the budget and the constant that docs/memory.md states. The bytes of
the data are those of plain Arrow rows. For a DataFrame the budget is that of a task, and the peak that of the worst
Python worker; for a stream and a query it is DuckDB's `memory_limit`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import windrow
from benchmarks.measure import Report, Size, options, peak_rss, reset_peak_rss, reset_tree_peak, tree_peak
from windrow.lake import Lake
from windrow.table import Table

MIB = 2**20
CONSTANT = 150 * MIB
"""What docs/memory.md allows beyond the budget."""
TIMES = 20
SORT = "metric_name|service|host|timestamp/V2"
START = 1_700_002_800_000
HOUR = 3_600_000
FILES, SPLITS, GROUP_ROWS = 8, 8, 2**20


def batches(size: int, hours: int = 4, seed: int = 0, rows: int = 65_536) -> Iterator[pa.RecordBatch]:
    """Points in the order of their arrival, about so many bytes of them, made as they are read."""
    rng = np.random.default_rng(seed)
    texts = [
        pa.array([pattern.format(number) for number in range(count)])
        for pattern, count in (("metric.{:03d}.count", 200), ("service-{:02d}", 50), ("host-{:04d}.example", 2000))
    ]
    done = 0
    while done < size:
        codes = [rng.integers(0, len(each), rows) for each in texts]
        times = START + (hours * HOUR - 1) * min(done / size, 1.0) + rng.integers(0, 900, rows)
        columns = [text.take(pa.array(code)) for text, code in zip(texts, codes, strict=True)]
        batch = pa.record_batch(
            {
                "metric_name": columns[0],
                "service": columns[1],
                "host": columns[2],
                "pod": columns[2],
                "timestamp": pa.array(times.astype(np.int64)).cast(pa.timestamp("ms", "UTC")),
                "value": pa.array(rng.normal(size=rows)),
                "other": pa.array(rng.normal(size=rows)),
            }
        )
        yield batch
        done += batch.nbytes


def _reader(size: int, **how: int) -> pa.RecordBatchReader:
    return pa.RecordBatchReader.from_batches(next(batches(1, rows=1)).schema, batches(size, **how))


def _table(folder: Path, name: str = "metrics") -> Table:
    lake = windrow.connect(str(folder / "lake"))
    return lake.create_table(name, sort=SORT, window="1h", policy={"merge_factor": 4, "max_merge_factor": 20})


def make_files(folder: Path, size: int) -> None:
    """Write the points as files whose row groups are as large as pyarrow makes them."""
    (folder / "files").mkdir()
    for number in range(FILES):
        rows = _reader(size // FILES, seed=number)
        with pq.ParquetWriter(folder / "files" / f"{number}.parquet", rows.schema) as writer:
            writer.write_table(rows.read_all(), row_group_size=GROUP_ROWS)


def make_splits(folder: Path, size: int) -> None:
    """Write the points as splits that lie over each other, some in every window."""
    table = _table(folder)
    for number in range(SPLITS):
        table.ingest(_reader(size // SPLITS, seed=number))


MAKE: dict[str, Callable[[Path, int], None]] = {
    "files": make_files,
    "dataframe": make_files,
    "compaction": make_splits,
    "stream": make_splits,
    "query": make_splits,
}


def _warm(folder: Path) -> None:
    """Do everything once over a few rows: what is loaded then counts as imports."""
    table = _table(folder, "warm")
    for number in range(4):
        table.ingest(_reader(1, seed=number, rows=40_000, hours=1))
    table.ingest(_reader(1, rows=40_000, hours=1), memory_budget=1)
    table.compact.run(threads=1)
    with windrow.connect(str(folder / "lake")) as lake:
        lake.sql("select host, avg(value) from warm group by host")
        _streamed(lake, "select * from warm")


def _streamed(lake: Lake, query: str) -> int:
    with lake.stream(query) as batches:
        return sum(len(each) for each in batches)


def run(way: str, folder: Path, size: int, budget: int, threads: int) -> int:
    """Go one way; return how many rows came through."""
    if way == "arrow":
        return _table(folder).ingest(_reader(size), memory_budget=budget, threads=threads).rows
    if way == "files":
        return _table(folder).ingest(str(folder / "files"), memory_budget=budget, threads=threads).rows
    with windrow.connect(str(folder / "lake"), threads=threads, memory_limit=f"{budget // MIB}MiB") as lake:
        if way == "compaction":
            return lake.table("metrics").compact.run(memory=budget, threads=threads).done
        if way == "stream":
            return _streamed(lake, "select * from metrics")
        found = lake.sql("select host, count(*) as n, avg(value) as mean from metrics group by host")
        return sum(row["n"] for row in found.to_dict())


def child(way: str, folder: str, size: int, budget: int, threads: int) -> None:
    """Go one way in this process, and print how far its memory rose."""
    with tempfile.TemporaryDirectory() as few:
        _warm(Path(few))
    pa.default_memory_pool().release_unused()
    before = reset_peak_rss()
    done = run(way, Path(folder), size, budget, threads)
    print(json.dumps({"done": done, "peak": peak_rss() - before}))


def spark_child(folder: str, size: int, budget: int, threads: int) -> None:
    """Bring a DataFrame in, and print how far the memory of a Python worker rose."""
    from windrow.runners.session import spark_session

    with spark_session(f"local[{threads}]") as spark:
        frame = spark.read.parquet(str(Path(folder) / "files"))
        with tempfile.TemporaryDirectory() as few:
            _table(Path(few)).ingest(frame.limit(100_000).repartition(threads), memory_budget=1)
        reset_tree_peak()
        before = tree_peak("python")
        # one task for each thread: the rows of a task are many times its budget
        rows = _table(Path(folder)).ingest(frame.coalesce(threads), memory_budget=budget, shuffle=False).rows
        print(json.dumps({"done": rows, "peak": tree_peak("python") - before, "size": size}))


def measured(way: str, folder: Path, size: int, budget: int, threads: int) -> dict[str, int]:
    """Make the data in one process and go the way in another."""
    if way in MAKE:
        _in_process(f"from pathlib import Path; m.MAKE[{way!r}](Path({str(folder)!r}), {size})")
    if way == "dataframe":
        return _in_process(f"m.spark_child({str(folder)!r}, {size}, {budget}, {threads})")
    return _in_process(f"m.child({way!r}, {str(folder)!r}, {size}, {budget}, {threads})")


def _in_process(code: str) -> dict[str, Any]:
    program = f"import benchmarks.memory as m; {code}"
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, stdout=subprocess.PIPE, text=True, env={**os.environ}
    )
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1]) if done.stdout.strip() else {}
    return found


def main(argv: Sequence[str] | None = None) -> None:
    """Measure all ways."""
    chosen = options(argv, __doc__)
    report = Report("memory", ("pyarrow", "duckdb", "numpy"))
    ways = [("arrow", 2), ("arrow", 64), ("files", 2), ("files", 64), ("compaction", 2), ("compaction", 64)]
    ways += [("stream", 2), ("query", 2), ("dataframe", 2)]
    if chosen.size is Size.TINY:
        ways = [("arrow", 2)]
    elif chosen.size is Size.QUICK:
        ways = [each for each in ways if each not in (("files", 2), ("compaction", 64))]
    budget = MIB * chosen.pick(2, 16, 128)
    for way, threads in ways:
        allowed = budget + CONSTANT
        with tempfile.TemporaryDirectory() as folder:
            found = measured(way, Path(folder), TIMES * budget, budget, threads)
        report.add(
            way=way,
            budget_mib=budget // MIB,
            threads=threads,
            data_mib=TIMES * budget // MIB,
            peak_mib=round(found["peak"] / MIB),
            allowed_mib=allowed // MIB,
        )
        report.ratios[f"{way}_{threads}_peak_over_allowed"] = found["peak"] / allowed
    report.show(chosen)


if __name__ == "__main__":
    main()
