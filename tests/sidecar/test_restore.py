"""From a sidecar back to a footer: what readers use of it is all there, and engines read the file by it."""

from __future__ import annotations

import io
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.parquet.placed import place_row_groups
from tests.sidecar.whole_footers import restore_footer

from windrow.parquet import chunk as parquet
from windrow.parquet.footer import read_footer
from windrow.parquet.placement import VirtualSchema
from windrow.parquet.synthesis import synthesise_footer
from windrow.sidecar.convert import Source, convert
from windrow.sidecar.reader import Sidecar
from windrow.sidecar.restore import restore_chunks

DATA = Path(__file__).parents[1] / "data"
FILES = [
    path
    for path in [
        *sorted((DATA / "parquet-testing").glob("*.parquet")),
        *sorted((DATA / "golden/parquet").glob("*.parquet")),
    ]
    if path.stem != "PARQUET-1481"
]
GONE = parquet.HAS_OLD_MIN | parquet.HAS_OLD_MAX | parquet.HAS_INDEX_OFFSET
"""What a sidecar has no place for."""
NOT_KEPT = {
    "old_min_offset",
    "old_min_length",
    "old_max_offset",
    "old_max_length",
    "index_page_offset",
    "file_offset",
    "flags",
}
POSITIONS = {"min_offset", "max_offset"}


def source_of(data: bytes, name: str) -> Source:
    return Source(read_footer(data, name=name), len(data), name, lambda offset, length: data[offset : offset + length])


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_footer_comes_back_field_by_field(path: Path) -> None:
    source = source_of(path.read_bytes(), path.name)
    footer, restored = source.footer, restore_footer(Sidecar.of(convert(source)))
    assert restored is not None
    for field in ("version", "created_by", "key_value", "schema", "leaves", "column_orders"):
        assert getattr(restored, field) == getattr(footer, field)
    assert restored.num_rows == footer.row_group_rows.sum()
    assert restored.schema_bytes == footer.schema_bytes
    assert restored.column_orders_bytes == footer.column_orders_bytes
    assert [restored.metadata[a:b] for a, b in spans(restored)] == [footer.metadata[a:b] for a, b in spans(footer)]
    for field in set(footer.chunks.dtype.names or ()) - NOT_KEPT - POSITIONS:
        assert restored.chunks[field].tolist() == footer.chunks[field].tolist()
    assert bounds(restored) == bounds(footer)


def spans(footer: Any) -> list[tuple[int, int]]:
    positions = footer.element_positions.tolist()
    return list(pairwise(positions))


def bounds(footer: Any) -> list[list[bytes]]:
    return [
        [
            footer.metadata[c[f"{side}_offset"] : c[f"{side}_offset"] + c[f"{side}_length"]]
            for c in footer.chunks.ravel()
        ]
        for side in ("min", "max")
    ]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_flags_come_back_but_those_of_what_is_gone(path: Path) -> None:
    source = source_of(path.read_bytes(), path.name)
    restored = restore_chunks(Sidecar.of(convert(source)))
    assert restored is not None
    empty = [
        (parquet.HAS_MIN_VALUE, "min_length"),
        (parquet.HAS_MAX_VALUE, "max_length"),
        (parquet.HAS_BLOOM_OFFSET, "bloom_length"),
    ]
    wanted = source.footer.chunks["flags"].astype(np.int64) & ~GONE
    for flag, length in empty:
        wanted[source.footer.chunks[length] == 0] &= ~flag
    assert restored["flags"].tolist() == wanted.tolist()


def test_pyarrow_reads_a_file_by_the_footer_of_its_sidecar() -> None:
    table = pa.table({"i": range(100), "s": [f"{n % 7}" for n in range(100)], "l": [[n] * (n % 3) for n in range(100)]})
    file = io.BytesIO()
    pq.write_table(table, file, row_group_size=30, store_schema=False)
    data = file.getvalue()
    source = source_of(data, "t")
    restored = restore_footer(Sidecar.of(convert(source)))
    assert restored is not None
    schema = VirtualSchema.of(restored)
    again = data[: -len(source.footer.metadata) - 8] + synthesise_footer(schema, place_row_groups(restored, schema))
    assert pq.read_table(io.BytesIO(again)).equals(pq.read_table(io.BytesIO(data)))
    assert pq.read_metadata(io.BytesIO(again)).row_group(1).column(1).statistics.max == "6"


def test_some_chunks_are_restored_alone() -> None:
    path = DATA / "golden/parquet/x_types.parquet"
    source = source_of(path.read_bytes(), "t")
    sidecar = Sidecar.of(convert(source))
    some, everything = restore_chunks(sidecar, [2, 0], [5, 21]), restore_chunks(sidecar)
    assert some is not None
    assert everything is not None
    assert some.tolist() == everything[[2, 0]][:, [5, 21]].tolist()


def test_a_sidecar_without_our_sections_knows_no_schema_of_a_file_of_others() -> None:
    assert restore_footer(Sidecar.open(DATA / "golden/parquet/x_types.pm")) is None


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_without_page_records_chunks_are_found_by_their_byte_ranges(path: Path) -> None:
    source = source_of(path.read_bytes(), path.name)
    footer, plain = source.footer, restore_chunks(Sidecar.of(convert(source, extensions=False)))
    assert (plain["flags"] & parquet.BOUND_FLAGS == 0).all()
    for field in ("physical_type", "codec", "num_values", "total_compressed_size"):
        assert plain[field].tolist() == footer.chunks[field].tolist()
    has_dictionary = (footer.chunks["flags"] & parquet.HAS_DICTIONARY_OFFSET) != 0
    starts = np.where(has_dictionary, footer.chunks["dictionary_page_offset"], footer.chunks["data_page_offset"])
    assert plain["data_page_offset"].tolist() == starts.tolist()
