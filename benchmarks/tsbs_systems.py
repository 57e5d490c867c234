"""The systems that are asked the questions of TSBS: how each takes the files in, and how it answers.

Each is measured in a process of its own, which runs `python -c` with one of `load`, `server`, `threads`, `cold`.
"""

from __future__ import annotations

import itertools
import json
import shutil
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.measure import serve
from benchmarks.tsbs_data import TAGS, USAGES
from benchmarks.tsbs_questions import TYPES, Dialect, Question

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["DIALECTS", "LOADERS", "OPENERS", "THREADS", "answers", "load", "rate", "server"]

THREADS = 2
_LIMIT_BY = "select * from {source} order by hostname, timestamp desc limit 1 by hostname"
_DISTINCT_ON = "select distinct on (hostname) * from {source} order by hostname, timestamp desc"
DIALECTS = {
    "windrow": Dialect(lastpoint=_DISTINCT_ON),
    "hive": Dialect(hours=True),
    "clickhouse": Dialect("toDateTime64('{}', 6, 'UTC')", "date_trunc('{}', timestamp)", lastpoint=_LIMIT_BY),
}
Ask = Callable[[Question], Any]


def _glob(files: Path) -> str:
    return f"'{files}/*.parquet'"


def _duckdb(path: str = ":memory:", **settings: Any) -> Any:
    import duckdb

    connection = duckdb.connect(path, **settings)
    connection.execute(f"SET GLOBAL TimeZone = 'UTC'; SET threads = {THREADS}")
    return connection


# each takes in the files of a folder, and gives the seconds of CPU of its steps


def _load_windrow(files: Path, place: Path) -> dict[str, float]:
    import windrow

    with windrow.connect(place) as lake:
        table = lake.create_table("cpu", sort="hostname|timestamp/V2", window="1h")
        began = time.process_time()
        table.ingest.run(sorted(map(str, files.glob("*.parquet"))), threads=THREADS)
        ingested, size = time.process_time(), float(sum(split.size_bytes for split in _splits(table)))
        table.compact.run(threads=THREADS)
        compacted = float(sum(split.size_bytes for split in _splits(table)))
        steps = {"ingest": ingested - began, "compact": time.process_time() - ingested}
        return {**steps, "ingested_bytes": size, "bytes": compacted}


def _splits(table: Any) -> list[Any]:
    record = table.record()
    return [split for page in table.context.metastore.splits(record.table_id, record.version) for split in page]


def _load_hive(files: Path, place: Path) -> dict[str, float]:
    connection, began = _duckdb(), time.process_time()
    connection.execute(
        f"COPY (SELECT *, epoch(timestamp)::BIGINT // 3600 AS hour FROM {_glob(files)} "
        f"ORDER BY hour, hostname, timestamp) TO '{place}' (FORMAT parquet, COMPRESSION zstd, PARTITION_BY (hour))"
    )
    return {"ingest": time.process_time() - began, "bytes": _size(place)}


def _load_duckdb_sorted(files: Path, place: Path) -> dict[str, float]:
    place.mkdir()
    connection, began = _duckdb(str(place / "cpu.db")), time.process_time()
    connection.execute(f"CREATE TABLE cpu AS SELECT * FROM {_glob(files)} ORDER BY hostname, timestamp")
    connection.execute("CHECKPOINT")
    spent = time.process_time() - began
    connection.close()
    return {"ingest": spent, "bytes": _size(place)}


def _load_clickhouse(files: Path, place: Path) -> dict[str, float]:
    session = _session(place)
    columns = ["timestamp DateTime64(6, 'UTC')", *(f"{tag} LowCardinality(String)" for tag in TAGS)]
    columns += [f"{usage} Float64" for usage in USAGES]
    session.query("CREATE DATABASE tsbs")
    session.query(f"CREATE TABLE tsbs.cpu ({', '.join(columns)}) ENGINE = MergeTree ORDER BY (hostname, timestamp)")
    began = time.process_time()
    session.query(f"INSERT INTO tsbs.cpu SELECT * FROM file({_glob(files)}, Parquet)")
    ingested = time.process_time()
    session.query("OPTIMIZE TABLE tsbs.cpu FINAL")
    steps = {"ingest": ingested - began, "compact": time.process_time() - ingested}
    size = session.query("SELECT sum(bytes_on_disk) FROM system.parts WHERE active AND database = 'tsbs'")
    return {**steps, "bytes": float(str(size))}


