"""Starts: what a fresh process costs until it has done its first thing, in CPU and wall seconds, beside DuckDB.

The question is that of the query benchmark, over its 1,000 files. Every run is a process of its own, which ends too:
imports, connections and threads are in the figure. Bytecode is compiled before, as pip does it. `engine` is the same
question, written such that it takes the engine of a lake. `first_ingest_over_tenth` and `first_compaction_over_tenth`
are the first of ten runs, with a home folder that is empty, over the tenth. chdb, ClickHouse in a process, answers from
a MergeTree, where it is installed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path

from benchmarks.measure import Measured, Options, Report, options
from benchmarks.query import Question, made
from benchmarks.query_tables import Slices, windrow_table, write_files

Command = Callable[[int], list[str]]

_WINDROW = """
import windrow
with windrow.connect({lake!r}) as lake:
    lake.sql({query!r}).fetchall()
"""
_DUCKDB = """
from pathlib import Path
import duckdb
paths = sorted(Path({plain!r}).rglob("*.parquet"), key=lambda path: path.name)
connection = duckdb.connect()
connection.execute("SET TimeZone = 'UTC'; SET threads = 2")
source = f"read_parquet([{{', '.join(repr(str(path)) for path in paths)}}], hive_partitioning = false)"
connection.execute({query!r}.replace("metrics", source, 1)).fetchall()
"""
_CHDB = """
from chdb import session
session.Session({folder!r}).query({query!r}, "CSV")
"""
_INGEST = """
import sys
import pyarrow.parquet as pq
import windrow
with windrow.connect(sys.argv[1]) as lake:
    lake.create_table("metrics", sort="metric_name|service|env|host|timestamp/V2", window="15m", mirror=False)
    lake.table("metrics").ingest(pq.read_table(sys.argv[2]))
"""
_COMPACT = """
import sys
import windrow
with windrow.connect(sys.argv[1]) as lake:
    lake.table("metrics").compact.run(threads=2)
"""


def fresh(command: Sequence[str], environment: dict[str, str]) -> tuple[float, float]:
    """Run a process and those that it starts: CPU and wall seconds."""
    began = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, env=environment)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"a process that was measured ended with {process.returncode}; see what it wrote")
    return used.ru_utime + used.ru_stime, time.perf_counter() - began


def in_turn(ways: dict[str, Command], rounds: int, environment: dict[str, str]) -> dict[str, Measured]:
    """Run every way once a round, in an order that turns, after a round that does not count."""
    results = {name: Measured() for name in ways}
    order = list(ways)
    for number in range(rounds + 1):
        for name in order:
            cpu, wall = fresh(ways[name](number), environment)
            if number:
                results[name].cpu.append(cpu)
                results[name].wall.append(wall)
        order = order[1:] + order[:1]
    return results


def answers(folder: Path, slices: Slices) -> dict[str, Command]:
    """The ways to a first answer, and to less than that."""
    plain = made(folder / f"plain-{slices.files}", lambda half: write_files(slices, half))
    lake = made(folder / f"lake-{slices.files}", lambda half: windrow_table(slices, half).close())

    def code(text: str) -> Command:
        places = {"lake": str(lake), "plain": str(plain), "folder": str(folder / "chdb")}
        return lambda number: [sys.executable, "-c", text.format(query=Question(number).sql("metrics"), **places)]

    engine = _WINDROW.replace("{query!r}", "{query!r}.replace(' from metrics', ' from (select 1) one, metrics')")
    command = [sys.executable, "-m", "windrow"]
    ways = {
        "duckdb": code(_DUCKDB),
        "windrow": code(_WINDROW),
        "windrow sql": lambda number: [*command, "--lake", str(lake), "sql", Question(number).sql("metrics")],
        "engine": code(engine),
        "import windrow": code("import windrow"),
        "windrow --help": lambda _: [*command, "--help"],
        "python": code(""),
    }
    if find_spec("chdb") is not None:
        _merge_tree(plain, folder / "chdb")
        ways["chdb"] = lambda number: [
            sys.executable,
            "-c",
            _CHDB.format(folder=str(folder / "chdb"), query=_click(number)),
        ]
    return ways


def _click(number: int) -> str:
    """The question in the words of ClickHouse."""
    asked = Question(number)
    low, high = (f"toDateTime64({at}, 6, 'UTC')" for at in (asked.low, asked.low + 120))
    where = f"metric_name = '{asked.metric}' and timestamp >= {low} and timestamp < {high}"
    return f"select count(*), sum(value), max(value) from bench.metrics where {where}"


def _merge_tree(plain: Path, folder: Path) -> None:
    """The rows as a MergeTree of the same order, made in a process of its own."""
    make = f"""
