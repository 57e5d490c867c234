"""The caches: a hit against a miss for bytes and for parsed metadata, thrashing against no cache, cost and memory."""

from __future__ import annotations

import itertools
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.measure import Options, Report, interleaved, options, peak_rss, reset_peak_rss
from windrow.cache import CacheKey, DiskCache, MemoryCache
from windrow.planning.data_files import weight_of
from windrow.planning.footers import load_footer
from windrow.sidecar import Sidecar
from windrow.sidecar.build import build_sidecar
from windrow.storage import LocalStore

WORKING_SET = 8
"""How many times the budget the files of the thrashing workload take."""


def write_wide(path: Path, columns: int, groups: int) -> None:
    """Write a file of which the footer is most of it."""
    table = pa.table({f"column_{number:05d}": np.arange(groups) for number in range(columns)})
    pq.write_table(table, path, row_group_size=1, compression="none", use_dictionary=False)


def footers(folder: Path, asked: Options, report: Report) -> None:
    """Measure one footer: read and parsed, parsed from cached bytes, cached as parsed."""
    columns = asked.pick(50, 1000, 1000)
    store, key = LocalStore(folder), "wide.parquet"
    write_wide(folder / key, columns, 10)
    name = CacheKey.footer("file:///wide.parquet")
    data: MemoryCache[bytes] = MemoryCache(2**30)
    parsed: MemoryCache[pq.FileMetaData] = MemoryCache(2**30, weigh=lambda footer: 8 * footer.serialized_size)

    def parse(footer: bytes) -> pq.FileMetaData:
        return pq.read_metadata(pa.BufferReader(footer))

    ways: dict[str, Callable[[], object]] = {
        "miss": lambda: parse(load_footer(store, key)[0]),
        "bytes hit": lambda: parse(data.get(name, lambda _: load_footer(store, key)[0])),
        "parsed hit": lambda: parsed.get(name, lambda _: parse(load_footer(store, key)[0])),
    }
    interleaved(ways, 2)
    measured = interleaved(ways, asked.pick(5, 40, 100))
    for way, found in measured.items():
        report.add(what=f"footer of {columns}x10: {way}", microseconds=found.least_cpu * 1e6)
    miss = measured["miss"].least_cpu
    report.ratios["parsed_hit_over_miss_1000x10"] = measured["parsed hit"].least_cpu / miss
    report.ratios["bytes_hit_over_miss"] = measured["bytes hit"].least_cpu / miss


def thrashing(folder: Path, asked: Options, report: Report) -> None:
    """Open a working set of several times the budget again and again, with a cache in front and without one."""
    count = asked.pick(16, 160, 160)
    store = LocalStore(folder)
    for number in range(count):
        write_wide(folder / f"{number}.parquet", 20, 10)
    size = 8 * pq.read_metadata(folder / "0.parquet").serialized_size
    cache: MemoryCache[pq.FileMetaData] = MemoryCache(
        count * size // WORKING_SET, weigh=lambda footer: 8 * footer.serialized_size
    )

    def load(key: CacheKey) -> pq.FileMetaData:
        return pq.read_metadata(pa.BufferReader(load_footer(store, key.uri)[0]))

    keys = [CacheKey.footer(f"{number}.parquet") for number in range(count)]

    def cached() -> None:
        for key in keys:
            cache.get(key, load)

    def uncached() -> None:
        for key in keys:
            load(key)

    ways = {"cached": cached, "uncached": uncached}
    interleaved(ways, 2)
    measured = interleaved(ways, asked.pick(3, 30, 60))
    ratio = measured["cached"].least_cpu / measured["uncached"].least_cpu
    hits = cache.metrics.total()
    report.add(
        what=f"{count} footers, {WORKING_SET}x the budget",
        microseconds=measured["cached"].least_cpu / count * 1e6,
        uncached=measured["uncached"].least_cpu / count * 1e6,
        hit_rate=hits.hits / (hits.hits + hits.misses),
    )
    report.ratios["thrash_over_uncached"] = ratio


def hit_cost(folder: Path, asked: Options, report: Report) -> None:
    """What a hit costs, in memory and on disk."""
    memory: MemoryCache[bytes] = MemoryCache(2**30)
    disk = DiskCache(folder / "disk", 2**30)
    keys = [CacheKey(f"s3://bucket/{number}.parquet", 0, 65536) for number in range(100)]
    for key in keys:
        memory.put(key, bytes(65536))
        disk.put(key, bytes(65536))
    turns = asked.pick(100, 20_000, 100_000)

    def hits(cache: Any, count: int) -> float:
        chosen = list(itertools.islice(itertools.cycle(keys), count))
        start = time.process_time()
        for key in chosen:
            cache.get(key, None)
        return (time.process_time() - start) / count

    cost = min(hits(memory, turns) for _ in range(5))
    on_disk = min(hits(disk, max(turns // 50, 10)) for _ in range(3))
    report.add(what="a hit in memory", microseconds=cost * 1e6)
    report.add(what="a hit of 64 KiB on disk, checked", microseconds=on_disk * 1e6)
    report.ratios["memory_hit_microseconds"] = cost * 1e6
    report.ratios["disk_hit_microseconds"] = on_disk * 1e6


def footprint(folder: Path, asked: Options, report: Report) -> None:
    """Fill the tier of parsed sidecars and compare what it takes with what it may."""
    path = folder / "one.parquet"
    pq.write_table(pa.table({f"column_{number}": [1, 2] for number in range(20)}), path, row_group_size=1)
    data = path.read_bytes()
    made = build_sidecar(lambda start, length: data[start : start + length], len(data), name="one")
    budget = asked.pick(2**20, 2**26, 2**27)
    before = reset_peak_rss()
    cache: MemoryCache[Sidecar] = MemoryCache(budget, weigh=weight_of)
    for number in range(2 * budget // (len(made) + 6000)):
        sidecar = Sidecar.of(bytes(bytearray(made)), verify=False)
        _ = sidecar.entries, sidecar.extensions.tables, sidecar.extensions.schema
        cache.put(CacheKey(f"file:///{number}", -1, -1), sidecar)
    used = peak_rss() - before
    report.add(what="parsed tier, filled twice over", megabytes=used / 1e6, budget=budget / 1e6)
    report.ratios["parsed_memory_over_budget"] = used / budget


def main(argv: list[str] | None = None) -> None:
    """Run the benchmark."""
    asked = options(argv, __doc__)
    report = Report("cache", ("pyarrow", "numpy"))
    with tempfile.TemporaryDirectory() as folder:
        footprint(Path(folder), asked, report)
        for part in (footers, thrashing, hit_cost):
            part(Path(folder), asked, report)
    report.show(asked)


if __name__ == "__main__":
    main()
