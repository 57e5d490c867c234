"""Queries drawn at random over a table of a lake answer as over native DuckDB tables of the same rows.

The table has everything that is hard: columns that came later or got wider, points without a time, NaN, windows that
points came late to, merged splits beside fresh ones, and a registered file.
"""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.engines.forced import WAYS, Way
from tests.engines.questions import Questions

from windrow.cache import CacheSettings
from windrow.errors import WindrowError
from windrow.model.sources import SourceKind

START = datetime(2026, 1, 1, tzinfo=UTC)
EACH = 25
"""Queries of one test."""
PLAIN = ["select count(*) from t", "select host, weight from hosts", "from '{}'"]
"""Of these each source serves one at least."""

TYPES = {
    "host": pa.string(),
    "n": pa.int64(),
    "v": pa.float64(),
    "ts": pa.timestamp("us", "UTC"),
    "env": pa.string(),
    "exact": pa.decimal128(10, 2),
    "day": pa.date32(),
    "flag": pa.bool_(),
    "single": pa.float32(),
    "label": pa.string(),
}
"""In the order in which the table comes to know them."""
VALUES = {
    "host": lambda draw: draw.choice(["a", "ab", "b", "", "web-1", "web-2", "web-22"]),
    "n": lambda draw: draw.randrange(-2, 9),
    "v": lambda draw: draw.choice([math.nan, math.inf, -0.0, 0.0, 0.25, 1.5, -2.5, 1e6]),
    "env": lambda draw: draw.choice(["x", "y", "b"]),
    "exact": lambda draw: Decimal(draw.randrange(-300, 301)) / 100,
    "day": lambda draw: date(2026, 1, 1) + timedelta(days=draw.randrange(3)),
    "flag": lambda draw: draw.random() < 0.5,
    "single": lambda draw: draw.choice([math.nan, 0.1, 0.5, -1.0, 16777216.0]),
    "label": lambda draw: draw.choice(["x", "zz", "web-1", "y" * 40]),
}
NULLS = 0.1


class World:
    """The rows as tables of a lake and as native tables; (ts, n) tells all points apart."""

    def __init__(self, seed, folder):
        self.draw = random.Random(seed)
        self.moments = itertools.count()
        cache = CacheSettings(folder=folder / "cache")
        self.ways = {name: Way.open(name, folder / "lake", cache) for name in WAYS}
        self.lake = self.ways["as chosen"].lake
        self.file = folder / "hosts.parquet"
        self.native = duckdb.connect()
        self.native.execute("set TimeZone = 'UTC'")
        self.points(folder)
        hosts = self.hosts()
        pq.write_table(hosts, self.file)
        self.small("hosts", hosts, "since")
        self.small("u", pa.table({"n": pa.array([0, 1, 1, None], pa.int64()), "at": pa.array([1, 2, 3, 4])}), "at")

    def points(self, folder):
        table = self.lake.create_table("t", sort="host|env|ts/V2", timestamp="ts", policy={"merge_factor": 2})
        young = ["host", "n", "v", "ts"]
        # Not in the window that is merged: splits of which a column has different types stay apart.
        first = self.batch(150, young, {"n": pa.int32()}, after=1800)
        batches = [first, *(self.batch(120, list(TYPES)[: 7 + step]) for step in range(4))]
        for batch in batches:
            table.ingest(batch)
        table.compact.run(window="2026-01-01 00:20:00")
        batches.append(self.batch(90, list(TYPES)))
        table.ingest(batches[-1])
        batches.append(self.batch(60, [name for name in TYPES if name not in ("v", "day")]))
        pq.write_table(batches[-1].sort_by("n"), folder / "given.parquet", row_group_size=10)
        table.register.run(folder / "given.parquet")
        whole = pa.schema(list(TYPES.items()))
        self.rows = pa.concat_tables([whole.empty_table(), *batches], promote_options="permissive").cast(whole)
        self.native.register("rows", self.rows)
        self.native.execute("create table t as from rows")

    def batch(self, count, names, types=None, *, after=0):
        kinds = {name: TYPES[name] for name in names} | (types or {})
        rows = [self.point(names, after) for _ in range(count)]
        return pa.Table.from_pylist(rows, pa.schema(list(kinds.items())))

    def point(self, names, after):
        point = {
            name: None if self.draw.random() < NULLS else VALUES[name](self.draw) for name in names if name != "ts"
        }
        number = next(self.moments)
        if self.draw.random() < 0.05:
            return point | {"ts": None, "n": 1000 + number}
        # All of it within two hours, and no two at once.
        return point | {"ts": START + timedelta(seconds=self.draw.randrange(after, 7200), microseconds=number)}

    def hosts(self):
        rows = [
            {"host": host, "zone": zone, "weight": weight, "since": START + timedelta(minutes=20 * place)}
            for place, (host, zone, weight) in enumerate(
                [
                    ("a", "b", 1),
                    ("ab", "x", 2),
                    ("b", None, None),
                    ("web-1", "web-22", 7),
                    (None, "y", 3),
                    ("c", "a", 0),
                ]
            )
        ]
        types = [("host", pa.string()), ("zone", pa.string()), ("weight", pa.int64()), ("since", TYPES["ts"])]
        return pa.Table.from_pylist(rows, pa.schema(types))

    def small(self, name, rows, timestamp):
        unit = "s" if pa.types.is_integer(rows.schema.field(timestamp).type) else None
        made = self.lake.create_table(name, sort=f"{timestamp}/V2", timestamp=timestamp, timestamp_unit=unit)
        made.ingest(rows)
        self.native.register(f"{name}_rows", rows)
        self.native.execute(f"create table {name} as from {name}_rows")

    def close(self):
        for way in self.ways.values():
            way.lake.close()
        self.native.close()


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    made = World(7, tmp_path_factory.mktemp("generated"))
    yield made
    made.close()


