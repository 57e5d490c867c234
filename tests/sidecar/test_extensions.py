"""Our own sections: what a footer says and a chunk record cannot hold, passed over by others, safe when hostile."""

from __future__ import annotations

import io
import zlib
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windrow.errors import Damaged, Incompatible, NotFound
from windrow.parquet.footer import read_footer
from windrow.sidecar import layout, writer
from windrow.sidecar.blocks import RowGroups
from windrow.sidecar.convert import Source, convert
from windrow.sidecar.extensions import encode_entries, schema_section
from windrow.sidecar.granules import GranuleIndex, first_keys
from windrow.sidecar.inspect import describe
from windrow.sidecar.layout import Feature, FooterFeature, Order, PageFlag, SchemaCode, SnapshotCode
from windrow.sidecar.reader import Sidecar

TABLE = pa.table({"a": [1, 2, 3, 4], "s": ["x", "y", None, "z"]}, metadata={"note": "kept", "empty": ""})


def source_of(table: pa.Table = TABLE, **more: Any) -> Source:
    file = io.BytesIO()
    pq.write_table(table, file, row_group_size=2, write_page_index=True, bloom_filter_options={"a": True})
    data = file.getvalue()
    return Source(
        read_footer(data, name="t"), len(data), "t", lambda offset, length: data[offset : offset + length], **more
    )


@pytest.fixture(scope="module")
def source() -> Source:
    index = GranuleIndex(
        np.array([1, 1], "<u4"),
        np.array([[4, 50], [100, 150]], "<u8"),
        np.array([[46, 50], [50, 60]], "<u4"),
        (first_keys(0, [b"\1\0\0\0\0\0\0\0", None]),),
    )
    return source_of(etag='"abc"', granules=[index, None])


@pytest.fixture(scope="module")
def sidecar(source: Source) -> Sidecar:
    return Sidecar.of(convert(source))


class TestContents:
    """What goes in comes out again."""

    def test_the_schema_as_it_was_written(self, source: Source, sidecar: Sidecar) -> None:
        extensions = sidecar.extensions
        assert extensions.schema_bytes == source.footer.schema_bytes
        assert extensions.column_orders_bytes == source.footer.column_orders_bytes
        assert extensions.schema is not None
        assert extensions.schema.schema == source.footer.schema
        assert extensions.schema.leaves == source.footer.leaves
        assert extensions.schema.column_orders == source.footer.column_orders

    def test_how_columns_compare(self, sidecar: Sidecar) -> None:
        assert sidecar.extensions.orders is not None
        assert sidecar.extensions.orders.tolist() == [Order.SIGNED, Order.BYTES]

    def test_the_file_and_its_writer(self, source: Source, sidecar: Sidecar) -> None:
        extensions = sidecar.extensions
        assert (extensions.created_by, extensions.version) == (source.footer.created_by, source.footer.version)
        assert extensions.key_value == source.footer.key_value
        assert extensions.key_value is not None
        assert (extensions.key_value["note"], extensions.key_value["empty"]) == ("kept", "")

    def test_pages_of_a_column_and_of_a_row_group(self, source: Source, sidecar: Sidecar) -> None:
        found = sidecar.extensions.pages(1)
        assert found is not None
        records, present = found
        assert present.all()
        stored = source.footer.chunks[:, 1]
        assert records["data_page_offset"].tolist() == stored["data_page_offset"].tolist()
        assert records["uncompressed_size"].tolist() == stored["total_uncompressed_size"].tolist()
        for part in ("offset_index", "column_index", "bloom"):
            assert records[f"{part}_offset"].tolist() == stored[f"{part}_offset"].tolist()
            assert records[f"{part}_length"].tolist() == stored[f"{part}_length"].tolist()
        assert (records["flags"] & PageFlag.HAS_DICTIONARY_OFFSET).all()
        by_group = sidecar.extensions.page_records(1)
        assert by_group is not None
        assert by_group[1] == records[1]

    def test_granules(self, source: Source, sidecar: Sidecar) -> None:
        index, none = sidecar.extensions.granules(0), sidecar.extensions.granules(1)
        assert none is None
        assert index is not None
        assert index.page_offsets.tolist() == [[4, 50], [100, 150]]
        assert index.page_sizes.tolist() == [[46, 50], [50, 60]]
        assert index.first_rows.tolist() == [0, 1]
        assert index.keys[0].values() == [b"\1\0\0\0\0\0\0\0", None]

    def test_text_that_is_no_utf8_is_kept(self) -> None:
        source = source_of()
        source.footer.key_value["raw"] = b"\xff\xfe".decode(errors="surrogateescape")
        found = Sidecar.of(convert(source)).extensions.key_value
        assert found is not None
        assert found["raw"] == source.footer.key_value["raw"]

    def test_a_key_without_a_value(self) -> None:
        source = source_of()
        source.footer.key_value["bare"] = None
        found = Sidecar.of(convert(source)).extensions.key_value
        assert found is not None
        assert found["bare"] is None


