"""Whatever is on or off (sidecars, caches, the virtual file), a query answers as over a native DuckDB table."""

from __future__ import annotations

import itertools
import math
import random
import shutil
from collections import Counter
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.reading.samples import parquet, put_file

from windrow.cache import CacheSettings, MemoryCache, default_cache
from windrow.engines.duckdb.engine import DuckDBEngine, Relation
from windrow.engines.duckdb.foreign_relations import ForeignRelations
from windrow.model.sources import SourceKind
from windrow.planning.data_files import weight_of
from windrow.planning.foreign_files import ForeignFiles
from windrow.planning.scan_context import ScanContext
from windrow.planning.scan_plan import plan_files
from windrow.reading.cells import Cells
from windrow.reading.forcing import Forcing
from windrow.reading.read_context import ReadContext
from windrow.storage import CountingStore, LocalStore, open_store

CORPUS = sorted((Path(__file__).parents[1] / "data" / "parquet-testing").glob("*.parquet"))
START = datetime(2026, 1, 1, tzinfo=UTC)


def maybe(draw, value):
    return None if draw.random() < 0.15 else value


COLUMNS = {
    "text": (pa.string(), lambda draw: draw.choice(["", "a", "ab", "abc", "b", "cpu.load", "cpu.idle", "z" * 20])),
    "small": (pa.int32(), lambda draw: draw.randrange(-5, 50)),
    "large": (pa.int64(), lambda draw: draw.choice([2**53 + 1, -(2**60), 0, 1, 7])),
    "unsigned": (pa.uint64(), lambda draw: draw.choice([0, 1, 2**63, 2**64 - 1])),
    "double": (pa.float64(), lambda draw: draw.choice([math.nan, math.inf, -0.0, 0.0, 0.1, 1.5, -2.5, 1e300])),
    "single": (pa.float32(), lambda draw: draw.choice([math.nan, 0.1, 0.5, -1.0, 16777216.0])),
    "exact": (pa.decimal128(10, 2), lambda draw: Decimal(draw.randrange(-300, 300)) / 100),
    "day": (pa.date32(), lambda draw: date(2026, 1, 1) + timedelta(days=draw.randrange(20))),
    "ts": (pa.timestamp("us", "UTC"), lambda draw: START + timedelta(seconds=draw.randrange(5000))),
    "flag": (pa.bool_(), lambda draw: draw.random() < 0.5),
    "tags": (pa.map_(pa.string(), pa.string()), lambda draw: [("k", str(draw.randrange(3)))]),
    "list": (pa.list_(pa.int64()), lambda draw: [draw.randrange(4)] * draw.randrange(3)),
}
LITERALS = {
    "text": ["'ab'", "'cpu.load'", "'nothing'", "''"],
    "small": ["3", "-5", "12.5", "49", "1e1"],
    "large": ["9007199254740993", "9007199254740992", "0", "7.0", "9007199254740992e0"],
    "unsigned": ["0", "9223372036854775808", "-1"],
    "double": ["0", "0.1", "1.5", "1e300", "'nan'::double", "-2.5", "'inf'::double"],
    "single": ["0.1", "0.5", "1e-1", "16777217"],
    "exact": ["1.25", "0", "-2.999", "1e0"],
    "day": ["date '2026-01-05'", "'2026-01-05'", "timestamp '2026-01-05 00:00:00'"],
    "ts": ["timestamp '2026-01-01 00:30:00'", "'2026-01-01 00:10:00'", "'2026-01-01'", "date '2026-01-01'"],
    "flag": ["true", "false"],
}
SIMPLE = list(LITERALS)


def table_of(draw, names, rows):
    made = {name: [maybe(draw, COLUMNS[name][1](draw)) for _ in range(rows)] for name in names}
    kept = pa.table({name: pa.array(made[name], COLUMNS[name][0]) for name in names})
    # Whatever rows are sorted by, its pages hold few values each.
    first = draw.choice([name for name in names if name in SIMPLE])
    return kept.sort_by([(first, "ascending"), ("text", "ascending"), ("ts", "ascending")])


