"""Row groups get bounds of the designated timestamp even if their file has none."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow.errors import Damaged
from windrow.questdb.backfill import backfill_timestamps, lacking_bounds
from windrow.sidecar import Sidecar
from windrow.sidecar.build import build_sidecar, footer_bytes_of

GOLDEN = Path(__file__).parents[1] / "data" / "golden"
TIMESTAMP, LONG, DESIGNATED, DESCENDING = 8, 6, 1 << 17, 1 << 20


def write(path, times, *, statistics, unit="us", code=TIMESTAMP | DESIGNATED, groups=3):
    """A file as QuestDB writes one, with or without statistics of some columns."""
    schema = [{"column_type": code, "column_top": 0}, {"column_type": LONG, "column_top": 0}]
    notes = {"questdb": json.dumps({"version": 1, "schema": schema, "squash_tracker": 4, "seq_txn": 7})}
    fields = [pa.field("ts", pa.timestamp(unit), nullable=False), pa.field("n", pa.int64())]
    rows = pa.table({"ts": pa.array(times, pa.timestamp(unit)), "n": range(len(times))}, pa.schema(fields))
    with pq.ParquetWriter(path, rows.schema, write_statistics=statistics, store_schema=False) as writer:
        writer.write_table(rows, row_group_size=groups)
        writer.add_key_value_metadata(notes)
    return path


def filled(path):
    data = path.read_bytes()

    def read(offset, length):
        return data[offset : offset + length]

    before = build_sidecar(read, len(data), name=str(path), extensions=False)
    after = backfill_timestamps(before, path, footer_bytes_of(read, len(data), name=str(path)))
    return Sidecar.of(before), Sidecar.of(after)


def bounds(sidecar):
    fields = ["stat_flags", "stat_sizes", "min_stat", "max_stat"]
    return sidecar.chunks[fields][:, 0].tolist()


COUNTED = 0x80
"""NULL_COUNT_PRESENT: a backfill does not count."""


@pytest.mark.parametrize("unit", ["us", "ns"])
def test_bounds_are_those_that_statistics_would_have_given(tmp_path, unit):
    times = [-5, 3, 3, 7, 8, 20, 21]
    code = TIMESTAMP | DESIGNATED | (1 << 18 if unit == "ns" else 0)
    bare = write(tmp_path / "bare.parquet", times, statistics=["n"], unit=unit, code=code)
    full = write(tmp_path / "full.parquet", times, statistics=True, unit=unit, code=code)
    before, after = filled(bare)
    assert lacking_bounds(before).tolist() == [0, 1, 2]
    assert bounds(after) == [(flags & ~COUNTED, *rest) for flags, *rest in bounds(filled(full)[0])]
    assert (after.chunks[:, 1] == before.chunks[:, 1]).all()
    assert (after.squash_tracker, after.seq_txn) == (4, 7)
    assert len(lacking_bounds(after)) == 0


@given(times=st.lists(st.integers(-(2**62), 2**62), min_size=1, max_size=20))
def test_bounds_hold_whatever_the_order_of_rows_is(times, tmp_path_factory):
    path = write(tmp_path_factory.mktemp("rows") / "rows.parquet", times, statistics=False, groups=4)
    column = filled(path)[1].column(0)
    parts = [times[start : start + 4] for start in range(0, len(times), 4)]
    assert column.stored_minimum.values.tolist() == [min(part) for part in parts]
    assert column.stored_maximum.values.tolist() == [max(part) for part in parts]


def test_a_descending_timestamp_has_its_bounds_in_order(tmp_path):
    code = TIMESTAMP | DESIGNATED | DESCENDING
    path = write(tmp_path / "rows.parquet", [9, 5, 1], statistics=False, code=code)
    assert filled(path)[1].column(0).stored_minimum.values.tolist() == [1]


def test_nothing_is_decoded_where_bounds_are_there_or_no_timestamp_is_designated(tmp_path):
    for name, statistics, code in (("full", True, TIMESTAMP | DESIGNATED), ("plain", False, TIMESTAMP)):
        path = write(tmp_path / f"{name}.parquet", [1, 2, 3], statistics=statistics, code=code)
        before, after = filled(path)
        assert bytes(before.buffer) == bytes(after.buffer)


@pytest.mark.parametrize(
    "path", sorted(GOLDEN.glob("questdb-tables/*/*/converter.pm")), ids=lambda path: str(path.parent)
)
def test_files_of_questdb_need_none(path):
    assert len(lacking_bounds(Sidecar.open(path))) == 0


def test_a_page_that_cannot_be_decoded_is_named(tmp_path):
    path = write(tmp_path / "rows.parquet", list(range(1000)), statistics=False, groups=1000)
    data = bytearray(path.read_bytes())
    start = int(filled(path)[0].chunks["byte_range_start"][0, 0])
    data[start : start + 40] = np.full(40, 255, np.uint8).tobytes()
    path.write_bytes(data)
    with pytest.raises(Damaged, match="row group 0, column 'ts'"):
        filled(path)