class TestIdentity:
    """A changed file invalidates its sidecar."""

    def test_size_and_etag_must_fit(self, source: Source, sidecar: Sidecar) -> None:
        size = source.parquet_size
        assert sidecar.describes(size, '"abc"')
        assert sidecar.describes(size)
        assert not sidecar.describes(size, '"other"')
        assert not sidecar.describes(size + 1, '"abc"')

    def test_without_an_etag_the_size_decides(self) -> None:
        source = source_of()
        assert Sidecar.of(convert(source)).describes(source.parquet_size, '"any"')


class TestAbsence:
    """A sidecar without our sections still answers what it can."""

    def test_nothing_is_there(self, source: Source) -> None:
        extensions = Sidecar.of(convert(source, extensions=False)).extensions
        assert (extensions.schema_bytes, extensions.schema, extensions.orders) == (None, None, None)
        assert (extensions.etag, extensions.created_by, extensions.version, extensions.key_value) == (None,) * 4
        assert (extensions.pages(0), extensions.page_records(0), extensions.granules(0)) == (None,) * 3

    def test_an_update_by_another_writer_keeps_the_schema_and_drops_the_snapshot(self, sidecar: Sidecar) -> None:
        none = RowGroups(np.zeros(0, "<u8"), np.zeros((0, 2), layout.CHUNK))
        change = writer.update(sidecar, none, [], writer.SnapshotFields(9_000, 100))
        after = Sidecar.of(layout.U64.pack(change.size) + bytes(sidecar.buffer)[8:] + change.data)
        assert after.extensions.schema_bytes == sidecar.extensions.schema_bytes
        assert (after.extensions.created_by, after.extensions.pages(0)) == (None, None)
        assert Sidecar.of(after.buffer, parquet_size=sidecar.parquet_size).extensions.created_by is not None

    def test_behind_an_unknown_header_section_ours_is_not_looked_for(self, sidecar: Sidecar) -> None:
        data = bytearray(sidecar.buffer)
        data[8] |= 1 << 5
        marked = Sidecar.of(with_crc(data))
        assert marked.extensions.schema_bytes is None
        assert marked.order(0) == Order.SIGN_UNKNOWN
        assert marked.extensions.created_by == sidecar.extensions.created_by

    def test_unknown_entries_are_passed_over(self) -> None:
        section = schema_section(["a"], [Order.SIGNED], b"schema", None) + encode_entries({99: b"later"})
        columns = writer.Columns(["a"], np.zeros(1, layout.DESCRIPTOR), windrow=section)
        groups = RowGroups(np.zeros(0, "<u8"), np.zeros((0, 1), layout.CHUNK))
        data = writer.create(
            columns, groups, writer.SnapshotFields(1, 1, windrow={77: b"later", SnapshotCode.ETAG: b"e"})
        )
        assert (Sidecar.of(data).extensions.schema_bytes, Sidecar.of(data).extensions.etag) == (b"schema", "e")


class TestNameHashes:
    """Among many columns one is found by the hash of its name."""

    NAMES = [f"c{i}" for i in range(600)] + ["c7", "é"]

    @pytest.fixture(scope="class")
    @classmethod
    def many(cls) -> bytes:
        columns = writer.Columns(
            cls.NAMES,
            np.zeros(len(cls.NAMES), layout.DESCRIPTOR),
            windrow=schema_section(cls.NAMES, [Order.SIGNED] * len(cls.NAMES), b"", None),
        )
        groups = RowGroups(np.zeros(0, "<u8"), np.zeros((0, len(cls.NAMES)), layout.CHUNK))
        return writer.create(columns, groups, writer.SnapshotFields(1, 1))

    @pytest.mark.parametrize("name", ["c0", "c7", "c599", "é"])
    def test_the_first_column_of_a_name_is_found(self, many: bytes, name: str) -> None:
        sidecar = Sidecar.of(many)
        assert sidecar.column_position(name) == self.NAMES.index(name)
        assert "names" not in vars(sidecar)

    def test_hashes_that_lie_hide_nothing(self, many: bytes) -> None:
        start = (Sidecar.of(many).header_sections.windrow or (0, 0))[0] + len(self.NAMES)
        data = bytearray(many)
        data[start : start + 4 * len(self.NAMES)] = bytes(4 * len(self.NAMES))
        assert Sidecar.of(with_crc(data)).column_position("c599") == 599

    def test_a_name_that_is_not_there(self, many: bytes) -> None:
        with pytest.raises(NotFound):
            Sidecar.of(many).column_position("c600")


