"""Rows of a running QuestDB: every type that it has, in order or late, are the same to us."""

from __future__ import annotations

import numpy as np
import pytest
from tests.questdb.read_tables import as_json

from windrow.databases import open_database, open_table
from windrow.questdb.checking import check_table

pytestmark = pytest.mark.interop

TYPES = (
    "b BOOLEAN, by BYTE, sh SHORT, ch CHAR, i INT, l LONG, da DATE, t2 TIMESTAMP, tn TIMESTAMP_NS, f FLOAT, db DOUBLE, "
    "s STRING, sy SYMBOL, v VARCHAR, bin BINARY, u UUID, ip IPV4, l256 LONG256, g1 GEOHASH(1c), g2 GEOHASH(3c), "
    "g3 GEOHASH(6c), g4 GEOHASH(12c), a1 DOUBLE[], a2 DOUBLE[][], d8 DECIMAL(2,1), d16 DECIMAL(4,2), "
    "d32 DECIMAL(9,3), d64 DECIMAL(18,4), d128 DECIMAL(38,5), d256 DECIMAL(76,10)"
)
VALUES = (
    "rnd_boolean(), rnd_byte(-100,100), rnd_short(-30000,30000), rnd_char(), rnd_int(-2000000000,2000000000,3), "
    "rnd_long(-9000000000000,9000000000000,3), rnd_date(to_date('1970','yyyy'),to_date('2060','yyyy'),3), "
    "rnd_timestamp(to_timestamp('1970','yyyy'),to_timestamp('2060','yyyy'),3), "
    "case when x%5=0 then null else (1700000000000000000L + x*1234567891L)::timestamp_ns end, rnd_float(3), "
    "rnd_double(3), rnd_str(1,12,3), rnd_symbol('alpha','beta','gamma',null), rnd_varchar(1,20,3), rnd_bin(2,24,3), "
    "rnd_uuid4(3), case when x%9=0 then null else rnd_ipv4() end, case when x%6=0 then null else rnd_long256() end, "
    "case when x%6=1 then null else rnd_geohash(5) end, case when x%6=2 then null else rnd_geohash(15) end, "
    "case when x%6=3 then null else rnd_geohash(30) end, case when x%6=4 then null else rnd_geohash(60) end, "
    "rnd_double_array(1,3,2,5), rnd_double_array(2,3,0,3,2), rnd_decimal(2,1,3), rnd_decimal(4,2,3), "
    "rnd_decimal(9,3,3), rnd_decimal(18,4,3), rnd_decimal(38,5,3), rnd_decimal(76,10,3)"
)


def theirs(questdb, query):
    """Columns that /exec shows, and rows as it spells them; it writes a FLOAT with as many digits as that needs."""
    answer = questdb.ask(query, limit=10_000_000)
    kinds = {column["name"]: column["type"] for column in answer["columns"]}
    names = [name for name, kind in kinds.items() if kind != "BINARY"]
    places = [list(kinds).index(name) for name in names]
    rows = [[row[place] for place in places] for row in answer["dataset"]]
    for at, name in enumerate(names):
        if kinds[name] == "FLOAT":
            for row in rows:
                row[at] = None if row[at] is None else float(np.float32(row[at]))
    return names, rows


def test_times_before_1970_are_those_that_questdb_stores(questdb):
    """As numbers: it spells the last day of a leap year before 1970 as the first day of the next."""
    questdb.run(
        "create table old_times (ts timestamp, t timestamp, d date) timestamp(ts) partition by day wal",
        "insert into old_times select timestamp_sequence('2024-01-01', 8000000), "
        "rnd_timestamp(to_timestamp('1960','yyyy'),to_timestamp('1970','yyyy'),3), "
        "rnd_date(to_date('1960','yyyy'),to_date('1970','yyyy'),3) from long_sequence(12000)",
        "alter table old_times convert partition to parquet list '2024-01-01'",
        table="old_times",
    )
    rows = questdb.rows("select ts::long, t::long, d::long from old_times where ts < '2024-01-02' order by ts")
    found = open_table(questdb.table_folder("old_times"), native="skip").scan().to_arrow().sort_by("ts")
    numbers = [found.column(name).cast("int64").to_pylist() for name in ("ts", "t", "d")]
    assert [list(row) for row in zip(*numbers, strict=True)] == rows


def differences(names, ours, rows):
    """Cells in which two answers differ."""
    assert len(ours) == len(rows)
    for mine, their in zip(ours, rows, strict=True):
        yield from ((name, *pair) for name, *pair in zip(names, mine, their, strict=True) if pair[0] != pair[1])


@pytest.fixture(scope="module", params=["wal", "bypass wal"])
def table(request, questdb):
    """A table of every type, over three days and all of them Parquet but the last."""
    name = f"types_{request.param.replace(' ', '_')}"
    questdb.run(
        f"create table {name} (ts timestamp, {TYPES}) timestamp(ts) partition by day {request.param}",
        f"insert into {name} select timestamp_sequence('2024-01-01', 40000000), {VALUES} from long_sequence(5000)",
        f"alter table {name} convert partition to parquet list '2024-01-01','2024-01-02'",
        table=name,
    )
    return name


def test_every_type_reads_as_questdb_answers(questdb, table):
    names, rows = theirs(questdb, f"select * from {table} where ts < '2024-01-03' order by ts")
    found = open_table(questdb.table_folder(table), native="skip").scan(columns=names).to_arrow()
    assert len(rows) == 4320
    ours = as_json(found.sort_by("ts"), names)
    assert list(differences(names, ours, rows)) == []
    assert check_table(questdb.table_folder(table), data=True).findings == ()


def test_late_rows_that_are_merged_into_parquet_are_read(questdb):
    questdb.run(
        "create table late (ts timestamp, sy symbol, val double, text varchar, n long) timestamp(ts) "
        "partition by day wal dedup upsert keys(ts, n)",
        "insert into late select timestamp_sequence('2024-02-01', 30000000L), rnd_symbol('a','b',null), x*0.5, "
        "'row-'||x, x from long_sequence(7000)",
        "alter table late convert partition to parquet list '2024-02-01','2024-02-02'",
        table="late",
    )
    for batch in range(6):
        questdb.run(
            f"insert into late select timestamp_sequence('2024-02-0{1 + batch % 2}T0{batch}:00:00', 1000000L), 'z', "
            f"x*0.25, 'late-{batch}', -x from long_sequence({200 * (batch + 1)})",
            table="late",
        )
        names, rows = theirs(questdb, "select * from late where ts < '2024-02-03' order by ts, n")
        found = open_table(questdb.table_folder("late"), native="skip").scan().to_arrow()
        ordered = found.sort_by([("ts", "ascending"), ("n", "ascending")])
        assert as_json(ordered, names) == rows


def test_the_tables_of_the_server_are_those_that_it_lists(questdb, table):
    names = {row[0] for row in questdb.rows("select table_name from tables()")}
    assert names - {entry.name for entry in open_database(questdb.folder).tables()} == set()
