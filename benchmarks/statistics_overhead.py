"""What statistics cost the first execution of each query, over files that nothing was known of.

Each execution is in a lake of its own, whose cache folder is empty, with all that the learner does after it: the next
one begins when nothing is left that was paid for. CPU is that of all threads. `dictionary` learns chunks whose values
are all in a dictionary, `all` whatever the share pays for. The same is measured of all queries one after the other in
one lake, whose statistics grow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import windrow
from benchmarks.measure import Measured, Options, Report, Size
from benchmarks.pages import DOCS, markdown_table, write_figures
from benchmarks.statistics import run
from benchmarks.statistics_executions import timed
from benchmarks.tpch import QUERIES, generated, over_files
from windrow.cache import CacheSettings
from windrow.lake import Lake
from windrow.learning import LearningSettings

__all__ = ["measure"]

_DRAIN = 600.0
WAYS = {
    "without": LearningSettings(0.0),
    "dictionary": LearningSettings(only_dictionaries=True),
    "all": LearningSettings(),
}
_PLENTY = LearningSettings(1e6)
Ways = dict[str, Measured]


@contextmanager
def _new_lake(folder: Path, settings: LearningSettings) -> Iterator[Lake]:
    """A lake that knows nothing, whose engine has started."""
    with (
        TemporaryDirectory() as cache,
        windrow.connect(folder / "lake", cache=CacheSettings(folder=Path(cache)), statistics=settings) as lake,
    ):
        lake.sql("select 1")
        yield lake


def _executed(lake: Lake, text: str) -> None:
    """Run a query, and what follows from it."""
    lake.sql(text).to_arrow()
    if lake.context.learner is not None:
        lake.context.learner.drain(_DRAIN)


def _alone(folder: Path, text: str, settings: LearningSettings, measured: Measured) -> None:
    with _new_lake(folder, settings) as lake:
        timed(measured, partial(_executed, lake, text))


def _one_by_one(folder: Path, files: Path, settings: LearningSettings, measured: Mapping[str, Measured]) -> None:
    with _new_lake(folder, settings) as lake:
        for query, each in measured.items():
            timed(each, partial(_executed, lake, over_files(query, files)))


def _in_turn(turns: Sequence[Callable[[], None]], number: int) -> None:
    shift = number % len(turns)
    for turn in (*turns[shift:], *turns[:shift]):
        turn()


def executed(folder: Path, files: Path, rounds: int) -> tuple[dict[str, Ways], dict[str, Ways]]:
    """Run all queries so often: each in lakes of its own, and all in one lake; by query and way."""
    alone = {query: {way: Measured() for way in WAYS} for query in QUERIES}
    grown = {query: {way: Measured() for way in ("without", "all")} for query in QUERIES}
    for number, query in product(range(rounds), QUERIES):
        text = over_files(query, files)
        turns = [partial(_alone, folder, text, settings, alone[query][way]) for way, settings in WAYS.items()]
        _in_turn(turns, number)
    for number in range(rounds):
        of_way = {way: {query: grown[query][way] for query in QUERIES} for way in ("without", "all")}
        _in_turn([partial(_one_by_one, folder, files, WAYS[way], each) for way, each in of_way.items()], number)
    return alone, grown


def statistics_bytes(folder: Path, files: Path) -> dict[str, int]:
    """The bytes of statistics of all columns of lineitem: on the disk, and of its file."""
    path = files / "lineitem.parquet"
    with TemporaryDirectory() as cache:
        place = Path(cache)
        settings = CacheSettings(folder=place)
        with windrow.connect(folder / "lake", cache=settings, statistics=_PLENTY) as lake:
            # The last row group is enough to see that a query reads all of it.
            with lake.stream(f"select * from '{path}'") as batches:
                for _ in batches:
                    pass
            assert lake.context.learner is not None
            lake.context.learner.drain(_DRAIN)
        size = sum(each.stat().st_size for each in (place / "statistics").rglob("*") if each.is_file())
    return {"statistics": size, "file": path.stat().st_size}


def _ratio(measured: Mapping[str, Ways], over: str) -> float:
    return sum(each[over].least_cpu for each in measured.values()) / sum(
        each["without"].least_cpu for each in measured.values()
    )


def measure(folder: Path, asked: Options, report: Report) -> None:
    """Report what collecting costs the first executions, and how large statistics are."""
    files = generated(folder, asked.pick(0.01, 0.1, 1))
    executed(folder, generated(folder, 0.01), 1)  # warms what a process starts with
    alone, grown = executed(folder, files, asked.pick(1, 2, 5))
    rows: list[dict[str, Any]] = []
    for query, ways in alone.items():
        cpu = {f"{way} ms": each.least_cpu * 1000 for way, each in ways.items()}
        later = {f"{way}, one lake, ms": each.least_cpu * 1000 for way, each in grown[query].items()}
        rows.append({"query": query.upper().replace("Q0", "Q"), **cpu, **later})
        report.add(what=f"overhead, {query}", **{name.replace(" ", "_"): each for name, each in (cpu | later).items()})
    report.ratios["first_scan_overhead_dictionary"] = _ratio(alone, "dictionary")
    report.ratios["first_scan_overhead_all"] = _ratio(alone, "all")
    report.ratios["overhead_of_queries_in_one_lake"] = _ratio(grown, "all")
    sizes = {
        f"{scale:g}": statistics_bytes(folder, generated(folder, scale)) for scale in asked.pick((0.01,), (0.1,), (1,))
    }
    for scale, size in sizes.items():
        report.add(what=f"lineitem at scale {scale}, bytes", **size)
    if asked.size is Size.FULL:
        sums = {name: sum(row[name] for row in rows) for name in rows[0] if name != "query"}
        write_figures(DOCS / "statistics.md", "overhead", markdown_table([*rows, {"query": "all", **sums}]))
        lines = [
            {"lineitem at scale": scale, **{f"{k} bytes": v for k, v in size.items()}} for scale, size in sizes.items()
        ]
        write_figures(DOCS / "statistics.md", "sizes", markdown_table(lines))


if __name__ == "__main__":
    run(["overhead"])
