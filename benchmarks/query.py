"""Questions: the selective query of a dashboard beside DuckDB, delta-rs, Polars, DataFusion and pyarrow.

    select count(*), sum(value), max(value) from metrics where metric_name = x and timestamp in two minutes

Four million rows lie in 1,000 and in 10,000 files. All ways are warm, with a kept connection or table, each in a
process of its own, in turn, five questions in a row with other values each; planning is included. `duckdb_hive` is a
user who names the window himself. `compacted` is Windrow after compaction, against peers on the files as they were. A
warm lake has kept columns of the files decoded that were asked about before; `undecoded` and `compacted undecoded` are
lakes that may not. The first question of a fresh connection stands apart (`first_question_ms`, over 1,000 files).
`small_questions_8_threads_over_1` is how many more questions a second eight threads get answered than one, on one lake;
beside it stand cursors of one DuckDB connection on the folders, one for each thread.
"""

from __future__ import annotations

import itertools
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import windrow
from benchmarks.measure import Measured, Options, Report, Size, apart, interleaved, options, serve
from benchmarks.query_tables import METRICS, START, WINDOW, Slices, delta_table, windrow_table, write_files
from windrow.cache import CacheSettings
from windrow.lake import Lake
from windrow.storage import open_store
from windrow.storage.handles import Handle, StoredFile
from windrow.testing.servers import RangeServer

SPAN = 120
LATENCY = 0.02
FEWEST = 1000
"""Files of the smaller table."""
THREADS = 8
_NO_DATA = CacheSettings(memory_bytes=0, disk_bytes=0)
"""Room for what is parsed, and next to none for bytes."""
Way = Callable[[int], Any]