def condition(draw, depth=0):
    if depth < 2 and draw.random() < 0.5:
        parts = [condition(draw, depth + 1) for _ in range(draw.randrange(2, 4))]
        joined = draw.choice([" and ", " or "]).join(f"({part})" for part in parts)
        return f"not ({joined})" if draw.random() < 0.2 else joined
    name = draw.choice(SIMPLE)
    match draw.randrange(6):
        case 0:
            return f"{name} is {draw.choice(['', 'not '])}null"
        case 1:
            return f"{name} in ({', '.join(draw.sample(LITERALS[name], 2))})"
        case 2 if name != "flag":
            low, high = draw.choices(LITERALS[name], k=2)
            return f"{name} between {low} and {high}"
        case 3 if name == "text":
            return "text like 'cpu%'"
    return f"{name} {draw.choice(['=', '!=', '<', '<=', '>', '>='])} {draw.choice(LITERALS[name])}"


class World:
    """Some files, with a native table of the same rows, and every way to read them."""

    def __init__(self, seed, folder):
        self.draw = random.Random(seed)
        self.folder = folder
        self.tables = [self.table(number) for number in range(self.draw.randrange(1, 5))]
        self.schema = pa.schema([(name, kind) for name, (kind, _) in COLUMNS.items()])
        self.native = duckdb.connect()
        self.native.execute("set TimeZone = 'UTC'")
        empty = self.schema.empty_table()
        whole = pa.concat_tables([empty, *self.tables], promote_options="permissive").cast(self.schema)
        self.native.register("arrow", whole)
        self.native.execute("create table t as select * from arrow")
        self.forced = {kind: Forcing(kind) for kind in (SourceKind.DECODED, SourceKind.PATHS, SourceKind.VIRTUAL)}
        chosen = itertools.product([True, False], [True, False], ["local", "far"])
        self.ways = {way: self.way(*way) for way in chosen} | {kind: self.way(True, True, kind) for kind in self.forced}

    def table(self, number):
        """Files lack columns, and older ones have narrower types."""
        names = [name for name in COLUMNS if name in ("text", "ts") or self.draw.random() < 0.8]
        table = table_of(self.draw, names, self.draw.choice([0, 3, 40, 400]))
        if number == 0 and "large" in names and self.draw.random() < 0.5:
            place = table.schema.get_field_index("large")
            small = pa.array([n % 7 for n in range(len(table))], pa.int32())
            table = table.set_column(place, "large", small)
        return table

    def way(self, sidecars, caches, place):
        folder = self.folder / f"{sidecars}-{caches}-{place}"
        store = CountingStore(open_store("memory://")) if place == "far" else LocalStore(folder)
        # Files that may change are not decoded.
        may_change = itertools.cycle([place != SourceKind.DECODED, False])
        options = {"row_group_size": 150, "max_rows_per_page": 20, "write_page_index": self.draw.random() < 0.7}
        if self.draw.random() < 0.3:
            # Columns with many values have their pages cut elsewhere.
            options |= {"dictionary_pagesize_limit": 60, "write_batch_size": 7}
        files = [
            put_file(store, f"{number}.parquet", parquet(table, **options), sidecar=sidecars, mutable=mutable)
            for table, (number, mutable) in zip(self.tables, enumerate(may_change), strict=False)
        ]
        cache = default_cache(CacheSettings(folder=folder / "cache")) if caches else None
        parsed = MemoryCache(10**7, weigh=weight_of) if caches else None
        context = ScanContext("lake", store, cache, parsed, threads=4)

        def plan(asked):
            return plan_files(context, files, predicate=asked.predicate, columns=asked.columns)

        cells = Cells(2**26) if caches else None
        read = ReadContext("lake", store, cache, cells, parallel=2, forcing=self.forced.get(place))
        return DuckDBEngine(read), Relation(self.schema, plan)

    def query(self):
        names = self.draw.sample([*COLUMNS], self.draw.randrange(1, 4))
        columns = self.draw.choice(["*", "count(*) as n", ", ".join(names)])
        return f"select {columns} from t where {condition(self.draw)}"

    def ask(self, name, query, ways):
        """Hold some ways to the answer of the native table."""
        expected = rows_of(self.native.sql(query).to_arrow_table())
        for way in ways:
            engine, relation = self.ways[way]
            found = rows_of(engine.sql(query, {"t": lambda relation=relation: relation}).table)
            assert found == expected, f"{name}, {way}: {query}"

    def close(self):
        for engine, _ in self.ways.values():
            engine.close()
        self.native.close()


