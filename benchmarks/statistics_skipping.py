"""How much of files is read by what was learnt of them, where the writer left no statistics (the paper's Fig. 8).

Orders and their items lie in order of their dates, as they came to be, on a web server that counts what it sends. The
queries with conditions on dates are run before anything is learnt and after, each with empty caches, once the ends of
the files were read: counted is what they request of all bytes of their files.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import copytree
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import duckdb
import pyarrow.parquet as pq

import windrow
from benchmarks.bars import bar_plot
from benchmarks.measure import Options, Report, Size
from benchmarks.pages import DOCS, markdown_table, write_figures
from benchmarks.statistics import run
from benchmarks.statistics_executions import geomean
from benchmarks.tpch import TABLES, generated, over_files, sizes_of, tables_of
from windrow.cache import CacheSettings
from windrow.lake import Lake
from windrow.testing import RangeServer

__all__ = ["BY_DATE", "Requested", "Server", "measure", "requested", "sorted_by_date"]

BY_DATE = tuple(f"q{number:02}" for number in (1, 3, 4, 6, 7, 8, 10, 12, 14, 15, 20))
"""The queries that have conditions on dates."""
_ORDERS = {"lineitem": " order by l_shipdate", "orders": " order by o_orderdate"}


class Requested(NamedTuple):
    """What a query requests of its files."""

    bytes: int
    requests: int
    row_groups: int
    of_row_groups: int


class Server(RangeServer):
    """Serves the files of a folder, each of another length."""

    def __init__(self, files: Path) -> None:
        super().__init__()
        self.objects = {f"/{name}.parquet": (files / f"{name}.parquet").read_bytes() for name in TABLES}

    def etag(self, data: bytes) -> str:
        """An etag that takes no time."""
        return f'"{len(data)}"'


def sorted_by_date(source: Path, rows: int) -> Path:
    """Write the tables in order of their dates, without statistics, in row groups of so many rows."""
    place = source.with_name(f"{source.name}-by-date-{rows}")
    place.mkdir(exist_ok=True)
    if not (place / "done").exists():
        with duckdb.connect() as connection:
            for name in TABLES:
                text = f"from '{source}/{name}.parquet'{_ORDERS.get(name, '')}"
                reader = connection.sql(text).to_arrow_reader(rows)
                with pq.ParquetWriter(place / f"{name}.parquet", reader.schema, write_statistics=False) as writer:
                    for batch in reader:
                        writer.write_batch(batch)
        (place / "done").touch()
    return place


@contextmanager
def lake_of(folder: Path, learnt: Path | None) -> Iterator[Lake]:
    """A lake whose caches are empty, but for statistics that were learnt."""
    with TemporaryDirectory() as cache:
        if learnt is not None:
            copytree(learnt / "statistics", Path(cache) / "statistics")
        settings = CacheSettings(folder=Path(cache))
        with windrow.connect(folder / "lake", cache=settings, statistics=0) as lake:
            yield lake


def requested(server: Server, folder: Path, query: str, learnt: Path | None = None) -> Requested:
    """Run a query, and count what it requests."""
    text = over_files(query, server.url)
    with lake_of(folder, learnt) as lake:
        lake.plan(text)
        server.requests.clear()
        server.sent = 0
        tables = lake.explain(text, analyze=True).tables
    steps = [[step for step in table.steps if step.units == "row groups"] for table in tables]
    kept, of = sum(each[-1].kept for each in steps), sum(each[0].asked for each in steps)
    return Requested(server.sent, len(server.requests), kept, of)


def measure(folder: Path, asked: Options, report: Report) -> None:
    """Report what is requested without synopses and with them, and draw it."""
    files = sorted_by_date(generated(folder, asked.pick(0.01, 0.1, 1)), asked.pick(2_048, 20_480, 122_880))
    with TemporaryDirectory() as cache, Server(files) as server:
        learnt = Path(cache)
        before = {query: requested(server, folder, query) for query in BY_DATE}
        with windrow.connect(folder / "lake", cache=CacheSettings(folder=learnt), statistics=0) as lake:
            for name in TABLES:
                lake.files(f"{server.url}/{name}.parquet").analyze()
        after = {query: requested(server, folder, query, learnt) for query in BY_DATE}
    shares: dict[str, list[float]] = {"without": [], "with": []}
    sizes, rows = sizes_of(files), list[dict[str, Any]]()
    for query in BY_DATE:
        size = sum(sizes[name] for name in tables_of(query))
        for way, each in (("without", before[query]), ("with", after[query])):
            shares[way].append(100 * each.bytes / size)
        row = {
            "query": query.upper().replace("Q0", "Q"),
            "files, MB": size / 1e6,
            "bytes without, %": shares["without"][-1],
            "bytes with, %": shares["with"][-1],
            "row groups": before[query].of_row_groups,
            "row groups with": after[query].row_groups,
            "requests without": before[query].requests,
            "requests with": after[query].requests,
        }
        rows.append(row)
        report.add(what=f"skipping, {query}", **{_field(name): value for name, value in row.items()})
    for way, found in shares.items():
        report.ratios[f"skipping_share_{way}"] = sum(found) / len(found) / 100
    report.ratios["skipping_geomean"] = geomean([before[query].bytes / after[query].bytes for query in BY_DATE])
    if asked.size is Size.FULL:
        write_figures(DOCS / "statistics.md", "skipping", markdown_table(rows))
        plot = bar_plot([str(row["query"]) for row in rows], {"bytes requested, % of the files": shares})
        (DOCS / "statistics-skipping.svg").write_text(plot, encoding="utf-8")


def _field(name: str) -> str:
    return name.replace(", %", "").replace(", ", " ").replace(" ", "_")


if __name__ == "__main__":
    run(["skipping"])