def _load_delta(files: Path, place: Path) -> dict[str, float]:
    import polars as pl
    from deltalake import DeltaTable, write_deltalake

    began = time.process_time()
    write_deltalake(str(place), pl.scan_parquet(files / "*.parquet").collect().to_arrow())
    ingested = time.process_time()
    table = DeltaTable(str(place))
    table.optimize.z_order(["hostname", "timestamp"], max_concurrent_tasks=THREADS)
    steps = {"ingest": ingested - began, "compact": time.process_time() - ingested}
    return {**steps, "bytes": float(sum(Path(uri).stat().st_size for uri in table.file_uris()))}


def _load_duckdb(files: Path, place: Path) -> dict[str, float]:
    shutil.copytree(files, place)
    return {"bytes": _size(place)}


def _size(place: Path) -> float:
    return float(sum(path.stat().st_size for path in place.rglob("*") if path.is_file()))


LOADERS: dict[str, Callable[[Path, Path], dict[str, float]]] = {
    "windrow": _load_windrow,
    "hive": _load_hive,
    "duckdb_sorted": _load_duckdb_sorted,
    "clickhouse": _load_clickhouse,
    "delta": _load_delta,
    "duckdb": _load_duckdb,
}


# each opens what was taken in, and gives a function that makes one answering function for each thread


def _open_windrow(place: Path) -> Callable[[], Ask]:
    import windrow

    lake = windrow.connect(place)
    return lambda: lambda question: lake.sql(question.sql("cpu", DIALECTS["windrow"])).table


def _cursors(connection: Any, source: str, dialect: Dialect) -> Callable[[], Ask]:
    def one() -> Ask:
        cursor = connection.cursor()
        return lambda question: cursor.sql(question.sql(source, dialect)).to_arrow_table()

    return one


def _open_hive(place: Path) -> Callable[[], Ask]:
    source = f"read_parquet('{place}/*/*.parquet', hive_partitioning = true)"
    return _cursors(_duckdb(), source, DIALECTS["hive"])


def _open_duckdb(place: Path) -> Callable[[], Ask]:
    return _cursors(_duckdb(), f"read_parquet({_glob(place)})", Dialect())


def _open_duckdb_sorted(place: Path) -> Callable[[], Ask]:
    return _cursors(_duckdb(str(place / "cpu.db"), read_only=True), "cpu", Dialect())


def _session(place: Path) -> Any:
    from chdb import session as sessions

    make: Any = sessions.Session
    session = make(str(place))
    session.query(f"SET max_threads = {THREADS}")
    return session


def _open_clickhouse(place: Path) -> Callable[[], Ask]:
    import pyarrow as pa

    session = _session(place)

    def ask(question: Question) -> pa.Table:
        found = session.query(question.sql("tsbs.cpu", DIALECTS["clickhouse"]), "ArrowStream")
        return pa.ipc.open_stream(pa.py_buffer(found.bytes())).read_all()

    return lambda: ask


def _open_delta(place: Path) -> Callable[[], Ask]:
    import polars as pl
    from deltalake import DeltaTable

    frame = pl.scan_delta(DeltaTable(str(place)))
    return lambda: lambda question: _polars(frame, question).collect()