class Question:
    """The query with values of its own."""

    def __init__(self, number: int, seconds: int = 7200) -> None:
        random = Random(number)
        self.low = START + random.randrange(0, seconds - SPAN)
        self.metric = f"metric_{random.randrange(METRICS):04d}"

    @property
    def windows(self) -> str:
        """The windows that it touches, as a user would name them."""
        first, last = (at // WINDOW * WINDOW for at in (self.low, self.low + SPAN - 1))
        return f"window_start in ({first}, {last})"

    def where(self, kind: str = "timestamptz") -> str:
        low, high = (f"{kind} '{_moment(at):%Y-%m-%d %H:%M:%S}+00'" for at in (self.low, self.low + SPAN))
        return f"metric_name = '{self.metric}' and timestamp >= {low} and timestamp < {high}"

    def sql(self, source: str, more: str = "", kind: str = "timestamptz") -> str:
        asked = "select count(*) as n, sum(value) as total, max(value) as top"
        return f"{asked} from {source} where {self.where(kind)}{more}"


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def duckdb_way(paths: list[Path], **settings: object) -> Way:
    """DuckDB on the list of files."""
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'; SET threads = 2")
    for name, value in settings.items():
        connection.execute(f"SET {name} = {value}")
    source = f"read_parquet([{', '.join(repr(str(path)) for path in paths)}], hive_partitioning = false)"
    return lambda number: connection.execute(Question(number).sql(source)).fetchall()[0]


def hive_way(folder: Path) -> Way:
    """DuckDB on the folders, of which the query names those that it needs."""
    return hive_cursors(folder)()


def hive_cursors(folder: Path) -> Callable[[], Way]:
    """Cursors of one connection to DuckDB, on the folders."""
    connection = duckdb.connect()
    connection.execute("SET GLOBAL TimeZone = 'UTC'; SET threads = 2")
    return lambda: cursor_way(connection.cursor(), folder)


def cursor_way(connection: duckdb.DuckDBPyConnection, folder: Path) -> Way:
    source = f"read_parquet('{folder}/*/*.parquet', hive_partitioning = true)"

    def ask(number: int) -> Any:
        asked = Question(number)
        return connection.execute(asked.sql(source, f" and {asked.windows}")).fetchall()[0]

    return ask


def delta_way(folder: Path) -> Way:
    """delta-rs' own engine on a kept table, which skips files by the statistics in its log."""
    from deltalake import DeltaTable, QueryBuilder

    builder = QueryBuilder().register("metrics", DeltaTable(str(folder)))
    return lambda number: _row(pa.table(builder.execute(Question(number).sql("metrics", kind="timestamp")).read_all()))


def polars_way(paths: list[Path]) -> Way:
    import polars as pl

    def ask(number: int) -> Any:
        asked = Question(number)
        times = pl.col("timestamp").is_between(_moment(asked.low), _moment(asked.low + SPAN), closed="left")
        frame = pl.scan_parquet(paths, hive_partitioning=False).filter((pl.col("metric_name") == asked.metric) & times)
        value = pl.col("value")
        return frame.select(pl.len(), value.sum().alias("total"), value.max().alias("top")).collect().row(0)

    return ask


def datafusion_way(folder: Path) -> Way:
    from datafusion import SessionConfig, SessionContext

    context = SessionContext(SessionConfig().with_target_partitions(2))
    context.sql("SET datafusion.runtime.metadata_cache_limit = '2G'")
    context.register_parquet("metrics", str(folder), table_partition_cols=[("window_start", pa.int64())])
    return lambda number: _row(context.sql(Question(number).sql("metrics", kind="timestamp")).to_arrow_table())


def windrow_way(lake: Lake) -> Way:
    return lambda number: _row(lake.sql(Question(number).sql("metrics")).table)


def _row(table: pa.Table) -> tuple[Any, ...]:
    return tuple(table.to_pylist()[0].values())


def checked(ways: Mapping[str, Way]) -> None:
    """All ways give the same answers."""
    for number in range(3):
        answers = {name: ask(number) for name, ask in ways.items()}
        wanted = next(iter(answers.values()))
        for name, (count, total, top) in answers.items():
            same = count == wanted[0] and top == wanted[2] and abs((total or 0) - (wanted[1] or 0)) < 1e-6
            if not same:
                raise RuntimeError(f"{name} answers {answers[name]}, others {wanted}")


def measured(ways: Mapping[str, Way], rounds: int) -> dict[str, Measured]:
    turns = {name: iter(range(1000, 10**6)) for name in ways}
    asking = {name: lambda name=name, ask=ask: ask(next(turns[name])) for name, ask in ways.items()}
    interleaved(asking, 2)
    return interleaved(asking, rounds)


def first_questions(ways: Mapping[str, Callable[[], Way]], report: Report, files: int) -> None:
    """What the first question costs whoever has just connected; imports are warm."""
    for name, connect in ways.items():
        began = time.perf_counter()
        connect()(7)
        wall = (time.perf_counter() - began) * 1000
        report.add(what=f"{files:,} files, first question", way=name, wall_ms=wall)
        if name == "windrow" and files == FEWEST:
            report.ratios["first_question_ms"] = wall


def by_threads(ways: Mapping[str, Callable[[], Way]], asked: Options, report: Report) -> None:
    """How many questions a second one thread gets answered, and eight; every thread has a way of its own."""
    rounds, seconds, numbers = asked.pick(1, 3, 5), asked.pick(0.02, 0.4, 1.0), itertools.count(10**6)
    rates: dict[tuple[str, int], float] = {}
    for _ in range(rounds):
        for name, way in ways.items():
            for threads in (1, THREADS):
                rate = questions_per_second([way() for _ in range(threads)], numbers, seconds)
                rates[name, threads] = max(rate, rates.get((name, threads), 0.0))
    for name in ways:
        for threads in (1, THREADS):
            rate = rates[name, threads]
            over = rate / rates[name, 1]
            report.add(what=f"{threads} threads", way=name, questions_a_second=rate, over_one_thread=over)
        suffix = "" if name == "windrow" else f"_{name}"
        report.ratios[f"small_questions_{THREADS}_threads_over_1{suffix}"] = over


def questions_per_second(ways: Sequence[Way], numbers: Iterator[int], seconds: float) -> float:
    """How many questions threads get answered that begin together, each by its own way."""
    barrier = threading.Barrier(len(ways))

    def ask(way: Way) -> tuple[int, float]:
        way(next(numbers))
        barrier.wait()
        began, count = time.perf_counter(), 0
        while time.perf_counter() - began < seconds or not count:
            way(next(numbers))
            count += 1
        return count, time.perf_counter() - began

    with ThreadPoolExecutor(len(ways)) as pool:
        return sum(count / spent for count, spent in pool.map(ask, ways))


def made(folder: Path, make: Callable[[Path], object]) -> Path:
    """A folder that is made once: one that is there is whole."""
    if not folder.exists():
        half = folder.with_name(f"{folder.name}.half")
        shutil.rmtree(half, ignore_errors=True)
        make(half)
        half.rename(folder)
    return folder


def make_plain(slices: Slices, folder: Path) -> None:
    """The plain files, as a Delta table too."""
    write_files(slices, folder)
    delta_table(folder)


def make_merged(lake: Path, folder: Path) -> None:
    """The lake after compaction."""
    shutil.copytree(lake, folder)
    with windrow.connect(folder, cache=None) as compacted:
        compacted.table("metrics").compact.run(threads=2)


IN_A_ROW = 5
"""A process that slept while others ran has lost the processor's caches: it is asked some questions in a row."""
OURS = ("windrow", "compacted", "undecoded", "compacted undecoded")


def makers(folder: Path, files: int, cache: Path, stack: ExitStack) -> dict[str, Callable[[], Way]]:
    """Every way by its name, to be connected; lakes are closed with the stack."""
    plain, lakes, merged = (folder / f"{name}-{files}" for name in ("plain", "lake", "merged"))
    paths = sorted(plain.rglob("*.parquet"), key=lambda path: path.name)
    kept = CacheSettings(folder=cache)
    settings = {"": kept, " undecoded": replace(kept, decoded_bytes=0)}

    def ours(place: Path, more: str = "") -> Callable[[], Way]:
        return lambda: windrow_way(stack.enter_context(windrow.connect(place, cache=settings[more])))

    return {
        "windrow": ours(lakes),
        "compacted": ours(merged),
        "duckdb": lambda: duckdb_way(paths),
        "duckdb_cached": lambda: duckdb_way(paths, parquet_metadata_cache="true"),
        "duckdb_hive": lambda: hive_way(plain),
        "delta": lambda: delta_way(plain),
        "polars": lambda: polars_way(paths),
        "datafusion": lambda: datafusion_way(plain),
        "undecoded": ours(lakes, " undecoded"),
        "compacted undecoded": ours(merged, " undecoded"),
    }


def server(name: str, folder: str, files: int, cache: str, warm: int) -> None:
    """Answer questions in a process of its own; a warm table is one of which all windows were asked."""
    with ExitStack() as stack:
        ask = makers(Path(folder), files, Path(cache), stack)[name]()
        for number in range(warm if name in OURS else 2):
            ask(number)
        turns = iter(range(1000, 10**6))
        serve(lambda: ask(next(turns)), IN_A_ROW)


def selective(folder: Path, asked: Options, report: Report, slices: Slices, files: int) -> None:
    """One table, every way; `files` is the number that the names of ratios carry."""
    made(folder / f"plain-{files}", lambda half: make_plain(slices, half))
    lakes = made(folder / f"lake-{files}", lambda half: windrow_table(slices, half).close())
    made(folder / f"merged-{files}", lambda half: make_merged(lakes, half))
    warm = asked.pick(3, 120, 200)
    with ExitStack() as stack:
        cache = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        ways = makers(folder, files, cache, stack)
        first_questions({name: ways[name] for name in ways if "undecoded" not in name}, report, files)
        checked({name: make() for name, make in ways.items()})
        _report(report, in_processes(list(ways), folder, files, cache, warm, asked.pick(2, 7, 15)), files)
        lake = stack.enter_context(windrow.connect(lakes, cache=CacheSettings(folder=cache)))
        for number in range(warm):
            lake.sql(Question(number).sql("metrics"))
        planning(report, lake, files, asked.pick(3, 60, 100))
        if files == FEWEST:
            cursors = hive_cursors(folder / f"plain-{files}")
            by_threads({"windrow": lambda: windrow_way(lake), "duckdb_cursors": cursors}, asked, report)


def in_processes(
    names: Sequence[str], folder: Path, files: int, cache: Path, warm: int, rounds: int
) -> dict[str, Measured]:
    """Ask every way in turn, each in a process of its own."""
    code = "from benchmarks.query import server; server({!r}, {!r}, {}, {!r}, {})"
    return apart({name: code.format(name, str(folder), files, str(cache / name), warm) for name in names}, rounds)


def _report(report: Report, found: Mapping[str, Measured], files: int) -> None:
    ours, merged = found["windrow"].least_wall, found["compacted"].least_wall
    for name, each in found.items():
        report.add(
            what=f"{files:,} files",
            way=name,
            wall_ms=each.least_wall * 1000,
            median_ms=sorted(each.wall)[len(each.wall) // 2] * 1000,
            cpu_ms=each.least_cpu * 1000,
            over_windrow=each.least_wall / ours,
        )
    for peer in ("duckdb", "duckdb_hive", "delta", "polars", "datafusion"):
        report.ratios[f"selective_{peer}_over_windrow_{files}_files"] = found[peer].least_wall / ours
    for peer in ("duckdb", "duckdb_hive", "delta"):
        apart = found[peer].least_wall / found["undecoded"].least_wall
        report.ratios[f"selective_{peer}_over_windrow_undecoded_{files}_files"] = apart
    for peer in ("duckdb", "delta"):
        apart = found[peer].least_wall / found["compacted undecoded"].least_wall
        report.ratios[f"compacted_{peer}_over_windrow_undecoded_{files}_files"] = apart
    for peer in ("duckdb", "delta", "polars", "datafusion"):
        report.ratios[f"compacted_{peer}_over_windrow_{files}_files"] = found[peer].least_wall / merged


def planning(report: Report, lake: Lake, files: int, rounds: int) -> None:
    """From the text of a query to the virtual file, without the reads and without DuckDB."""
    seconds, cpu = [], []
    for number in range(2000, 2000 + rounds):
        query = Question(number).sql("metrics")
        began, used = time.perf_counter(), time.process_time()
        lake.plan(query)
        seconds.append(time.perf_counter() - began)
        cpu.append(time.process_time() - used)
    middle = sorted(seconds)[rounds // 2] * 1000
    report.add(what=f"{files:,} files, planning", way="windrow", wall_ms=min(seconds) * 1000, median_ms=middle)
    report.ratios[f"planning_ms_{files}_files"] = min(cpu) * 1000


def remote(folder: Path, asked: Options, report: Report, files: int) -> None:
    """The files of one window behind HTTP, 20 ms away: Windrow, and pyarrow on a data set that it opens for the query.

    Every question is about two minutes that nobody asked for before, and Windrow keeps no data: only what it knows of
    files is warm. `pyarrow_kept` has kept all footers too.
    """
    lakes = folder / f"lake-{files}"
    with RangeServer() as server, ExitStack() as stack:
        server.behave = lambda _: LATENCY
        for path in lakes.rglob("*"):
            if path.is_file() and f"window_start={START}" in str(path):
                server.objects[f"/{path.relative_to(lakes)}"] = path.read_bytes()
        options_ = {"allow_http": "true"}
        metastore = f"sqlite:///{lakes}/windrow.db"
        lake = stack.enter_context(
            windrow.connect(server.url, metastore=metastore, create=False, store_options=options_, cache=_NO_DATA)
        )
        store = open_store(server.url, options=options_)
        names = [name[1:] for name in server.objects if name.endswith(".parquet")]
        pool = stack.enter_context(ThreadPoolExecutor(8))
        kept: dict[str, pq.FileMetaData] = {}

        def ours(number: int) -> Any:
            return _row(lake.sql(Question(number, WINDOW).sql("metrics")).table)

        def theirs(number: int, known: dict[str, pq.FileMetaData]) -> Any:
            wanted = Question(number, WINDOW)
            tables = list(pool.map(lambda name: _matching(store, name, wanted, known), names))
            value = pa.concat_tables(tables)["value"]
            return len(value), pc.sum(value).as_py(), pc.max(value).as_py()

        ways: dict[str, Way] = {
            "windrow": ours,
            "pyarrow": lambda number: theirs(number, {}),
            "pyarrow_kept": lambda number: theirs(number, kept),
        }
        checked(ways)
        for number in range(asked.pick(2, 15, 30)):
            ours(number)
        found = measured(ways, asked.pick(2, 5, 9))
        for name, each in found.items():
            report.add(what=f"{len(names)} files over HTTP, 20 ms", way=name, wall_ms=each.least_wall * 1000)
        ratio = found["pyarrow"].least_wall / found["windrow"].least_wall
        report.ratios["remote_selective_pyarrow_over_windrow"] = ratio
        kept_ratio = found["pyarrow_kept"].least_wall / found["windrow"].least_wall
        report.ratios["remote_selective_pyarrow_kept_over_windrow"] = kept_ratio


def _matching(store: Any, name: str, asked: Question, known: dict[str, pq.FileMetaData]) -> pa.Table:
    """The rows of a file that match; row groups without any are not read."""
    handle = Handle(StoredFile(store, name))
    file = pq.ParquetFile(handle, metadata=known.get(name), pre_buffer=True)
    known[name] = file.metadata
    low, high = (_moment(at) for at in (asked.low, asked.low + SPAN))
    groups = [n for n in range(file.metadata.num_row_groups) if _overlaps(file.metadata.row_group(n), low, high)]
    table = file.read_row_groups(groups, columns=["metric_name", "timestamp", "value"])
    times = table["timestamp"]
    inside = pc.and_(pc.greater_equal(times, pa.scalar(low, times.type)), pc.less(times, pa.scalar(high, times.type)))
    return table.filter(pc.and_(pc.equal(table["metric_name"], asked.metric), inside))


def _overlaps(group: Any, low: datetime, high: datetime) -> bool:
    columns = [group.column(n) for n in range(group.num_columns)]
    bounds = next(each.statistics for each in columns if each.path_in_schema == "timestamp")
    return bool(bounds.min < high and bounds.max >= low)


def main(argv: list[str] | None = None) -> None:
    """Run the benchmark."""
    asked = options(argv, __doc__, {"tables": "a folder for the tables, which are kept and used again"})
    report = Report("query", ("duckdb", "deltalake", "polars", "datafusion", "pyarrow"))
    sizes = asked.pick(
        {1000: Slices(24, 200), 10_000: Slices(48, 100)},
        {1000: Slices(1000, 1000)},
        {1000: Slices(1000, 4000), 10_000: Slices(10_000, 400)},
    )
    with tempfile.TemporaryDirectory() as passing:
        folder = asked.paths.get("tables", Path(passing))
        folder.mkdir(parents=True, exist_ok=True)
        for files, slices in sizes.items():
            selective(folder, asked, report, slices, files)
        remote(folder, asked, report, 1000)
    if asked.size is Size.QUICK:
        report.add(what="quick: a quarter of the rows, and no table of 10,000 files")
    report.show(asked)


if __name__ == "__main__":
    main()
