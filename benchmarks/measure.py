"""What all benchmarks share: sizes, interleaved rounds, CPU and memory of the process tree, and the report.

Machines are shared, so only a ratio measured in one run means anything, and below 1.3 in time nothing does.
"""

from __future__ import annotations

import argparse
import gc
import importlib.metadata
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path
from typing import Any

__all__ = [
    "Measured",
    "Report",
    "Size",
    "TreeClock",
    "Worker",
    "apart",
    "interleaved",
    "names",
    "options",
    "peak_rss",
    "reset_peak_rss",
    "reset_tree_peak",
    "serve",
    "tree_peak",
]

_ROUNDED = 0.05
_TICKS = os.sysconf("SC_CLK_TCK")
_NOT_BENCHMARKS = ("__init__", "__main__", "bars", "measure", "pages", "query_tables", "tpch", "tpch_sets")
_PARTS = ("statistics_", "tsbs_")
"""Parts of one benchmark begin so."""


class Size(IntEnum):
    """How much to measure: `TINY` only shows that a benchmark still runs, `QUICK` ends within a minute."""

    TINY = 0
    QUICK = 1
    FULL = 2


@dataclass(frozen=True)
class Options:
    """What a benchmark was asked for."""

    size: Size
    as_json: bool
    paths: Mapping[str, Path] = field(default_factory=dict)
    numbers: Mapping[str, int] = field(default_factory=dict)

    def pick(self, tiny: Any, quick: Any, full: Any) -> Any:
        """Return the value for the size that was asked for."""
        return (tiny, quick, full)[self.size]


def options(
    argv: Sequence[str] | None,
    doc: str | None,
    paths: Mapping[str, str] | None = None,
    numbers: Mapping[str, str] | None = None,
) -> Options:
    """Read the command line of a benchmark; `paths` and `numbers` are options of its own, with what they are for."""
    parser = argparse.ArgumentParser(description=(doc or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="end within a minute")
    parser.add_argument("--tiny", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--json", action="store_true", help="print one JSON object as the last line")
    for name, use in (paths or {}).items():
        parser.add_argument(f"--{name}", type=Path, help=use)
    for name, use in (numbers or {}).items():
        parser.add_argument(f"--{name}", type=int, help=use)
    given = parser.parse_args(argv)
    size = Size.TINY if given.tiny else Size.QUICK if given.quick else Size.FULL
    named = [{name: getattr(given, name) for name in each or {} if getattr(given, name)} for each in (paths, numbers)]
    return Options(size, given.json, *named)


def names() -> list[str]:
    """Return the names of all benchmarks."""
    found = (path.stem for path in Path(__file__).parent.glob("*.py"))
    return sorted(name for name in found if name not in _NOT_BENCHMARKS and not name.startswith(_PARTS))


class TreeClock:
    """The CPU seconds, user and system, that a process, its children and theirs have used since the clock was made.

    A process that ends takes its count with it, unless its parent waited for it and has the sum. What ended unwaited
    for, such as an idle worker that Spark dismissed, is therefore not taken from what others used.
    """

    def __init__(self, root: int | None = None) -> None:
        self._root = root or os.getpid()
        self._used = 0.0
        self._seen = self._read()

    def __call__(self) -> float:
        now, before = self._read(), self._seen
        own = sum(used - before.get(process, (0.0, 0.0))[0] for process, (used, _) in now.items())
        waited = sum(used - before.get(process, (0.0, 0.0))[1] for process, (_, used) in now.items())
        ended = sum(sum(before[process]) for process in before.keys() - now.keys())
        # Counts are rounded to ticks.
        self._used += own + (max(waited - ended, 0.0) if waited + _ROUNDED >= ended else waited)
        self._seen = now
        return self._used

    def _read(self) -> dict[int, tuple[float, float]]:
        """What each process used itself, and the children together that it waited for."""
        stats = {process: [int(each) / _TICKS for each in stat[11:15]] for process, stat in _tree(self._root).items()}
        return {process: (sum(ticks[:2]), sum(ticks[2:])) for process, ticks in stats.items()}


def _tree(root: int) -> dict[int, list[str]]:
    """Return what the system tells of a process and all below it: the fields behind the name."""
    stats: dict[int, list[str]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stats[int(entry.name)] = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue  # it ended while we looked
    parents = {process: int(stat[1]) for process, stat in stats.items()}
    return {process: stat for process, stat in stats.items() if _descends(process, root, parents)}


def _descends(process: int, root: int, parents: Mapping[int, int]) -> bool:
    while process not in (root, 0):
        process = parents.get(process, 0)
    return process == root


def peak_rss() -> int:
    """Return the peak resident bytes of this process since the last reset."""
    return _status("VmHWM")


def reset_peak_rss() -> int:
    """Start a new peak and return what is resident now."""
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5")
    return _status("VmRSS")


def reset_tree_peak() -> None:
    """Start a new peak in this process and all below it."""
    for process in _tree(os.getpid()):
        with suppress(OSError):
            Path(f"/proc/{process}/clear_refs").write_text("5")


def tree_peak(program: str) -> int:
    """Return the highest peak of a process below this one whose program's name starts so."""
    peaks = [0]
    for process in _tree(os.getpid()).keys() - {os.getpid()}:
        with suppress(OSError):
            if Path(f"/proc/{process}/comm").read_text().startswith(program):
                peaks.append(_status("VmHWM", str(process)))
    return max(peaks)


def _status(name: str, process: str = "self") -> int:
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(name)), 0)


@dataclass
class Measured:
    """The rounds of one way of doing a thing."""

    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)

    @property
    def least_wall(self) -> float:
        """The least disturbed round, in seconds."""
        return min(self.wall)

    @property
    def least_cpu(self) -> float:
        """The least CPU of a round, in seconds."""
        return min(self.cpu)

    @property
    def middle_cpu(self) -> float:
        """The CPU of a round in the middle, in seconds."""
        return statistics.median(self.cpu)