def _polars(frame: Any, question: Question) -> Any:
    """A question in the words of Polars."""
    import polars as pl

    kind, stamp = question.kind, pl.col("timestamp")
    if kind == "lastpoint":
        newest = frame.group_by("hostname").agg(stamp.max())
        return frame.join(newest, on=["hostname", "timestamp"], how="semi")
    low, high = (pl.lit(second * 1_000_000).cast(pl.Datetime("us", "UTC")) for second in (question.low, question.high))
    frame = frame.filter((stamp >= low) & (stamp < high))
    if question.hosts:
        frame = frame.filter(pl.col("hostname").is_in(list(question.hosts)))
    if kind.startswith("high-cpu"):
        return frame.filter(pl.col("usage_user") > 90)
    values, keys = pl.col(question.usages), [stamp.dt.truncate("1h").alias("bucket")]
    if kind.startswith("double"):
        return frame.group_by(*keys, "hostname").agg(values.mean()).sort("bucket", "hostname")
    if kind.startswith("cpu-max"):
        return frame.group_by(*keys).agg(values.max()).sort("bucket")
    found = frame.group_by(stamp.dt.truncate("1m").alias("bucket")).agg(values.max())
    return found.sort("bucket", descending=True).limit(5) if kind.startswith("groupby") else found.sort("bucket")


OPENERS: dict[str, Callable[[Path], Callable[[], Ask]]] = {
    "windrow": _open_windrow,
    "hive": _open_hive,
    "duckdb_sorted": _open_duckdb_sorted,
    "clickhouse": _open_clickhouse,
    "delta": _open_delta,
    "duckdb": _open_duckdb,
}


# what a process of its own runs


def load(name: str, files: str, place: str, warm: str | None = None) -> None:
    """Take the files in and print what it cost; `warm` has few files, that are taken in before."""
    if warm is not None:
        LOADERS[name](Path(warm), Path(f"{place}.warm"))
        shutil.rmtree(f"{place}.warm")
    print(json.dumps(LOADERS[name](Path(files), Path(place))))


def answers(name: str, place: str, numbers: int, hosts: int, end: int) -> None:
    """Print the answers to some questions of every type, in one form for all systems."""
    ask = OPENERS[name](Path(place))()
    found = {
        f"{kind} {number}": rows_of(ask(Question.of(kind, number, hosts, end)))
        for kind in TYPES
        for number in range(numbers)
    }
    print(json.dumps(found))


def rows_of(answer: Any) -> list[list[Any]]:
    """Rows as sorted lists of text and numbers; times are seconds."""
    table = answer.to_arrow() if hasattr(answer, "to_arrow") else answer
    # columns have their names in every answer but those of aggregates, which are at the same place
    columns = [name for name in table.column_names if name != "hour"]
    if "hostname" in columns and "region" in columns:
        columns.sort()
    return sorted(map(list, zip(*(_values(table[name]) for name in columns), strict=True)))


def _values(column: pa.ChunkedArray) -> list[Any]:
    import pyarrow as pa

    kind = column.type
    if pa.types.is_timestamp(kind):
        return [each / 1e6 for each in column.cast(pa.timestamp("us", kind.tz)).cast(pa.int64()).to_pylist()]
    if pa.types.is_floating(kind) or pa.types.is_integer(kind):
        return [round(float(each), 6) for each in column.to_pylist()]
    return [each.decode() if isinstance(each, bytes) else each for each in column.to_pylist()]


def server(name: str, place: str, in_a_row: int, hosts: int, end: int, kinds: Sequence[str] = TYPES) -> None:
    """Answer, whenever the parent says so, some questions of every type in a row."""
    questions = (
        Question.of(kind, turn * in_a_row + each, hosts, end)
        for turn in itertools.count(1)
        for kind in kinds
        for each in range(in_a_row)
    )
    serve(OPENERS[name](Path(place))(), in_a_row * len(kinds), partial(next, questions))


def rate(name: str, place: str, threads: int, seconds: float, hosts: int, end: int) -> None:
    """Print how many narrow questions a second so many threads get answered."""
    from benchmarks.query import questions_per_second

    make, numbers = OPENERS[name](Path(place)), itertools.count(10**6)

    def way() -> Callable[[int], Any]:
        ask = make()
        for number in range(20):
            ask(Question.of("single-1-1-1", number, hosts, end))
        return lambda number: ask(Question.of("single-1-1-1", number, hosts, end))

    print(questions_per_second([way() for _ in range(threads)], numbers, seconds))


def one(name: str, place: str, hosts: int, end: int) -> None:
    """Answer one narrow question, as a program that starts for it does."""
    OPENERS[name](Path(place))()(Question.of("single-1-1-1", 1, hosts, end))
