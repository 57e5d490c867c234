"""Checking: whole sidecars of their files have no findings, and each kind of trouble has one that names it."""

from __future__ import annotations

import io
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from windrow.parquet.footer import ParquetFooter, read_footer
from windrow.sidecar import layout
from windrow.sidecar.check import check_against, check_bytes
from windrow.sidecar.convert import Source, convert
from windrow.sidecar.reader import Sidecar

DATA = Path(__file__).parents[1] / "data" / "golden"
SIDECARS = [*sorted((DATA / "pm").glob("*.pm")), *sorted((DATA / "parquet").glob("*.pm"))]
PARQUET = sorted((DATA / "parquet").glob("*.parquet"))
SIMPLE = (DATA / "pm" / "a_simple_3col_2rg.pm").read_bytes()
IN_TIME = (DATA / "pm" / "f_sorting_is_dts_asc.pm").read_bytes()


def problems(data: bytes) -> str:
    return "; ".join(f"{finding.where}: {finding.problem}" for finding in check_bytes(data))


def patched(offset: int, change: bytes, data: bytes = SIMPLE) -> bytes:
    body = data[8:offset] + change + data[offset + len(change) : -8]
    return data[:8] + body + layout.U32.pack(zlib.crc32(body)) + data[-4:]


@pytest.mark.parametrize("path", SIDECARS, ids=lambda path: path.stem)
def test_whole_files_have_no_findings(path: Path) -> None:
    assert check_bytes(path.read_bytes()) == []


@pytest.mark.parametrize("path", PARQUET, ids=lambda path: path.stem)
def test_a_sidecar_agrees_with_its_file(path: Path) -> None:
    data = path.read_bytes()
    sidecar = Sidecar.open(path.with_suffix(".pm"))
    assert check_against(sidecar, read_footer(data, name="t"), len(data)) == []


class TestBytes:
    """What can be wrong inside of a sidecar."""

    def test_it_is_no_sidecar(self) -> None:
        assert "header" in problems(b"PAR1")

    def test_the_crc(self) -> None:
        data = bytearray(SIMPLE)
        data[200] ^= 1
        assert "CHECKSUM" in problems(bytes(data))

    def test_the_crc_of_an_older_snapshot(self) -> None:
        data = bytearray((DATA / "pm" / "e_update_chain_3.step2.pm").read_bytes())
        data[388] ^= 1
        body = bytes(data[8:-8])
        data[-8:-4] = layout.U32.pack(zlib.crc32(body))
        assert [finding.where for finding in check_bytes(bytes(data))] == [
            "snapshot of 656 bytes",
            "snapshot of 396 bytes",
        ]

    @pytest.mark.parametrize(
        ("offset", "change", "says"),
        [
            (152, b"\x09", "row group 0, column 0: CODEC is 9"),
            (153, b"\x40", "row group 0, column 0: ENCODINGS is 64"),
            (155, b"\x0f", "MIN_STAT is"),
            (156, b"\x01", "RESERVED is 1"),
            (184, b"\xff" * 8, "NULL_COUNT is"),
            (60, b"\x08", "PHYSICAL_TYPE"),
            (154, b"\x05", "MIN_STAT is"),
            (154, b"\x28", "MAX_STAT is"),
        ],
    )
    def test_a_field_that_cannot_be(self, offset: int, change: bytes, says: str) -> None:
        assert says in problems(patched(offset, change))

    @pytest.mark.parametrize(
        ("offset", "change", "says"),
        [
            (28, b"\x01", "header: RESERVED is 1, it must be 0"),
            (63, b"\x07", "header, column 0: RESERVED is 7, it must be 0"),
            (95, b"\x80", "header, column 1: RESERVED is 128, it must be 0"),
            (48, b"\x20", "header, column 0: FLAGS are 0x20, bits 5 to 31 must be 0"),
            (51, b"\x80", "bits 5 to 31 must be 0"),
            (52, b"\x04", "header, column 0: FIXED_BYTE_LEN is 4 in a column of another physical type"),
        ],
    )
    def test_reserved_parts_of_the_header_are_0(self, offset: int, change: bytes, says: str) -> None:
        assert says in problems(patched(offset, change))

    @pytest.mark.parametrize(("kind", "physical"), [(6, 2), (10, 5), (26, 6), (8, 3), (-1, 2)])
    def test_the_designated_timestamp_is_a_timestamp(self, kind: int, physical: int) -> None:
        data = patched(44, layout.I32.pack(kind), IN_TIME)
        data = patched(60, bytes([physical]), data)
        assert f"designated timestamp has type {kind} and physical type {physical}" in problems(data)

    @pytest.mark.parametrize("kind", [8, 8 | 1 << 17, 8 | 1 << 18, 7])
    def test_timestamps_of_all_units_can_be_designated(self, kind: int) -> None:
        assert problems(patched(44, layout.I32.pack(kind), IN_TIME)) == ""

    def test_the_designated_timestamp_is_never_null(self) -> None:
        sidecar = Sidecar.of(IN_TIME)
        first = int(sidecar.entries[0]) * 8 + 8
        assert sidecar.chunks["null_count"][0, 0] == 0
        flags = int(sidecar.chunks["stat_flags"][0, 0]) | layout.StatFlag.NULL_COUNT_PRESENT
        data = patched(first + 2, bytes([flags]), IN_TIME)
        assert problems(data) == ""
        assert "the designated timestamp is null in 3 rows" in problems(patched(first + 32, b"\x03", data))

    def test_bits_beyond_the_size_of_a_bound_are_0(self) -> None:
        sidecar = Sidecar.of(SIMPLE)
        narrow = np.argwhere((sidecar.chunks["stat_sizes"] & 0xF) == 4)
        group, column = narrow[0].tolist()
        first = int(sidecar.entries[group]) * 8 + 8 + 64 * column
        assert f"row group {group}, column {column}: MIN_STAT is" in problems(patched(first + 53, b"\x01"))

    def test_a_size_without_an_inlined_bound(self) -> None:
        assert "row group 0, column 0: STAT_SIZES is" in problems(patched(154, b"\x00"))

    @pytest.mark.parametrize(
        ("offset", "says"), [(60, "RESERVED of the page record"), (59, "FLAGS of the page record")]
    )
    def test_reserved_parts_of_page_records_are_0(self, offset: int, says: str) -> None:
        file = io.BytesIO()
        pq.write_table(pa.table({"a": [1], "b": [2]}), file)
        data = convert(Source(read_footer(file.getvalue(), name="t"), len(file.getvalue())))
        table = Sidecar.of(data).extensions.tables[layout.SnapshotCode.PAGES]
        assert table is not None
        changed = patched(int(table[0]) * 8 + layout.PAGES_SIZE + offset, b"\x80", data)
        assert f"row group 0, column 1: {says}" in problems(changed)

    def test_a_bloom_filter_outside_of_the_file(self) -> None:
        data = (DATA / "pm" / "b_bloom_inlined.pm").read_bytes()
        slots = Sidecar.of(data).footer_sections.bloom_offset
        assert "bloom filter is not inside" in problems(patched(slots, layout.U32.pack(2**20), data))


