"""TPC-H: its tables as native DuckDB tables, as files of several writers and as tables of a lake; its 22 queries."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
from tests.engines.forced import WAYS, Way

from windrow.cache import CacheSettings

QUERIES = {path.stem: path.read_text() for path in sorted((Path(__file__).parents[1] / "data" / "tpch").glob("*.sql"))}
TABLES = {
    "lineitem": "l_shipdate|l_orderkey|l_linenumber/V2",
    "orders": "o_orderdate|o_orderkey/V2",
    "customer": "c_nationkey|c_custkey/V2",
    "part": "p_brand|p_partkey/V2",
    "supplier": "s_nationkey|s_suppkey/V2",
    "partsupp": "ps_suppkey|ps_partkey/V2",
    "nation": "n_nationkey/V2",
    "region": "r_regionkey/V2",
}
"""Each with the order that its rows have in a lake; the key takes the place of a time there, in seconds."""
KEYS = {
    "lineitem": "l_orderkey",
    "orders": "o_orderkey",
    "customer": "c_custkey",
    "part": "p_partkey",
    "supplier": "s_suppkey",
    "partsupp": "ps_partkey",
    "nation": "n_nationkey",
    "region": "r_regionkey",
}


class Tpch:
    """The rows at one scale, and every way to ask them; each is made when it is first asked."""

    def __init__(self, scale, folder):
        self.folder = folder
        program = Path(sys.executable).with_name("tpchgen-cli")
        made = [program, "parquet", "-s", str(scale), "-o", folder / "parquet-rs", "-q"]
        subprocess.run(made, check=True)
        self.native = duckdb.connect()
        for name in TABLES:
            self.native.execute(f"create table {name} as from '{folder}/parquet-rs/{name}.parquet'")
        cache = CacheSettings(folder=folder / "cache")
        self.ways = {name: Way.open(name, folder / "lake", cache) for name in WAYS}

    def close(self):
        for way in self.ways.values():
            way.lake.close()
        self.native.close()

    def expected(self, name):
        """The rows that native tables give."""
        return self.native.sql(QUERIES[name].format(**{table: table for table in TABLES})).to_arrow_table()

    def found(self, name, place, way="as chosen", *, spark=None):
        """The rows that a lake gives of tables or files, read one way."""
        folder = self.folder / place
        if not folder.exists():
            folder.mkdir()
            for table in TABLES:
                self._make(table, place, folder, spark)
        if place in ("registered", "ingested"):
            places = {table: f"{place}_{table}" for table in TABLES}
        else:
            parts = "/*" if place == "spark" else ""
            places = {table: f"'{folder}/{table}{parts}.parquet'" for table in TABLES}
        return self.ways[way].ask(QUERIES[name].format(**places))

    def _make(self, table, place, folder, spark):
        match place:
            case "pyarrow":
                self._pyarrow(table, folder)
            case "duckdb":
                self._duckdb(table, folder)
            case "spark":
                self._spark(table, folder, spark)
            case "registered":
                self._registered(table, folder)
            case "ingested":
                self._ingested(table)

    def _pyarrow(self, name, folder):
        table = self.native.sql(f"from {name}").to_arrow_table()
        options = {"row_group_size": 20_000, "max_rows_per_page": 2_000, "write_page_index": True}
        pq.write_table(table, folder / f"{name}.parquet", **options)

    def _duckdb(self, name, folder):
        order = TABLES[name].partition("|")[0].removesuffix("/V2")
        self.native.execute(
            f"copy (from {name} order by {order}) to '{folder}/{name}.parquet' (row_group_size 8192, compression zstd)"
        )

    def _spark(self, name, folder, spark):
        rows = spark.read.parquet(f"{self.folder}/pyarrow/{name}.parquet")
        rows.repartition(2).write.parquet(f"{folder}/{name}")

    def _registered(self, name, folder):
        """Files of which each has a range of the first sort column."""
        order = TABLES[name].partition("|")[0].removesuffix("/V2")
        # Rows that are alike in that column lie in any order: they are numbered once.
        self.native.execute(
            f"create temp table parts as select *, ntile(4) over (order by {order}) as part from {name}"
        )
        for part in range(4):
            rows = f"select * exclude part from parts where part = {part + 1}"
            self.native.execute(f"copy ({rows}) to '{folder}/{name}-{part}.parquet'")
        self.native.execute("drop table parts")
        self._table(f"registered_{name}", name).register.run([folder / f"{name}-{part}.parquet" for part in range(4)])

    def _ingested(self, name):
        """Two batches, so that every window has two splits."""
        table = self._table(f"ingested_{name}", name)
        for half in range(2):
            rows = self.native.sql(f"from {name} where {KEYS[name]} % 2 = {half}").to_arrow_table()
            table.ingest(rows)

    def _table(self, name, kind):
        return self.ways["as chosen"].lake.create_table(
            name, sort=TABLES[kind], timestamp=KEYS[kind], timestamp_unit="s", window="1h", mirror=False
        )
