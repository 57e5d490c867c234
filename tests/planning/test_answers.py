"""Answers without data are those that the data would give, or there are none.

The files are taken away once they are described: whatever is answered then comes from metadata alone.
"""

from __future__ import annotations

import math
import random
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.engines.streams import streamed

import windrow
from windrow.cache import CacheSettings
from windrow.errors import NotFound
from windrow.lake import open_lake

START = datetime(2026, 1, 1, tzinfo=UTC)
COLUMNS = {
    "host": (pa.string(), lambda draw: draw.choice(["a", "b", "web-1", "", "long-" * 30 + draw.choice("xy")])),
    "ts": (pa.timestamp("us", "UTC"), lambda draw: START + timedelta(seconds=draw.randrange(3600))),
    "n": (pa.int64(), lambda draw: draw.randrange(-5, 50)),
    "small": (pa.int16(), lambda draw: draw.randrange(-300, 300)),
    "unsigned": (pa.uint64(), lambda draw: draw.choice([0, 1, 2**63, 2**64 - 1])),
    "v": (pa.float64(), lambda draw: draw.choice([-1.5, 0.25, 3.0, 1e9])),
    "odd": (pa.float64(), lambda draw: draw.choice([math.nan, math.inf, -0.0, 0.0, 1.5, -2.5])),
    "single": (pa.float32(), lambda draw: draw.choice([0.1, 0.5, -1.0, math.nan])),
    "exact": (pa.decimal128(10, 2), lambda draw: Decimal(draw.randrange(-300, 300)) / 100),
    "day": (pa.date32(), lambda draw: date(2026, 1, 1) + timedelta(days=draw.randrange(20))),
    "fine": (pa.timestamp("ns"), lambda draw: draw.randrange(10**18)),
    "flag": (pa.bool_(), lambda draw: draw.random() < 0.5),
}
TYPES = {name: kind for name, (kind, _) in COLUMNS.items()}
CONDITIONS = [
    "ts >= '2026-01-01 00:15:00'",
    "ts < timestamp '2026-01-01 00:30:00'",
    "ts between '2026-01-01 00:15:00' and '2026-01-01 00:29:59.999999'",
    "ts >= '2026-01-01 00:15:00' and ts < '2026-01-01 00:45:00'",
    "ts is null",
    "ts is not null",
    "ts < '2026-01-01 00:20:00'",
    "host = 'a'",
    "host <> 'nothing'",
    "host is not null",
    "n >= -5",
    "n > 100",
    "n < 100 or host = 'a'",
    "v <= 1e9",
    "odd > 1",
    "odd <= 'inf'::double",
    "exact < 100",
    "day >= date '2026-01-01'",
    "day not in (date '2027-01-01')",
    "flag or not flag",
    "small + 0 = 1",
    "not host like 'zz%'",
    "starts_with(host, 'a')",
    "unsigned >= 0",
    "single = 0.5",
]