def plain(value):
    """Zeros of both signs are one value to SQL, and either may be given for it."""
    return value + 0.0 if isinstance(value, float) else value


def rows_of(table):
    columns = [[plain(value) for value in column.to_pylist()] for column in table.columns]
    return sorted(map(repr, zip(*columns, strict=True))), table.schema.types


def test_the_table_has_what_is_hard(world):
    table = world.lake.table("t")
    splits = list(table.inspect.splits())
    assert {"none (registered)"} < {split.window for split in splits}
    assert any("overflow" in split.window for split in splits)
    assert {split.generation for split in splits} > {0}
    assert rows_of(world.lake.sql("from t").to_arrow()) == rows_of(world.rows)
    assert table.plan("host = 'web-22' and ts < timestamp '2026-01-01 00:10:00'").rows < len(world.rows) / 4


@pytest.mark.parametrize("name", WAYS)
def test_25_queries_answer_as_native_tables_do(world, name):
    first = EACH * WAYS.index(name)
    answers_alike(world, name, range(first, first + EACH))


@pytest.mark.long
@pytest.mark.parametrize("name", WAYS)
def test_1000_queries_answer_as_native_tables_do(world, name, capsys):
    way = answers_alike(world, name, range(1000))
    with capsys.disabled():
        print(f"\n  {way}")


def answers_alike(world, name, numbers):
    """Ask generated queries of a lake that is read one way."""
    way, refused = replace(world.ways[name], served=Counter()), 0
    way.forcing.taken.clear()
    queries = [query.format(world.file) for query in PLAIN]
    queries += [Questions(random.Random(number), world.file).query() for number in numbers]
    for number, query in enumerate(queries, numbers[0] - len(PLAIN)):
        try:
            expected = rows_of(world.native.sql(query).to_arrow_table())
        except duckdb.Error:
            refused += 1
            continue
        try:
            found = rows_of(way.ask(query))
        except WindrowError as error:
            raise AssertionError(f"query {number}, {name}: {query}") from error
        assert found == expected, f"query {number}, {name}: {query}"
    assert refused <= len(queries) / 10
    assert way.served["served"] or not isinstance(name, SourceKind)
    return way
