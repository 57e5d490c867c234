"""Reading: every golden file back to its description, any snapshot of a chain, and only what is asked for."""

from __future__ import annotations

import io
import json
import mmap
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from windrow.errors import Damaged, InvalidInput, NotFound, StorageError
from windrow.sidecar import layout, writer
from windrow.sidecar.blocks import RowGroups
from windrow.sidecar.build import build_sidecar
from windrow.sidecar.content import READ_WHOLE
from windrow.sidecar.inspect import describe
from windrow.sidecar.reader import Sidecar

GOLDEN = Path(__file__).parents[1] / "data" / "golden" / "pm"
CASES = [json.loads(path.read_text()) for path in sorted(GOLDEN.glob("*.json"))]
FILES = [(case, number) for case in CASES for number in range(len(case["files"]))]
CHAIN = GOLDEN / "e_update_chain_3.step2.pm"
DEAD_FOOTER = GOLDEN / "e4_update_dead_footer_tail.step2.pm"


def same(found: dict[str, Any], wanted: dict[str, Any]) -> dict[str, Any]:
    """The part of what was found that the wanted description speaks about."""
    return {key: found[key] for key in wanted}


@pytest.mark.parametrize(
    ("case", "number"), FILES, ids=lambda value: value["case"] if isinstance(value, dict) else value
)
class TestGolden:
    """QuestDB's files say what was put into them."""

    def test_the_layout_is_found(self, case: dict[str, Any], number: int) -> None:
        sidecar, wanted = Sidecar.open(GOLDEN / case["files"][number]), case["layout"][number]
        footer = sidecar.footer
        assert {
            "file_size": sidecar.header.committed_size,
            "footer_offset": footer.offset,
            "footer_length": footer.length,
            "crc32": sidecar.checksums()[0],
            "prev_parquet_meta_file_size": footer.previous_size,
            "header_feature_flags": sidecar.header.feature_flags,
            "footer_feature_flags": footer.feature_flags,
            "row_group_block_offsets": (sidecar.entries * 8).tolist(),
            "bloom_columns": sidecar.bloom_columns.tolist(),
            "parquet_file_size": sidecar.parquet_size,
        } == wanted

    def test_the_columns_are_found(self, case: dict[str, Any], number: int) -> None:
        sidecar, wanted = Sidecar.open(GOLDEN / case["files"][number]), case["create"]
        found = describe(sidecar)
        assert [same(f, w) for f, w in zip(found["columns"], wanted["columns"], strict=True)] == wanted["columns"]
        for field in ("designated_timestamp", "sorting_columns", "squash_tracker", "bloom_external"):
            assert found[field] == wanted[field]

    def test_the_first_snapshot_has_all_chunks_that_were_written(self, case: dict[str, Any], number: int) -> None:
        wanted = case["create"]
        *_, first = describe(Sidecar.open(GOLDEN / case["files"][number]))["snapshots"]
        assert [group["num_rows"] for group in first["row_groups"]] == [
            group["num_rows"] for group in wanted["row_groups"]
        ]
        for found, written in zip(first["row_groups"], wanted["row_groups"], strict=True):
            for chunk, expected in zip(found["chunks"], written["chunks"], strict=True):
                bounds = [chunk[side] and same(chunk[side], {"hex": 0, "exact": 0}) for side in ("min", "max")]
                assert [expected["min"], expected["max"]] == bounds
                rest = {key: value for key, value in expected.items() if key not in ("min", "max")}
                assert same(chunk, rest) == rest
        for field in ("seq_txn", "scratchpad", "unused_bytes"):
            assert first[field] == wanted[field]