class World:
    """A table of which the rows are known and the files are gone."""

    def __init__(self, seed, folder):
        self.draw = random.Random(seed)
        self.lake = windrow.connect(folder / "lake", cache=CacheSettings(folder=folder / "cache"))
        unit = ("us", "ns")[seed % 2]
        kinds = {
            name: pa.timestamp(unit, kind.tz) if pa.types.is_timestamp(kind) else kind for name, kind in TYPES.items()
        }
        self.schema = pa.schema(kinds)
        table = self.lake.create_table("t", sort="host|ts/V2", timestamp="ts", timestamp_precision=unit, mirror=False)
        young = self.draw.choice([0.0, 0.15, 1.0])
        # The first knows all columns; later ones may lack some.
        batches = [self.batch(self.draw.choice([5, 40, 300]), young, whole=True)]
        batches += [self.batch(self.draw.choice([5, 40, 300]), young) for _ in range(self.draw.randrange(3))]
        for batch in batches:
            table.ingest(batch)
        if self.draw.random() < 0.5:
            batches.append(self.batch(30, young, whole=True).drop_columns(["flag"]))
            pq.write_table(batches[-1], folder / "given.parquet", row_group_size=10)
            table.register.run(folder / "given.parquet")
        rows = pa.concat_tables([self.schema.empty_table(), *batches], promote_options="permissive").cast(self.schema)
        self.native = duckdb.connect()
        self.native.execute("set TimeZone = 'UTC'")
        self.native.register("rows", rows)
        self.native.execute("create table t as select * from rows")
        for path in (folder / "lake" / "t").glob("*/*/*.parquet"):
            path.unlink()

    def batch(self, rows, nulls, *, whole=False):
        names = [name for name in COLUMNS if whole or name in ("host", "ts") or self.draw.random() < 0.8]
        sparse = {name: self.draw.choice([0.0, nulls]) for name in names}
        made = {
            name: [None if self.draw.random() < sparse[name] else COLUMNS[name][1](self.draw) for _ in range(rows)]
            for name in names
        }
        rows = pa.table({name: pa.array(made[name], TYPES[name]) for name in names})
        return rows.cast(pa.schema([self.schema.field(name) for name in names]), safe=False)

    def query(self):
        asked = [self.aggregate() for _ in range(self.draw.randrange(1, 4))]
        where = self.draw.sample(CONDITIONS, self.draw.choice([0, 1, 1, 2]))
        return f"select {', '.join(asked)} from t" + (
            f" where {' and '.join(f'({each})' for each in where)}" if where else ""
        )

    def aggregate(self):
        form = self.draw.choice(["count(*)", "count({})", "min({})", "max({})", "min(t.{}) as low"])
        return form.format(self.draw.choice(list(COLUMNS)))

    def close(self):
        self.lake.close()
        self.native.close()


def shown(value):
    """Zeros of both signs are equal, and the greatest of them is any."""
    return repr(value + 0.0 if isinstance(value, float) else value)


@pytest.mark.parametrize("seed", [*range(6), *(pytest.param(n, marks=pytest.mark.long) for n in range(6, 60))])
def test_what_is_answered_is_what_the_rows_say(seed, tmp_path):
    world = World(seed, tmp_path)
    answered = 0
    for _ in range(100):
        query = world.query()
        expected = world.native.sql(query).to_arrow_table()
        try:
            found = world.lake.sql(query).to_arrow()
        except NotFound:
            continue
        answered += 1
        values = [[shown(column[0].as_py()) for column in table.columns] for table in (found, expected)]
        assert values[0] == values[1], f"seed {seed}: {query}"
        assert found.schema.types == expected.schema.types, query
    assert answered > 20
    world.close()


@pytest.fixture
def gone(tmp_path):
    """An hour of points in four windows, a point a second; the files are gone."""
    lake = windrow.connect(tmp_path / "lake", cache=CacheSettings(folder=tmp_path / "cache"))
    times = pa.array([START + timedelta(seconds=n) for n in range(3600)], pa.timestamp("us", "UTC"))
    rows = {
        "host": ["a"] * 1800 + ["b"] * 1800,
        "timestamp": times,
        "n": range(3600),
        "v": [n / 2 for n in range(3600)],
    }
    lake.create_table("t", sort="host|timestamp/V2").ingest(pa.table(rows))
    for path in (tmp_path / "lake" / "t").glob("*/*/*.parquet"):
        path.unlink()
    yield lake
    lake.close()


ANSWERED = {
    "select count(*) from t": (3600,),
    "select count(*) as a, min(n), max(n) as c, count(v) from t": (3600, 0, 3599, 3600),
    "select min(host), max(host) from t": ("a", "b"),
    "select min(v) from t where host = 'b'": (900.0,),
    "select min(timestamp) from t where host = 'b'": (START + timedelta(seconds=1800),),
    "select count(*), max(n) from t where timestamp < '2026-01-01 00:30:00'": (1800, 1799),
    "select count(*) from t as x where x.timestamp >= '2026-01-01 00:15:00' and x.host = 'a'": (900,),
    "select count(*), min(n) from t where timestamp > '2027-01-01'": (0, None),
    "from t select count(*)": (3600,),
}


