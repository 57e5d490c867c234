"""The sparse twin of a virtual file: engines that open paths read from it what the plan says."""

from __future__ import annotations

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from tests.scan.conftest import metrics, parquet, put_file

from windrow.errors import WindrowError
from windrow.scan.context import ReadContext, ScanContext
from windrow.scan.plan import plan_files
from windrow.scan.twin import write_twin
from windrow.scan.where import parse_where
from windrow.storage import LocalStore, open_store

READERS = {
    "pyarrow": lambda path: pq.ParquetFile(path).read(),
    "duckdb": lambda path: duckdb.sql(f"select * from read_parquet('{path}')").to_arrow_table(),
    "polars": lambda path: pl.read_parquet(path, glob=False, hive_partitioning=False).to_arrow(),
}


@pytest.fixture(params=["local", "remote"])
def store(request, tmp_path):
    return LocalStore(tmp_path / "lake") if request.param == "local" else open_store("memory://")


def planned(store, tables, condition=None):
    files = [put_file(store, f"{number}.parquet", parquet(table)) for number, table in enumerate(tables)]
    return plan_files(ScanContext("x", store), files, predicate=condition and parse_where(condition))


@pytest.mark.parametrize("engine", READERS)
def test_engines_read_the_twin_by_its_path(engine, store, tmp_path):
    tables = [metrics(seed, 3000) for seed in range(4)]
    tables[2] = tables[2].drop_columns("host")
    [virtual] = planned(store, tables, "metric = 'metric_07'").virtual
    path = tmp_path / virtual.name
    write_twin(virtual, ReadContext("x", store), path)
    found = READERS[engine](path)
    whole = pa.concat_tables(tables, promote_options="default")
    wanted = whole.filter(pc.equal(whole["metric"], "metric_07"))
    found = found.filter(pc.equal(found["metric"].cast(pa.string()), "metric_07")).select(whole.column_names)
    key = [(name, "ascending") for name in ("ts", "value")]
    assert found.sort_by(key).to_pylist() == wanted.sort_by(key).to_pylist()


def test_it_takes_the_space_of_what_is_read(tmp_path):
    store = LocalStore(tmp_path / "lake")
    table = pa.table({"key": list(range(200_000)), "value": [str(n) * 5 for n in range(200_000)]})
    layout = {"compression": "none", "use_dictionary": False, "row_group_size": 20_000, "write_page_index": False}
    file = put_file(store, "a.parquet", parquet(table, **layout))
    plan = plan_files(ScanContext("x", store, threads=1), [file], predicate=parse_where("key = 7"), columns=["key"])
    path = tmp_path / "twin.parquet"
    write_twin(plan.virtual[0], ReadContext("x", store), path)
    status = path.stat()
    assert status.st_size > file.identity.size
    assert status.st_blocks * 512 < file.identity.size / 4


def test_what_cannot_be_read_leaves_no_twin(store, tmp_path):
    [virtual] = planned(store, [metrics(1, 3000)]).virtual
    store.delete("0.parquet")
    with pytest.raises(WindrowError, match=r"0\.parquet"):
        write_twin(virtual, ReadContext("x", store), tmp_path / "twin.parquet")
    assert not (tmp_path / "twin.parquet").exists()