class TestSnapshots:
    """A reader sees the latest snapshot, or the one of the Parquet file that it was told of."""

    @pytest.mark.parametrize(("parquet_size", "size", "groups"), [(70908, 1116, 3), (30608, 656, 2), (13408, 396, 1)])
    def test_the_chain_leads_to_every_snapshot(self, parquet_size: int, size: int, groups: int) -> None:
        sidecar = Sidecar.open(CHAIN, parquet_size=parquet_size)
        assert (sidecar.footer.size, sidecar.row_group_count) == (size, groups)

    def test_without_a_parquet_size_it_is_the_latest(self) -> None:
        assert Sidecar.open(CHAIN).footer.size == 1116

    def test_a_dead_footer_is_not_in_the_chain(self) -> None:
        assert [snapshot.footer.size for snapshot in Sidecar.open(DEAD_FOOTER).snapshots()] == [1112, 396]
        with pytest.raises(NotFound, match="33941 bytes.*stale"):
            Sidecar.open(DEAD_FOOTER, parquet_size=33941)

    def test_a_reader_of_an_older_mapping_still_finds_its_snapshot(self) -> None:
        data = CHAIN.read_bytes()
        older = Sidecar.of(layout.U64.pack(656) + data[8:], parquet_size=13408)
        assert older.footer.size == 396

    def test_bytes_after_the_committed_size_are_not_looked_at(self) -> None:
        assert Sidecar.of(CHAIN.read_bytes() + b"\xff" * 100).footer.size == 1116

    def test_old_snapshots_keep_the_blocks_that_newer_ones_replaced(self) -> None:
        rows = [snapshot.row_counts.tolist() for snapshot in Sidecar.open(CHAIN).snapshots()]
        assert rows == [[1100, 200, 50], [1000, 200], [1000]]

    def test_it_describes_a_file_of_its_size(self) -> None:
        sidecar = Sidecar.open(CHAIN)
        assert sidecar.describes(70908)
        assert sidecar.describes(70908, "unknown to the sidecar")
        assert not sidecar.describes(70907)


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory) -> Path:
    count = 400
    descriptors = np.zeros(count, layout.DESCRIPTOR)
    descriptors["physical_type"], descriptors["type"] = 2, 8
    chunks = np.zeros((5, count), layout.CHUNK)
    chunks["stat_flags"], chunks["stat_sizes"] = 0x3F, 0x88
    chunks["min_stat"] = np.arange(5 * count).reshape(5, count)
    chunks["max_stat"] = chunks["min_stat"] + np.uint64(7)
    columns = writer.Columns([f"column_{i}" for i in range(count)], descriptors)
    path = tmp_path_factory.mktemp("wide") / "_wide.pm"
    path.write_bytes(writer.create(columns, RowGroups(np.full(5, 10, "<u8"), chunks), writer.SnapshotFields(1, 1)))
    return path


class TestOpening:
    """Small files are read, large ones are mapped; both are the same sidecar."""

    def test_a_large_file_is_mapped(self, wide: Path) -> None:
        assert wide.stat().st_size > READ_WHOLE
        sidecar = Sidecar.open(wide)
        assert isinstance(sidecar.buffer, mmap.mmap)
        assert sidecar.column("column_123").maximum.values.tolist() == [130, 530, 930, 1330, 1730]

    def test_all_chunks_are_one_view_of_the_mapping(self, wide: Path) -> None:
        chunks = Sidecar.open(wide).chunks
        assert chunks.shape == (5, 400)
        assert not chunks.flags.owndata
        assert chunks["min_stat"][3, 123] == 1323

    @pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
    def test_bytes_of_any_kind_will_do(self, wide: Path, kind: Any) -> None:
        sidecar = Sidecar.of(kind(wide.read_bytes()))
        assert sidecar.column("column_7").minimum.values.tolist() == [7, 407, 807, 1207, 1607]

    def test_a_mapping_never_goes_past_the_file(self, wide: Path, tmp_path: Path) -> None:
        cut = tmp_path / "_cut.pm"
        cut.write_bytes(wide.read_bytes()[:-1])
        with pytest.raises(Damaged, match="PARQUET_META_FILE_SIZE"):
            Sidecar.open(cut)

    def test_without_verifying_a_wrong_crc_is_not_seen_until_asked_for(self, wide: Path) -> None:
        data = bytearray(wide.read_bytes())
        data[-8] ^= 1
        sidecar = Sidecar.of(data, verify=False)
        assert sidecar.row_group_count == 5
        with pytest.raises(Damaged, match="CHECKSUM"):
            sidecar.verify()

    def test_a_file_that_is_not_there(self, tmp_path: Path) -> None:
        with pytest.raises(NotFound, match=r"_none\.pm"):
            Sidecar.open(tmp_path / "_none.pm")

    def test_a_folder_is_no_sidecar(self, tmp_path: Path) -> None:
        with pytest.raises(StorageError, match="cannot be read"):
            Sidecar.open(tmp_path)


