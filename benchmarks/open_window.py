"""An open window that gets small batches: as small splits of a lake, merged meanwhile or not, and as one growing file.

Batches of 1,000 rows come for one hour. `splits` is a table of a lake: each batch is a split and a sidecar, in one
commit. `merged` is the same with a compaction after every sixteen batches, which counts as theirs. `growing` is a
partition of the store in QuestDB's layout: each batch is a row group in place, an update of `_pm` and one of `_txn`.
All are read by `lake.sql`, and their answers are compared. A batch is one call of the public API, with the rows made
before; what it writes is what the process hands to the system, forced writes are those of files and folders, and one
for each transaction of the metastore that changes something (SQLite with a write-ahead log).

Questions are for one of 200 hosts, for the newest tenth of the rows, and for all rows by group. `warm` is a question
again, `after a batch` the first one that sees a new batch, `first` that of a new connection. `closed` is warm, after
the window has become large sorted splits: by a compaction, or by an ingest of all rows of the grown file.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import sqlalchemy as sa

import windrow
from benchmarks.measure import Measured, Options, Report, interleaved, options
from windrow.questdb.store import PartitionStore, create_table

SCHEMA = pa.schema(
    [
        ("timestamp", pa.timestamp("us", "UTC")),
        ("host", pa.string()),
        ("region", pa.string()),
        ("value", pa.float64()),
        ("load", pa.float64()),
        ("count", pa.int64()),
    ]
)
EVERY = 16
"""Batches to a compaction, as many as its policy waits for."""
START, HOUR = 1_704_067_200_000_000, 3_600_000_000
"""Monday, 2024-01-01, in microseconds."""
BATCH = 1_000
HOSTS = pa.array([f"host-{number:03d}.example" for number in range(200)])
REGIONS = pa.array([f"region-{number}" for number in range(6)])
CHANGES = ("INSERT", "UPDATE", "DELETE")

SORT = "host|timestamp/V2"

Rows = Callable[[int], pa.Table]
Costs = dict[str, float]


def batches(count: int) -> Rows:
    """The rows of a batch by its number; so many of them fill the hour."""
    step = HOUR // (count * BATCH)

    def rows(number: int) -> pa.Table:
        rng = np.random.default_rng(number)
        hosts = rng.integers(0, len(HOSTS), BATCH)
        columns = [
            pa.array(START + (number * BATCH + np.arange(BATCH)) * step).cast(SCHEMA.field(0).type),
            HOSTS.take(pa.array(hosts)),
            REGIONS.take(pa.array(hosts % len(REGIONS))),
            rng.normal(size=BATCH),
            np.round(rng.gamma(2, 20, BATCH), 2),
            rng.integers(0, 1_000, BATCH),
        ]
        return pa.table(columns, schema=SCHEMA)

    return rows


class Forced:
    """Counts what is forced to the disk while it is looked at."""

    def __init__(self) -> None:
        self.count = 0
        self._changed = False

    @contextmanager
    def counting(self) -> Iterator[None]:
        plain = os.fsync

        def counted(descriptor: int) -> None:
            self.count += 1
            plain(descriptor)

        hooks: dict[str, Callable[..., None]] = {"before_cursor_execute": self._executed, "commit": self._committed}
        for name, hook in hooks.items():
            sa.event.listen(sa.Engine, name, hook)
        os.fsync = counted  # type: ignore[assignment]
        try:
            yield
        finally:
            os.fsync = plain
            for name, hook in hooks.items():
                sa.event.remove(sa.Engine, name, hook)

    def _executed(self, _connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        self._changed |= statement.lstrip().upper().startswith(CHANGES)

    def _committed(self, _connection: Any) -> None:
        self.count += self._changed
        self._changed = False


class Window:
    """The open window in every way, in one lake."""

    def __init__(self, folder: Path, rows: Rows) -> None:
        self.folder, self.rows, self.count = folder, rows, 0
        self.database = folder / "questdb"
        self.database.mkdir(parents=True)
        create_table(self.database / "metrics", SCHEMA, timestamp="timestamp")
        self.store = PartitionStore(self.database / "metrics")
        self.lake = windrow.connect(str(folder / "lake"))
        self.splits = self.lake.create_table("splits", sort=SORT, window="1h")
        # points of this hour are accepted for long, so that its window is an open one
        self.merged = self.lake.create_table("merged", sort=SORT, window="1h", late_data_acceptance_window="36500d")
        self.sources = {
            "splits": "splits",
            "merged": "merged",
            "growing": f"questdb('{self.database}', 'metrics')",
        }
        self.costs: dict[str, list[Costs]] = {name: [] for name in self.sources}

    def close(self) -> None:
        self.lake.close()
        self.store.close()

    def add(self) -> None:
        """One more batch, in all ways in turn."""
        rows = self.rows(self.count)
        self.count += 1
        ways: dict[str, Callable[[], object]] = {
            "splits": lambda: self.splits.ingest(rows),
            "merged": lambda: self._ingest_and_merge(rows),
            "growing": lambda: self.store.append(rows),
        }
        names = list(ways)
        turn = self.count % len(names)
        for name in names[turn:] + names[:turn]:
            self.costs[name].append(cost_of(ways[name]))

    def _ingest_and_merge(self, rows: pa.Table) -> None:
        self.merged.ingest(rows)
        if self.count % EVERY == 0:
            self.merged.compact.run()

    def fill(self, count: int) -> None:
        while self.count < count:
            self.add()

    @property
    def files(self) -> dict[str, int]:
        """How many files a reader of each way opens, sidecars included."""
        listed = {name: 2 * sum(1 for _ in getattr(self, name).inspect.splits()) for name in ("splits", "merged")}
        grown = self.database / "metrics"
        return listed | {"growing": sum(path.is_file() for path in grown.rglob("*"))}

    def questions(self) -> dict[str, str]:
        """What is asked, by name."""
        newest = self.rows(self.count - max(1, self.count // 10))["timestamp"][0].as_py()
        return {
            "host": "select count(*) n, max(load) most from {source} where host = 'host-042.example'",
            "newest": f"select count(*) n, max(load) most from {{source}} where timestamp >= '{newest}'",
            "all": 'select region, count(*) n, sum("count") total, max(load) most, min(value) least '
            "from {source} group by region order by region",
        }

    def ask(self, question: str, source: str) -> pa.Table:
        return self.lake.sql(question.format(source=source)).to_arrow()


def cost_of(work: Callable[[], object]) -> Costs:
    """CPU and wall seconds, bytes handed to the system and forced writes of a piece of work."""
    forced = Forced()
    with forced.counting():
        written, cpu, wall = _written(), time.process_time(), time.perf_counter()
        work()
        wall, cpu, written = time.perf_counter() - wall, time.process_time() - cpu, _written() - written
    return {"cpu": cpu, "wall": wall, "bytes": written, "forced": forced.count}


def _written() -> int:
    lines = Path("/proc/self/io").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("wchar"))


def report_batches(window: Window, since: int, report: Report) -> None:
    """What a batch cost on average, and how many files there are."""
    files, mean = window.files, dict[str, Costs]()
    for name, costs in window.costs.items():
        last = costs[since:]
        mean[name] = {key: float(np.mean([cost[key] for cost in last])) for key in last[0]}
        report.add(
            what=f"batches {since + 1} to {window.count}",
            way=name,
            cpu_ms=mean[name]["cpu"] * 1e3,
            wall_ms=mean[name]["wall"] * 1e3,
            kb=mean[name]["bytes"] / 1e3,
            forced=mean[name]["forced"],
            files=files[name],
        )
    for name in ("splits", "merged"):
        for key in ("cpu", "bytes", "forced"):
            ratio = mean[name][key] / max(mean["growing"][key], 1e-9)
            report.ratios[f"batch_{key}_{name}_over_growing_{window.count}"] = ratio


def compare(report: Report, what: str, count: int, measured: dict[str, Measured]) -> None:
    """Add what a question cost in each way."""
    for name, each in measured.items():
        report.add(
            what=f"{what}, {count} batches", way=name, cpu_ms=each.least_cpu * 1e3, wall_ms=each.least_wall * 1e3
        )
    for name in measured.keys() - {"growing"}:
        ratio = measured[name].least_cpu / max(measured["growing"].least_cpu, 1e-6)
        report.ratios[f"{what.replace(', ', '_').replace(' ', '_')}_{name}_over_growing_{count}"] = ratio


def measure_questions(window: Window, chosen: Options, report: Report, *, what: str = "warm") -> None:
    for name, question in window.questions().items():
        ways = {way: partial(window.ask, question, source) for way, source in window.sources.items()}
        answers = [way() for way in ways.values()]
        assert all(answer.equals(answers[0]) for answer in answers), f"{name}: the ways answer differently"
        compare(report, f"{name}, {what}", window.count, interleaved(ways, chosen.pick(1, 7, 15)))


def measure_first(window: Window, chosen: Options, report: Report) -> None:
    """The first question of a connection."""

    def ask(question: str, source: str) -> None:
        with windrow.connect(str(window.folder / "lake")) as lake:
            lake.sql(question.format(source=source)).to_arrow()

    for name, question in window.questions().items():
        ways = {way: partial(ask, question, source) for way, source in window.sources.items()}
        compare(report, f"{name}, first", window.count, interleaved(ways, chosen.pick(1, 3, 5)))


def measure_after_a_batch(window: Window, chosen: Options, report: Report) -> None:
    """The first question that sees a batch."""
    count, total = window.count, {name: Measured() for name in window.sources}
    for _ in range(chosen.pick(1, 3, 5)):
        window.add()
        ways = {way: partial(window.ask, window.questions()["host"], source) for way, source in window.sources.items()}
        for name, each in interleaved(ways, 1).items():
            total[name].cpu += each.cpu
            total[name].wall += each.wall
    compare(report, "host, after a batch", count, total)


def measure_end(window: Window, chosen: Options, report: Report) -> None:
    """The window becomes large sorted splits; questions to these."""
    window.merged.change.run(late_data_acceptance_window=0)
    closed = window.lake.create_table("closed", sort=SORT, window="1h")
    ways: dict[str, Callable[[], object]] = {
        "splits": window.splits.compact.run,
        "merged": window.merged.compact.run,
        "growing": lambda: closed.ingest(window.ask("select * from {source}", window.sources["growing"])),
    }
    whole: dict[str, float] = {}
    for name, way in ways.items():
        cost = cost_of(way)
        cpu, wall, kb = cost["cpu"] * 1e3, cost["wall"] * 1e3, cost["bytes"] / 1e3
        report.add(what="to large splits", way=name, cpu_ms=cpu, wall_ms=wall, kb=kb)
        whole[name] = cost["cpu"] + sum(each["cpu"] for each in window.costs[name])
    for name in ("splits", "merged"):
        report.ratios[f"whole_life_cpu_{name}_over_growing"] = whole[name] / whole["growing"]
    window.sources["growing"] = "closed"
    measure_questions(window, chosen, report, what="closed")


def warm_up(folder: Path, chosen: Options) -> None:
    """Go all ways once, so that nothing is loaded while the clock runs."""
    window, ignored = Window(folder, batches(10)), Report("warm", ())
    window.fill(2)
    measure_questions(window, chosen, ignored)
    measure_end(window, chosen, ignored)
    window.close()


def main(argv: Sequence[str] | None = None) -> None:
    """Measure batches, questions and the end of the window."""
    chosen = options(argv, __doc__)
    counts: tuple[int, ...] = chosen.pick((2, EVERY), (10, 50), (10, 100, 500))
    report = Report("open_window", ("duckdb", "pyarrow"))
    with tempfile.TemporaryDirectory() as folder:
        warm_up(Path(folder) / "warm", chosen)
        window = Window(Path(folder) / "window", batches(counts[-1] + 50))
        for count in counts:
            since = window.count
            window.fill(count)
            report_batches(window, since, report)
            measure_questions(window, chosen, report)
            measure_first(window, chosen, report)
            measure_after_a_batch(window, chosen, report)
        measure_end(window, chosen, report)
        window.close()
    report.show(chosen)


if __name__ == "__main__":
    main()