@pytest.mark.parametrize("query", ANSWERED)
def test_these_need_no_data(gone, query):
    assert tuple(gone.sql(query).to_dict()[0].values()) == ANSWERED[query]
    assert streamed(gone, query).equals(gone.sql(query).to_arrow())


def test_names_are_those_that_duckdb_gives(gone):
    assert gone.sql("select count(*), min(n), max(t.n) as top from t").to_arrow().column_names == [
        "count_star()",
        "min(n)",
        "top",
    ]


@pytest.mark.parametrize(
    "query",
    [
        "select count(*) from t where timestamp < '2026-01-01 00:20:00'",
        "select sum(n) from t",
        "select count(distinct host) from t",
        "select min(n + 1) from t",
        "select count(*) from t group by host",
        "select count(*) filter (where n > 5) from t",
        "select count(*) from t where n % 2 = 0",
        "select max(v) from t",
        "select a.n from t a, t b",
    ],
)
def test_these_do(gone, query):
    with pytest.raises(NotFound):
        gone.sql(query)


def test_without_pruning_everything_is_read(gone, tmp_path):
    with open_lake(tmp_path / "lake", prune=False) as lake, pytest.raises(NotFound):
        lake.sql("select max(n) from t")


def test_a_query_that_is_wrong_is_refused_as_ever(gone):
    with pytest.raises(windrow.errors.InvalidInput, match="nothing"):
        gone.sql("select min(nothing) from t")


@pytest.fixture
def given(tmp_path):
    """A table of a registered file, which has statistics; nobody knows whether there is a NaN."""
    with windrow.connect(tmp_path / "lake", cache=CacheSettings(folder=tmp_path / "cache"), statistics=0) as lake:
        table = lake.create_table("t", sort="ts/V2", timestamp="ts", mirror=False)
        times = pa.array([START + timedelta(seconds=second) for second in range(100)], TYPES["ts"])
        values = [float(number) for number in range(1, 101)]
        odd = [math.nan if number == 77 else float(number) for number in range(1, 101)]
        path = tmp_path / "given.parquet"
        pq.write_table(pa.table({"ts": times, "v": values, "odd": odd}), path, row_group_size=10)
        table.register.run(path)
        yield lake


def test_the_greatest_of_floats_is_known_once_it_was_learnt_that_none_is_nan(given):
    lake = given
    query = "select max(v) as m from t"
    assert lake.sql(query).to_dict() == [{"m": 100.0}]
    assert why(lake, query).startswith("read whole")
    lake.table("t").upkeep.analyze(["v", "odd"])
    assert lake.sql(query).to_dict() == [{"m": 100.0}]
    assert why(lake, query) == "nothing is read: metadata has the answer, with what queries learnt of v"
    assert lake.sql("select max(v) as m, count(*) as c from t where v <= 50").to_dict() == [{"m": 50.0, "c": 50}]


def test_a_nan_that_was_met_is_the_greatest(given):
    lake = given
    lake.table("t").upkeep.analyze()
    [row] = lake.sql("select max(odd) as m from t").to_dict()
    assert math.isnan(row["m"])
    assert lake.sql("select max(odd) as m from t where odd < 50").to_dict() == [{"m": 49.0}]


def test_a_row_group_of_which_nothing_is_known_may_hold_a_nan(given):
    lake = given
    lake.table("t").upkeep.analyze(["odd"])
    assert why(lake, "select max(v) as m from t").startswith("read whole")


def why(lake, query):
    (found,) = lake.explain(query).tables
    return found.why