class TestColumns:
    """Columns are found by position or by name, and their bounds are arrays over the row groups."""

    def test_a_name_is_found_without_making_all_names(self) -> None:
        buffer = io.BytesIO()
        pq.write_table(pa.table({name: [1] for name in ("alpha", "beta", "betamax", "ma", "x")}), buffer)
        data = buffer.getvalue()
        sidecar = Sidecar.of(build_sidecar(lambda start, length: data[start : start + length], len(data), name="five"))
        assert [sidecar.column_position(name) for name in ("betamax", "beta", "x", "ma", "alpha")] == [2, 1, 4, 3, 0]
        assert "names" not in vars(sidecar)

    def test_columns_of_one_name_are_all_found(self, make: SimpleNamespace) -> None:
        sidecar = Sidecar.of(make.create(named("st", "t", "st", "s")))
        assert sidecar.column_positions("st") == [0, 2]
        assert sidecar.column_positions("nothing") == []

    @pytest.mark.parametrize(
        "names", [("aaaa", "aaa", "aa", "a"), ("", "b", "", "ab"), ("é", "日本", "e"), ("st", "st", "t")]
    )
    def test_every_name_leads_to_its_first_column(self, names: tuple[str, ...], make: SimpleNamespace) -> None:
        data = make.create(named(*names))
        for name in names:
            sidecar = Sidecar.of(data)
            assert sidecar.column_position(name) == names.index(name)
            assert sidecar.names == names

    @pytest.mark.parametrize("absent", ["alph", "lpha", "alphabeta", "gamma", ""])
    def test_a_name_that_is_not_there(self, absent: str, make: SimpleNamespace) -> None:
        with pytest.raises(NotFound, match="no column"):
            Sidecar.of(make.create(named("alpha", "beta"))).column(absent)

    @pytest.mark.parametrize("position", [-1, 2])
    def test_a_position_that_is_not_there(self, position: int, make: SimpleNamespace) -> None:
        with pytest.raises(InvalidInput, match="there are 2"):
            Sidecar.of(make.create(named("alpha", "beta"))).column(position)

    @pytest.mark.parametrize(
        ("physical_type", "raw", "value"),
        [
            (0, "01", 1),
            (1, "fbffffff", -5),
            (2, "fbffffffffffffff", -5),
            (4, "0000c03f", 1.5),
            (5, "000000000000f83f", 1.5),
            (6, "61620063", b"ab\0c"),
            (6, "61" * 300, b"a" * 300),
            (7, "018f", b"\x01\x8f"),
            (3, "00" * 11 + "01", b"\0" * 11 + b"\x01"),
        ],
    )
    def test_a_bound_is_a_value_of_the_physical_type(
        self, physical_type: int, raw: str, value: Any, make: SimpleNamespace
    ) -> None:
        column = Sidecar.of(make.create(bounded(physical_type, raw, None))).column(0)
        assert column.minimum.values[0] == value
        assert (column.minimum.present.tolist(), column.maximum.present.tolist()) == ([True], [False])

    @pytest.mark.parametrize(("physical_type", "raw"), [(2, "01000000"), (1, "0100"), (0, "0000"), (5, "00" * 9)])
    def test_a_bound_of_another_width_than_its_type_counts_for_nothing(
        self, physical_type: int, raw: str, make: SimpleNamespace
    ) -> None:
        column = Sidecar.of(make.create(bounded(physical_type, raw, raw))).column(0)
        assert not column.minimum.present.any()
        assert not column.maximum.present.any()

    @pytest.mark.parametrize(
        ("low", "high", "usable"),
        [(1, 5, (True, True)), (-5, 7, (True, True)), (-5, -2, (False, False)), (3, -2, (False, False))],
    )
    def test_where_the_sign_is_unknown_bounds_count_while_both_readings_agree(
        self, low: int, high: int, usable: tuple[bool, bool], make: SimpleNamespace
    ) -> None:
        raw = [value.to_bytes(4, "little", signed=True).hex() for value in (low, high)]
        described = bounded(1, *raw)
        described["columns"][0]["type"] = 5
        column = Sidecar.of(make.create(described)).column(0)
        assert (column.minimum.present[0], column.maximum.present[0]) == usable
        stored = column
        assert (stored.stored_minimum.values[0], stored.stored_maximum.values[0]) == (low, high)

    def test_nulls_distinct_values_and_exactness(self) -> None:
        column = Sidecar.open(GOLDEN / "b2_bloom_inlined_ool_interleaved.pm").column("sym")
        count, known = column.distinct_count
        assert (count.tolist(), known.tolist()) == ([5, 5], [True, True])
        assert column.null_count[0].tolist() == [7, 7]
        assert not column.all_null.any()
        assert column.minimum.exact.tolist() == [True, True]
        assert column.maximum.exact.tolist() == [False, True]

    def test_a_column_of_nulls_alone_is_told(self) -> None:
        sidecar = Sidecar.open(GOLDEN / "d_ool_stats.pm")
        assert [bool(sidecar.column(i).all_null[0]) for i in range(7)] == [False] * 6 + [True]

    def test_a_reference_past_the_blocks_is_no_bound(self, make: SimpleNamespace) -> None:
        groups = make.groups(bounded(6, "61" * 20, None)["row_groups"], 1)
        groups.chunks["min_stat"] = 1 << 40 | 20
        plain = RowGroups(groups.rows, groups.chunks)
        data = writer.create(make.columns(bounded(6, None, None)), plain, writer.SnapshotFields(1, 1))
        assert not Sidecar.of(data).column(0).minimum.present.any()


