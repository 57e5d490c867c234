"""Bloom filters that stay in the Parquet file: the sidecar says where their bits are."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.sidecar.whole_footers import convert_update

from windrow.errors import Damaged
from windrow.model.predicate import Comparison, Op
from windrow.parquet.footer import read_footer
from windrow.sidecar.build import build_sidecar
from windrow.sidecar.check import check_against, check_bytes
from windrow.sidecar.convert import Source, convert
from windrow.sidecar.layout import Feature
from windrow.sidecar.pruning import prune
from windrow.sidecar.reader import Sidecar

GOLDEN = Path(__file__).parents[1] / "data/golden"
FILES = [GOLDEN / "questdb-tables/blooms-0/2024-01-01.1/data.parquet", GOLDEN / "parquet/x_bloom.parquet"]


def reader(data: bytes) -> Any:
    return lambda offset, length: data[offset : offset + length]


def sidecars(data: bytes, *, extensions: bool = True) -> tuple[Sidecar, Sidecar]:
    """The filters inside, and outside."""
    inside, outside = (
        build_sidecar(reader(data), len(data), name="t", extensions=extensions, external_blooms=external)
        for external in (False, True)
    )
    return Sidecar.of(inside), Sidecar.of(outside)


def written(values: list[int]) -> bytes:
    sink = io.BytesIO()
    options = {"n": {"ndv": 10}}
    pq.write_table(pa.table({"n": values, "v": values}), sink, row_group_size=2, bloom_filter_options=options)
    return sink.getvalue()


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
@pytest.mark.parametrize("extensions", [True, False])
def test_slots_lead_to_the_bits_that_are_otherwise_inside(path: Path, extensions: bool) -> None:
    data = path.read_bytes()
    inside, outside = sidecars(data, extensions=extensions)
    assert outside.header.feature_flags == inside.header.feature_flags | Feature.BLOOM_FILTERS_EXTERNAL
    assert outside.bloom_columns.tolist() == inside.bloom_columns.tolist()
    assert len(outside.buffer) < len(inside.buffer)
    found = 0
    for group in range(inside.row_group_count):
        for column in range(inside.column_count):
            bits, place = inside.bloom(group, column), outside.external_bloom(group, column)
            assert (bits is None) == (place is None)
            assert outside.bloom(group, column) is None
            if bits is not None and place is not None:
                found += 1
                assert data[place[0] : sum(place)] == bytes(bits)
    assert found
    assert check_bytes(bytes(outside.buffer)) == []
    assert check_against(outside, read_footer(data, name="t"), len(data)) == []


def test_headers_are_read_and_no_bits() -> None:
    sink = io.BytesIO()
    pq.write_table(pa.table({"n": range(50_000)}), sink, bloom_filter_options={"n": {"ndv": 50_000}})
    data, lengths = sink.getvalue(), []

    def read(offset: int, length: int) -> bytes:
        lengths.append(length)
        return data[offset : offset + length]

    made = Sidecar.of(convert(Source(read_footer(data, name="t"), len(data), read=read), external_blooms=True))
    assert made.external_bloom(0, 0) is not None
    assert max(lengths) == 64


def test_a_file_without_filters_has_neither_flag() -> None:
    data = (GOLDEN / "parquet/x_types.parquet").read_bytes()
    inside, outside = sidecars(data)
    assert bytes(outside.buffer) == bytes(inside.buffer)


@pytest.mark.parametrize("extensions", [True, False])
def test_they_prune_with_the_file_at_hand_and_without_it_do_nothing(extensions: bool) -> None:
    data = written([1, 9, 2, 8, 3, 7])
    inside, outside = sidecars(data, extensions=extensions)
    for value in range(10):
        predicate = Comparison("n", Op.EQUAL, value)
        bounds = [low <= value <= high for low, high in ((1, 9), (2, 8), (3, 7))]
        assert prune(outside, predicate, reader(data)).tolist() == prune(inside, predicate).tolist()
        assert prune(outside, predicate).tolist() == bounds


def test_updates_leave_them_outside_too() -> None:
    """Row groups that are appended to the file: old slots stay, new ones lead to the new filters."""
    first, second = written([1, 9, 2, 8]), written([3, 7])
    data = first + second
    before, after = read_footer(first, name="t"), read_footer(second, name="t")
    sidecar = Sidecar.of(convert(Source(before, len(first), read=reader(first)), external_blooms=True))
    source = Source(appended(before, after, len(first)), len(data), read=reader(data))
    change = convert_update(sidecar, source, unused_bytes=0)
    made = Sidecar.of(change.size.to_bytes(8, "little") + bytes(sidecar.buffer)[8:] + change.data)
    assert made.header.bloom_external
    assert made.row_group_count == 3
    for value, expected in ((1, [1, 0, 0]), (8, [0, 1, 0]), (7, [0, 0, 1]), (5, [0, 0, 0])):
        found = prune(made, Comparison("n", Op.EQUAL, value), reader(data))
        assert found.astype(int).tolist() == expected


def appended(before: Any, after: Any, shift: int) -> Any:
    """The footer of both files, one after the other."""
    chunks = after.chunks.copy()
    for field in ("data_page_offset", "dictionary_page_offset", "bloom_offset"):
        chunks[field] += np.where(chunks[field] > 0, shift, 0)
    for field in ("min_offset", "max_offset"):
        chunks[field] += len(before.metadata)
    return replace(
        before,
        metadata=before.metadata + after.metadata,
        row_group_rows=np.concatenate([before.row_group_rows, after.row_group_rows]),
        row_group_sorting=before.row_group_sorting + after.row_group_sorting,
        chunks=np.concatenate([before.chunks, chunks]),
    )


@pytest.mark.parametrize("slot", [(2**40, 32), (4, 2**40), (2**64 - 8, 32)])
def test_a_slot_that_leads_out_of_the_file_is_a_finding(slot: tuple[int, int]) -> None:
    data = bytearray(sidecars(written([1, 9]))[1].buffer)
    sidecar = Sidecar.of(bytes(data))
    at = sidecar.footer_sections.bloom_offset
    data[at : at + 16] = slot[0].to_bytes(8, "little") + slot[1].to_bytes(8, "little")
    findings = [each.problem for each in check_bytes(with_crc(bytes(data)))]
    assert findings == ["the bloom filter is not inside of the Parquet file"]


def with_crc(data: bytes) -> bytes:
    sidecar = Sidecar.of(data, verify=False)
    _, computed = sidecar.checksums()
    at = sidecar.footer.crc_offset
    return data[:at] + computed.to_bytes(4, "little") + data[at + 4 :]


def test_a_filter_that_claims_more_bytes_than_it_has(make: SimpleNamespace) -> None:
    data = written([1, 9])
    footer = read_footer(data, name="t")
    footer.chunks["bloom_length"] = np.where(footer.chunks["bloom_length"] > 0, 40, 0)
    with pytest.raises(Damaged, match="the bloom filter claims"):
        convert(Source(footer, len(data), read=reader(data)), external_blooms=True)