def rows_of(result):
    try:
        return sorted(map(repr, result.to_pylist()))
    except OverflowError:  # times that Python's calendar does not reach
        return [str(column.combine_chunks()) for column in result.columns]


@pytest.mark.parametrize("seed", range(10))
def test_100_scans_of_some_files_answer_as_a_native_table(seed, tmp_path):
    world = World(seed, tmp_path)
    ways = itertools.cycle(world.ways)
    for number in range(100):
        world.ask(f"seed {seed}, scan {number}", world.query(), [next(ways)])
    world.close()
    assert all(forcing.taken for forcing in world.forced.values())


@pytest.mark.long
def test_100_scans_of_100_worlds_answer_so_from_each_source(tmp_path, capsys):
    taken = {}
    for seed in range(10, 110):
        world = World(seed, tmp_path / str(seed))
        ways = itertools.cycle([way for way in world.ways if way not in world.forced])
        for number in range(100):
            world.ask(f"seed {seed}, scan {number}", world.query(), [next(ways), *world.forced])
        for kind, forcing in world.forced.items():
            taken.setdefault(kind, Counter()).update(forcing.taken)
        world.close()
        shutil.rmtree(tmp_path / str(seed))
    with capsys.disabled():
        for kind, counts in taken.items():
            print(f"\n  {kind}: {counts.total()} scans, {counts[kind]} served by it; {dict(counts)}")
    assert all(counts[kind] for kind, counts in taken.items())


def test_every_way_answers_alike(tmp_path):
    world = World(9, tmp_path)
    assert sorted(map(len, world.tables)) == [3, 40, 400, 400]
    for number in range(12):
        world.ask(f"scan {number}", world.query(), world.ways)
    world.close()


def readable(path):
    try:
        return duckdb.sql(f"select * from read_parquet('{path}')").to_arrow_table()
    except duckdb.Error:
        return None


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.stem)
def test_files_of_other_writers_answer_as_duckdb_reads_them(path, tmp_path):
    expected = readable(path)
    context = ScanContext("lake", LocalStore(tmp_path), default_cache(CacheSettings(folder=tmp_path)), threads=4)
    relations = ForeignRelations(ForeignFiles(context))
    engine = DuckDBEngine(ReadContext("lake", context.store, context.cache))
    try:
        if expected is None:
            with pytest.raises(Exception, match=r"."):
                engine.sql(f"select * from '{path}'", {}, relations)
            return
        for _ in range(2):
            found = engine.sql(f"select * from '{path}'", {}, relations).table
            assert rows_of(found) == rows_of(expected)
        first = expected.column_names[0]
        query = f'select "{first}" from \'{path}\' where "{first}" is not null'
        found = engine.sql(query, {}, relations).table
        assert rows_of(found) == rows_of(duckdb.sql(query).to_arrow_table())
    finally:
        engine.close()


def test_a_file_with_a_hundred_thousand_rows_is_cut_into_granules_and_still_whole(tmp_path):
    draw = random.Random(5)
    rows = 100_000
    table = pa.table({"k": [n // 1000 for n in range(rows)], "v": [draw.random() for _ in range(rows)]})
    path = tmp_path / "large.parquet"
    pq.write_table(table, path, row_group_size=rows, max_rows_per_page=1000, write_page_index=True)
    context = ScanContext("lake", LocalStore(tmp_path), threads=4)
    relations = ForeignRelations(ForeignFiles(context))
    engine = DuckDBEngine(ReadContext("lake", context.store))
    query = f"select k, sum(v) as s, count(*) as n from '{path}' group by k order by k"
    found = engine.sql(query, {}, relations).to_dict()
    assert [(row["k"], row["n"]) for row in found] == [(k, 1000) for k in range(100)]
    assert math.isclose(sum(row["s"] for row in found), sum(table["v"].to_pylist()))
    engine.close()