def test_chunks_of_unevenly_spaced_blocks_are_gathered() -> None:
    sidecar = Sidecar.open(CHAIN)
    assert len(set(np.diff(sidecar.entries))) > 1
    assert sidecar.chunks["num_values"].tolist() == [[1100] * 3, [200] * 3, [50] * 3]
    assert (sidecar.chunks[:, 1] == sidecar.column(1).records).all()


def test_blooms_of_places_that_are_not_there(make: SimpleNamespace) -> None:
    sidecar = Sidecar.open(GOLDEN / "b_bloom_inlined.pm")
    assert sidecar.bloom(0, 1) is None
    with pytest.raises(InvalidInput, match="no row group 2"):
        sidecar.bloom(2, 0)


def named(*names: str) -> dict[str, Any]:
    described = bounded(2, None, None)
    described["columns"] = [{**described["columns"][0], "name": name} for name in names]
    described["row_groups"] = [{"num_rows": 1, "chunks": described["row_groups"][0]["chunks"] * len(names)}]
    return described


def bounded(physical_type: int, low: str | None, high: str | None) -> dict[str, Any]:
    """One column and one chunk with these bounds."""
    column = dict.fromkeys(("id", "flags", "fixed_byte_len", "max_rep_level", "max_def_level"), 0)
    numbers = ("codec", "encodings", "num_values", "byte_range_start", "total_compressed", "null_count")
    chunk = dict.fromkeys(numbers, 0) | dict.fromkeys(("distinct_count", "bloom_hex", "bloom_external"))
    low_bound, high_bound = (raw and {"hex": raw, "exact": True} for raw in (low, high))
    return {
        "columns": [{**column, "name": "c", "type": 8, "physical_type": physical_type}],
        "row_groups": [{"num_rows": 1, "chunks": [{**chunk, "min": low_bound, "max": high_bound}]}],
        "designated_timestamp": -1,
        "sorting_columns": [],
        "squash_tracker": -1,
        "bloom_columns": None,
        "bloom_external": False,
        "parquet_footer_offset": 1,
        "parquet_footer_length": 1,
        "unused_bytes": 0,
        "seq_txn": -1,
        "scratchpad": [],
    }
