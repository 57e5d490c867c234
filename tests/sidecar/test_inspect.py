"""Inspecting: everything is shown, as plain values that JSON can hold."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from windrow.parquet.footer import read_footer
from windrow.sidecar.aligned_pages import find_granules
from windrow.sidecar.convert import Source, convert
from windrow.sidecar.inspect import describe
from windrow.sidecar.reader import Sidecar

DATA = Path(__file__).parents[1] / "data" / "golden"
FILES = [*sorted((DATA / "pm").glob("*.pm")), *sorted((DATA / "parquet").glob("*.pm"))]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_description_is_plain_enough_for_json(path: Path) -> None:
    described = describe(Sidecar.open(path))
    assert json.loads(json.dumps(described)) == described


def test_all_snapshots_are_described_or_as_many_as_wanted() -> None:
    sidecar = Sidecar.open(DATA / "pm" / "e_update_chain_3.step2.pm")
    assert [snapshot["size"] for snapshot in describe(sidecar)["snapshots"]] == [1116, 656, 396]
    assert [snapshot["size"] for snapshot in describe(sidecar, snapshots=1)["snapshots"]] == [1116]


def test_numbers_have_names_beside_them() -> None:
    described = describe(Sidecar.open(DATA / "pm" / "b3_bloom_squash_seq_scratch.pm"))
    (snapshot,) = described["snapshots"]
    chunk = snapshot["row_groups"][0]["chunks"][2]
    assert described["features"] == ["BLOOM_FILTERS", "SQUASH_TRACKER"]
    assert snapshot["features"] == ["SEQ_TXN", "SCRATCHPAD"]
    assert (chunk["codec"], chunk["codec_name"]) == (6, "ZSTD")
    assert chunk["encoding_names"] == ["RLE_DICTIONARY"]
    assert "MIN_INLINED" in chunk["stat_flag_names"]
    assert described["columns"][2]["flag_names"] == ["LOCAL_KEY_IS_GLOBAL"]
    assert snapshot["crc32"] == snapshot["crc32_computed"]


def test_bounds_are_shown_as_bytes_and_as_numbers() -> None:
    described = describe(Sidecar.open(DATA / "pm" / "d_ool_stats.pm"))
    chunks = described["snapshots"][0]["row_groups"][0]["chunks"]
    assert chunks[4]["min"] == {"hex": "fbffffff", "exact": True, "value": -5}
    assert chunks[2]["max"] == {"hex": "78" * 300, "exact": False}
    assert chunks[6]["min"] is None


def test_what_windrow_adds_is_shown() -> None:
    file = io.BytesIO()
    pq.write_table(pa.table({"a": range(10)}), file, write_page_index=True, max_rows_per_page=4)
    data = file.getvalue()
    footer = read_footer(data, name="t")
    granules = find_granules(footer, lambda offset, length: data[offset : offset + length], name="t")
    described = describe(Sidecar.of(convert(Source(footer, len(data), etag="e", granules=granules))))
    added = described["snapshots"][0]["windrow"]
    assert (added["etag"], added["created_by"]) == ("e", footer.created_by)
    assert added["granules"][0]["rows"] == [4, 4, 2]
    assert added["pages"][0][0]["data_page_offset"] == footer.chunks["data_page_offset"][0, 0]