class TestBoundsByColumn:
    """In wide files of many row groups the bounds of a column are in one place as well."""

    @pytest.fixture(scope="class")
    @classmethod
    def wide(cls) -> tuple[Source, Sidecar]:
        values = {f"c{i}": [f"{i} and something long {n}" if i % 2 else f"{n}" for n in range(10)] for i in range(64)}
        file = io.BytesIO()
        pq.write_table(pa.table(values), file, row_group_size=1)
        source = Source(read_footer(file.getvalue(), name="t"), len(file.getvalue()))
        return source, Sidecar.of(convert(source))

    def test_they_are_those_of_the_chunks(self, wide: tuple[Source, Sidecar]) -> None:
        source, sidecar = wide
        plain = Sidecar.of(convert(source, extensions=False))
        assert sidecar.bounds_by_column is not None
        assert plain.bounds_by_column is None
        words = sidecar.chunks.copy().view("<u8").reshape(10, 64, 8)
        assert (sidecar.bounds_by_column == words[:, :, layout.BOUND_WORDS].transpose(1, 0, 2)).all()
        for column in (0, 1, 63):
            ours, theirs = sidecar.column(column), plain.column(column)
            assert ours.minimum.values.tolist() == theirs.minimum.values.tolist()
            assert ours.maximum.values.tolist() == theirs.maximum.values.tolist()
            assert ours.minimum.exact.tolist() == theirs.minimum.exact.tolist()
            assert ours.null_count[0].tolist() == theirs.null_count[0].tolist()

    def test_bounds_are_read_without_touching_a_block(self, wide: tuple[Source, Sidecar]) -> None:
        _, sidecar = wide
        data = bytearray(sidecar.buffer)
        first, last = int(sidecar.entries[0]) * 8, int(sidecar.entries[-1]) * 8 + sidecar.header.block_size
        data[first:last] = bytes(last - first)
        blank = Sidecar.of(data, verify=False).column(0)
        assert blank.minimum.values.tolist() == sidecar.column(0).minimum.values.tolist()
        assert blank.minimum.present.all()

    def test_some_row_groups_are_looked_at_alone(self, wide: tuple[Source, Sidecar]) -> None:
        source, sidecar = wide
        chosen = np.array([7, 2])
        for each in (sidecar, Sidecar.of(convert(source, extensions=False))):
            some, everything = each.column(1, chosen), each.column(1)
            assert some.minimum.values.tolist() == everything.minimum.values[chosen].tolist()
            assert some.records.tolist() == everything.records[chosen].tolist()

    def test_an_update_does_without(self, wide: tuple[Source, Sidecar]) -> None:
        _, sidecar = wide
        none = RowGroups(np.zeros(0, "<u8"), np.zeros((0, 64), layout.CHUNK))
        change = writer.update(sidecar, none, [], writer.SnapshotFields(9_000, 100, windrow={}))
        after = Sidecar.of(layout.U64.pack(change.size) + bytes(sidecar.buffer)[8:] + change.data)
        assert after.bounds_by_column is None
        assert after.column(1).minimum.values.tolist() == sidecar.column(1).minimum.values.tolist()

    def test_a_place_outside_of_the_file_is_refused(self, wide: tuple[Source, Sidecar]) -> None:
        _, sidecar = wide
        section = sidecar.footer_sections.windrow
        assert section is not None
        for word in (1, sidecar.footer.offset // 8, 2**32 - 1):
            data = bytearray(sidecar.buffer)
            data[section[0] : section[0] + 4] = layout.U32.pack(word)
            with pytest.raises(Damaged, match="bounds by column"):
                Sidecar.of(with_crc(data))


def test_the_bits_of_both_sections_are_set(sidecar: Sidecar) -> None:
    assert sidecar.header.feature_flags & Feature.WINDROW_SCHEMA
    assert sidecar.footer.feature_flags == FooterFeature.WINDROW_SNAPSHOT


def with_crc(data: bytearray) -> bytes:
    return bytes(data[:-8] + layout.U32.pack(zlib.crc32(data[8:-8])) + data[-4:])


class TestHostile:
    """Sections that lie are refused."""

    @pytest.mark.parametrize(
        ("entries", "says"),
        [
            ({SnapshotCode.VERSION: b"12"}, "VERSION"),
            ({SnapshotCode.KEY_VALUE: b"\xff" * 4}, "KEY_VALUE"),
            ({SnapshotCode.KEY_VALUE: b"\xff\xff\xff\x7f" * 2}, "KEY_VALUE"),
            ({SnapshotCode.PAGES: b"\1\0\0"}, "PAGES"),
            ({SnapshotCode.PAGES: layout.U32.pack(2**32 - 1)}, "PAGES"),
            ({SnapshotCode.PAGES: layout.U32.pack(1)}, "PAGES"),
            ({SnapshotCode.GRANULES: layout.U32.pack(2**31)}, "GRANULES"),
            ({SnapshotCode.GRANULES: layout.U32.pack(9)}, "granule index"),
        ],
    )
    def test_a_snapshot_entry(self, entries: dict[int, bytes], says: str) -> None:
        chunks = np.zeros((1, 1), layout.CHUNK)
        chunks["num_values"] = 2**60
        columns = writer.Columns(["a"], np.zeros(1, layout.DESCRIPTOR))
        data = writer.create(
            columns, RowGroups(np.full(1, 2**60, "<u8"), chunks), writer.SnapshotFields(1, 1, windrow=entries)
        )
        with pytest.raises(Damaged, match=says):
            describe(Sidecar.of(data))

    def test_an_order_that_nobody_knows(self) -> None:
        columns = writer.Columns(["a"], np.zeros(1, layout.DESCRIPTOR), windrow=b"\x63\0\0\0\0")
        data = writer.create(
            columns, RowGroups(np.zeros(0, "<u8"), np.zeros((0, 1), layout.CHUNK)), writer.SnapshotFields(1, 1)
        )
        with pytest.raises(Damaged, match="order of column 0"):
            Sidecar.of(data)

    def test_a_section_shorter_than_one_order_per_column(self) -> None:
        columns = writer.Columns([], np.zeros(0, layout.DESCRIPTOR), windrow=b"")
        groups = RowGroups(np.zeros(0, "<u8"), np.zeros((0, 0), layout.CHUNK))
        assert Sidecar.of(writer.create(columns, groups, writer.SnapshotFields(1, 1))).extensions.schema_bytes is None
        short = writer.Columns(["a"] * 60, np.zeros(60, layout.DESCRIPTOR), windrow=b"")
        wide = RowGroups(np.zeros(0, "<u8"), np.zeros((0, 60), layout.CHUNK))
        with pytest.raises(Damaged, match="WINDROW_SCHEMA"):
            Sidecar.of(writer.create(short, wide, writer.SnapshotFields(1, 1)))

    @pytest.mark.parametrize("cut", [1, 5, 9])
    def test_an_entry_that_is_cut_off(self, cut: int) -> None:
        section = schema_section(["a"], [Order.SIGNED], b"0123456789", None)[:-cut]
        columns = writer.Columns(["a"], np.zeros(1, layout.DESCRIPTOR), windrow=section)
        data = writer.create(
            columns, RowGroups(np.zeros(0, "<u8"), np.zeros((0, 1), layout.CHUNK)), writer.SnapshotFields(1, 1)
        )
        with pytest.raises(Damaged, match="cut off"):
            Sidecar.of(data)

    def test_a_schema_that_is_none(self) -> None:
        section = encode_entries({SchemaCode.SCHEMA: b"\x1c\xff\xff"})
        columns = writer.Columns([], np.zeros(0, layout.DESCRIPTOR), windrow=section)
        groups = RowGroups(np.zeros(0, "<u8"), np.zeros((0, 0), layout.CHUNK))
        with pytest.raises(Damaged):
            _ = Sidecar.of(writer.create(columns, groups, writer.SnapshotFields(1, 1))).extensions.schema

    def test_every_flipped_bit_is_refused(self, sidecar: Sidecar) -> None:
        data = bytearray(sidecar.buffer)
        for position in range(len(data)):
            for bit in range(8):
                data[position] ^= 1 << bit
                with pytest.raises((Damaged, Incompatible)):
                    Sidecar.of(bytes(data))
                data[position] ^= 1 << bit

    @settings(max_examples=300, deadline=None)
    @given(
        changes=st.lists(st.tuples(st.integers(0, 2**16), st.integers(0, 255)), min_size=1, max_size=4),
        verify=st.booleans(),
    )
    def test_mutations_are_refused_or_read(
        self, changes: list[tuple[int, int]], verify: bool, sidecar: Sidecar
    ) -> None:
        data = bytearray(sidecar.buffer)
        for place, value in changes:
            data[place % len(data)] = value
        try:
            mutated = Sidecar.of(with_crc(data), verify=verify)
            _ = describe(mutated), mutated.extensions.schema
        except (Damaged, Incompatible):
            return
