"""Files of one row group are read by several threads, and every source answers as native tables do."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.engines.forced import WAYS, Way

from windrow.cache import CacheSettings
from windrow.learning.scanned_files import whole_row_groups
from windrow.model.sources import SourceKind
from windrow.planning.data_files import open_sidecars
from windrow.planning.foreign_files import ForeignFiles
from windrow.planning.scan_context import ScanContext
from windrow.planning.scan_plan import plan_files
from windrow.storage import LocalStore

SCALE, ROWS = 0.05, 299_814
QUERIES = {
    "a sum": "select sum(l_extendedprice), sum(l_discount), count(*) from {rows}",
    "groups": """select l_returnflag, l_linestatus, sum(l_quantity), sum(l_extendedprice), count(l_tax), min(l_comment)
        from {rows} where l_shipdate <= date '1998-09-02' group by all order by all""",
    "texts": "select sum(length(l_comment)), count(distinct l_shipmode), max(l_comment) from {rows}",
    "rows of both pieces": """select l_orderkey, l_linenumber, l_partkey, l_comment from {rows}
        where l_orderkey between 147000 and 153000 order by all""",
    "a join": """select count(*), sum(a.l_tax) from {rows} a join {rows} b
        on a.l_orderkey = b.l_orderkey and a.l_linenumber = b.l_linenumber where b.l_quantity < 10""",
    "nothing": "select count(*) from {rows} where l_comment = 'no such comment'",
}


def _without_views(table):
    """Texts as files of pyarrow have them."""
    return table.cast(pa.schema([each.with_type(_plain(each.type)) for each in table.schema]))


def _plain(kind):
    return pa.string() if pa.types.is_string_view(kind) else kind


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The same rows, by writer."""
    folder = tmp_path_factory.mktemp("one row group")
    program = Path(sys.executable).with_name("tpchgen-cli")
    options = ["parquet", "-s", str(SCALE), "-T", "lineitem", "--row-group-bytes", "1GB", "-o", folder, "-q"]
    subprocess.run([program, *options], check=True)
    (folder / "lineitem.parquet").rename(folder / "rust.parquet")
    table = _without_views(pq.read_table(folder / "rust.parquet"))
    pq.write_table(table, folder / "arrow.parquet", row_group_size=len(table))
    pq.write_table(
        table,
        folder / "arrow-2.parquet",
        row_group_size=len(table),
        data_page_version="2.0",
        compression="zstd",
        dictionary_pagesize_limit=20_000,
        write_page_index=True,
    )
    with duckdb.connect() as connection:
        connection.execute("set threads = 1")
        copied = f"copy (from '{folder}/arrow.parquet') to '{folder}/duckdb.parquet'"
        connection.execute(f"{copied} (format parquet, row_group_size {len(table)})")
    found = {path.stem: path for path in folder.glob("*.parquet")}
    assert all(pq.read_metadata(path).num_row_groups == 1 for path in found.values())
    return found


@pytest.fixture(scope="module")
def native(files):
    with duckdb.connect() as connection:
        connection.execute(f"create table lineitem as from '{files['arrow']}'")
        yield connection


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_every_source_answers_as_native_tables_do(files, native, tmp_path, way):
    opened = Way.open(way, tmp_path / "lake", CacheSettings(folder=tmp_path / "cache"))
    try:
        for name, query in QUERIES.items():
            expected = native.sql(query.format(rows="lineitem")).fetchall()
            for path in files.values():
                found = opened.ask(query.format(rows=f"'{path}'"))
                assert [tuple(row.values()) for row in found.to_pylist()] == expected, (name, path.stem)
        if way == SourceKind.VIRTUAL:
            assert opened.served["served"] == opened.served["queries"]
    finally:
        opened.lake.close()


@pytest.mark.parametrize(("writer", "pieces"), [("rust", 2), ("arrow", 2), ("arrow-2", 2), ("duckdb", 1)])
def test_threads_share_a_row_group_unless_it_is_one_page_and_all_of_it_is_learnt_from(files, writer, pieces):
    context = ScanContext("lake", LocalStore(files[writer].parent), threads=2)
    [file] = ForeignFiles(context).find(str(files[writer]))
    columns = ["l_quantity", "l_extendedprice", "l_comment"]
    [virtual] = plan_files(context, [file], columns=columns).virtual
    assert virtual.row_groups == pieces
    assert virtual.rows == ROWS
    assert whole_row_groups(virtual, dict(enumerate(open_sidecars(context, [file])))) == {0: [0]}