def interleaved(ways: Mapping[str, Callable[[], object]], rounds: int, *, tree: bool = False) -> dict[str, Measured]:
    """Run every way once a round, in an order that turns; `tree` counts the CPU of child processes too."""
    used = TreeClock() if tree else time.process_time
    results = {name: Measured() for name in ways}
    order = list(ways)
    for _ in range(rounds):
        for name in order:
            cpu, wall = used(), time.perf_counter()
            ways[name]()
            results[name].wall.append(time.perf_counter() - wall)
            results[name].cpu.append(used() - cpu)
        order = order[1:] + order[:1]
    return results


class Worker:
    """A way that runs in a process of its own: idle threads and memory that others left behind are not in its count."""

    def __init__(self, code: str) -> None:
        """`code` is what the process runs; it ends with `serve`."""
        # engines write to the standard output as they like, so that answers have a pipe of their own
        answers, far_end = os.pipe()
        self._process = subprocess.Popen(
            [sys.executable, "-c", code],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            text=True,
            pass_fds=[far_end],
            env={**os.environ, _ANSWERS: str(far_end)},
        )
        os.close(far_end)
        self._answers = os.fdopen(answers)

    def __call__(self) -> tuple[list[float], list[float]]:
        """Run once, or as often as the process does in a row: CPU and wall seconds."""
        print("run", file=self._process.stdin, flush=True)
        told = [float(each) for each in self._answers.readline().split()]
        if not told:
            raise RuntimeError(f"a process that was measured ended with {self._process.wait()}; see what it wrote")
        return told[::2], told[1::2]

    @property
    def peak_rss(self) -> int:
        """The peak of its resident bytes so far."""
        return _status("VmHWM", str(self._process.pid))

    def close(self) -> None:
        """End the process."""
        self._process.communicate()
        self._answers.close()


_ANSWERS = "BENCHMARK_ANSWERS"


def serve(way: Callable[..., object], times: int = 1, ready: Callable[[], object] | None = None) -> None:
    """Run a way whenever the parent says so, some times in a row, and tell it the CPU and wall seconds of each.

    What `ready` gives is given to the way; to make it is not measured.
    """
    with os.fdopen(int(os.environ[_ANSWERS]), "w") as answers:
        for _ in sys.stdin:
            told = []
            for _ in range(times):
                given = [] if ready is None else [ready()]
                cpu, wall = time.process_time(), time.perf_counter()
                way(*given)
                told += [time.process_time() - cpu, time.perf_counter() - wall]
            print(*told, file=answers, flush=True)


def apart(programs: Mapping[str, str], rounds: int) -> dict[str, Measured]:
    """Measure programs that end with `serve`, each in a process of its own.

    Each runs once a round, in an order that turns, after a round that does not count.
    """
    workers = {name: Worker(program) for name, program in programs.items()}
    try:
        return _in_turn(workers, rounds)
    finally:
        for worker in workers.values():
            worker.close()


def _in_turn(workers: Mapping[str, Worker], rounds: int) -> dict[str, Measured]:
    results = {name: Measured() for name in workers}
    order = list(workers)
    for number in range(rounds + 1):
        for name in order:
            cpu, wall = workers[name]()
            if number:
                results[name].cpu += cpu
                results[name].wall += wall
        order = order[1:] + order[:1]
    return results


@dataclass
class Report:
    """What a benchmark found: rows for people, ratios for machines."""

    name: str
    packages: tuple[str, ...]
    ratios: dict[str, float] = field(default_factory=dict)
    table: list[dict[str, Any]] = field(default_factory=list)

    def add(self, **row: Any) -> None:
        """Add a row of the table."""
        self.table.append(row)

    @property
    def versions(self) -> dict[str, str]:
        """The versions of what was measured."""
        return {name: importlib.metadata.version(name) for name in ("windrow", *self.packages)}

    def show(self, asked: Options) -> None:
        """Print the table and the ratios; with `--json` the last line is one JSON object."""
        # what a cold process costs is measured too
        from rich.console import Console
        from rich.table import Table

        console = Console(stderr=asked.as_json, width=160)
        names = list(dict.fromkeys(key for row in self.table for key in row))
        table = Table(*names, title=self.name)
        for row in self.table:
            table.add_row(*(_cell(row.get(name)) for name in names))
        console.print(table)
        for name, ratio in self.ratios.items():
            console.print(f"{name} = {ratio:,.3f}")
        console.print(", ".join(f"{name} {version}" for name, version in self.versions.items()))
        if asked.as_json:
            found = {"name": self.name, "ratios": self.ratios, "table": self.table, "versions": self.versions}
            print(json.dumps(found))


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:,.3f}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)