from chdb import session
opened = session.Session({str(folder)!r})
opened.query("create database if not exists bench engine = Atomic")
opened.query('''create table if not exists bench.metrics engine = MergeTree order by (metric_name, service, env, host,
timestamp) settings allow_nullable_key = 1 as select * from file({str(plain / "*/*.parquet")!r}, Parquet)''')
"""
    subprocess.run([sys.executable, "-c", make], check=True, stdout=subprocess.DEVNULL)


def firsts(folder: Path, rows: int, environment: dict[str, str]) -> dict[str, list[float]]:
    """The CPU seconds of ten ingests, and of ten compactions, each in a process of its own."""
    import pyarrow.parquet as pq

    source, lake = folder / "points.parquet", folder / "first"
    pq.write_table(Slices(1, rows).table(0), source)
    used: dict[str, list[float]] = {"ingest": [], "compaction": []}
    for number in range(11):
        # One run in another home compiles the bytecode.
        home = folder / f"home-{min(number, 1)}"
        environment = {**environment, "HOME": str(home), "XDG_CACHE_HOME": str(home / "cache")}
        shutil.rmtree(lake, ignore_errors=True)
        used["ingest"].append(fresh([sys.executable, "-c", _INGEST, str(lake), str(source)], environment)[0])
        used["compaction"].append(fresh([sys.executable, "-c", _COMPACT, str(lake)], environment)[0])
    return {name: each[1:] for name, each in used.items()}


def run(folder: Path, asked: Options, report: Report) -> None:
    """Measure all of it."""
    slices = asked.pick(Slices(24, 200), Slices(1000, 1000), Slices(1000, 4000))
    # Other processes may be told to leave no bytecode behind.
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(folder / "bytecode")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    found = in_turn(answers(folder, slices), asked.pick(1, 7, 15), environment)
    for name, each in found.items():
        over = each.least_cpu / found["duckdb"].least_cpu
        report.add(what=name, cpu=each.least_cpu, wall=each.least_wall, cpu_over_duckdb=over)
    for name in ("windrow", "windrow sql", "engine", *(["chdb"] if "chdb" in found else [])):
        spelled = name.replace(" ", "_")
        report.ratios[f"first_answer_{spelled}_cpu_over_duckdb"] = found[name].least_cpu / found["duckdb"].least_cpu
        report.ratios[f"first_answer_{spelled}_wall_over_duckdb"] = found[name].least_wall / found["duckdb"].least_wall
    for name in ("windrow sql", "import windrow", "windrow --help"):
        report.ratios[f"{name.replace(' --', '_').replace(' ', '_')}_cpu_seconds"] = found[name].least_cpu
    for name, used in firsts(folder, asked.pick(2_000, 200_000, 1_000_000), environment).items():
        report.add(what=f"{name}, the first of ten", cpu=used[0])
        report.add(what=f"{name}, the tenth", cpu=used[-1])
        report.ratios[f"first_{name}_over_tenth"] = used[0] / used[-1]


def main(argv: list[str] | None = None) -> None:
    """Run the benchmark."""
    asked = options(argv, __doc__, {"tables": "a folder for the tables, which are kept and used again"})
    report = Report("start", ("duckdb", "pyarrow", *(["chdb"] if find_spec("chdb") else [])))
    with tempfile.TemporaryDirectory() as passing:
        folder = Path(passing)
        if "tables" in asked.paths:
            for each in asked.paths["tables"].iterdir():
                (folder / each.name).symlink_to(each.resolve())
        run(folder, asked, report)
    report.show(asked)


if __name__ == "__main__":
    main()