def test_bounds_by_column_must_be_those_of_the_chunks() -> None:
    file = io.BytesIO()
    pq.write_table(pa.table({f"c{i}": range(8) for i in range(64)}), file, row_group_size=1)
    sidecar = Sidecar.of(convert(Source(read_footer(file.getvalue(), name="t"), len(file.getvalue()))))
    assert check_bytes(bytes(sidecar.buffer)) == []
    section = sidecar.footer_sections.windrow
    assert section is not None
    (word,) = layout.U32.unpack_from(sidecar.buffer, section[0])
    changed = patched(word * 8 + 5 * 8 * 24 + 8, b"\x77", bytes(sidecar.buffer))
    assert "column 5: the bounds by column" in problems(changed)


class TestAgreement:
    """In what a sidecar can differ from a Parquet file."""

    def file_of(self, **columns: Any) -> tuple[ParquetFooter, int]:
        file = io.BytesIO()
        pq.write_table(pa.table(columns), file, row_group_size=2)
        return read_footer(file.getvalue(), name="t"), len(file.getvalue())

    def findings(self, sidecar_of: dict[str, Any], parquet: dict[str, Any]) -> str:
        footer, other = self.file_of(**sidecar_of)[0], self.file_of(**parquet)[0]
        sidecar = Sidecar.of(convert(Source(footer, 10_000)))
        return "; ".join(f"{finding.where}: {finding.problem}" for finding in check_against(sidecar, other, 10_000))

    def test_another_size(self) -> None:
        footer, size = self.file_of(a=[1])
        (finding,) = check_against(Sidecar.of(convert(Source(footer, size))), footer, size + 1)
        assert f"{size} bytes, this one has {size + 1}" in finding.problem

    def test_another_number_of_columns(self) -> None:
        assert "COLUMN_COUNT: is 1, the Parquet file has 2" in self.findings({"a": [1]}, {"a": [1], "b": [1]})

    def test_another_name(self) -> None:
        assert "column 0: is named 'a', in the Parquet file 'b'" in self.findings({"a": [1]}, {"b": [1]})

    def test_another_schema_or_writer(self) -> None:
        other = {"a": pa.array([1], pa.timestamp("us"))}
        assert "SCHEMA: is not the one" in self.findings({"a": [1]}, other)
        footer, size = self.file_of(a=[1])
        sidecar = Sidecar.of(convert(Source(replace(footer, created_by="someone else"), size)))
        assert [finding.where for finding in check_against(sidecar, footer, size)] == ["CREATED_BY"]

    def test_another_type(self) -> None:
        assert "column 0: physical_type is 2, in the Parquet file 5" in self.findings({"a": [1]}, {"a": [1.5]})

    def test_another_number_of_row_groups(self) -> None:
        assert "ROW_GROUP_COUNT: is 1, the Parquet file has 2" in self.findings({"a": [1]}, {"a": [1, 2, 3]})

    def test_other_row_counts_and_places(self) -> None:
        found = self.findings({"a": [1, 2, 3]}, {"a": [1, 2, 3, 4]})
        assert "row group 1: NUM_ROWS is 1, in the Parquet file 2" in found
        assert "num_values" in found

    def test_other_bounds(self) -> None:
        assert "row group 0, column 0: min is" in self.findings({"a": [1]}, {"a": [2]})
        assert "row group 0, column 0: max is" in self.findings({"a": ["b" * 20]}, {"a": ["c" * 20]})
        assert "null_count is" in self.findings({"a": [1, 2]}, {"a": [1, None]})

    def test_bounds_that_are_not_numbers_agree_with_themselves(self) -> None:
        footer, size = self.file_of(a=[float("nan"), 1.0])
        assert check_against(Sidecar.of(convert(Source(footer, size))), footer, size) == []
