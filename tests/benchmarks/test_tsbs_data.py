"""The generator of TSBS rows, beside two files that the real one wrote."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from benchmarks.tsbs_data import TAGS, USAGES, Tsbs

REAL = sorted((Path(__file__).parents[1] / "data" / "tsbs").glob("*.parquet"))


@pytest.fixture(scope="module")
def real() -> pa.Table:
    return pa.concat_tables(pq.read_table(path) for path in REAL)


@pytest.fixture(scope="module")
def made() -> pa.Table:
    return pa.concat_tables(Tsbs(hosts=400, hours=len(REAL) / 12).tables())


def test_schema_rows_and_times_are_the_real_ones(real, made):
    assert made.schema.equals(real.schema, check_metadata=True)
    assert made["timestamp"].equals(real["timestamp"])
    assert made["hostname"].equals(real["hostname"])


def test_a_host_keeps_its_tags(made):
    assert made.select(TAGS).group_by(TAGS).aggregate([]).num_rows == 400


@pytest.mark.parametrize("name", TAGS)
def test_tags_have_the_values_of_the_real_ones(real, made, name):
    theirs, ours = ({*table[name].to_pylist()} for table in (real, made))
    assert len(theirs ^ ours) <= (10 if name == "rack" else 0)
    hosts = {row[name]: row["n"] for row in _per_value(made, name)}
    for row in _per_value(real, name):
        assert abs(hosts.get(row[name], 0) - row["n"]) <= 6 * np.sqrt(row["n"]) + 3


def test_a_datacenter_lies_in_its_region(real, made):
    pairs = [{*zip(*(table[name].to_pylist() for name in TAGS[1:3]), strict=True)} for table in (real, made)]
    assert pairs[0] == pairs[1]


def test_usages_walk_as_the_real_ones_do(real, made):
    for low, high in ((0, 1), (1, 10), (10, 50), (50, 90), (90, 100), (100, 101)):
        assert _share(made, low, high) == pytest.approx(_share(real, low, high), rel=0.2)
    for step in range(-3, 4):
        assert (_steps(made) == step).mean() == pytest.approx((_steps(real) == step).mean(), rel=0.15, abs=0.001)


def test_a_file_is_as_large_as_the_real_one(tmp_path):
    (path,) = Tsbs(hosts=400, hours=1 / 12).write(tmp_path)
    assert path.stat().st_size == pytest.approx(REAL[0].stat().st_size, rel=0.02)


def test_files_of_another_length_hold_the_same_rows():
    set_ = Tsbs(hosts=3, hours=0.1)
    assert pa.concat_tables(set_.tables(300)).equals(pa.concat_tables(set_.tables(30)))


def _per_value(table: pa.Table, name: str) -> list[dict[str, object]]:
    first = table.slice(0, 400).group_by(name).aggregate([([], "count_all")])
    return first.rename_columns([name, "n"]).to_pylist()


def _share(table: pa.Table, low: int, high: int) -> float:
    values = pa.chunked_array([chunk for name in USAGES for chunk in table[name].chunks])
    return pc.mean(pc.and_(pc.greater_equal(values, low), pc.less(values, high))).as_py()


def _steps(table: pa.Table) -> np.ndarray:
    return np.concatenate([np.diff(table[name].to_numpy().reshape(-1, 400), axis=0).ravel() for name in USAGES])
