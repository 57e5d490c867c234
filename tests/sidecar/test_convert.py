"""Converting: byte for byte what QuestDB's converter gives for the golden files, and no good file that is refused."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.sidecar.whole_footers import convert_update

from windrow.errors import Damaged, Incompatible, InvalidInput
from windrow.parquet import chunk as parquet
from windrow.parquet.codecs import Codec
from windrow.parquet.footer import ParquetFooter, SortingColumn, read_footer
from windrow.sidecar.convert import Source, convert
from windrow.sidecar.layout import ColumnFlag, Feature, Order
from windrow.sidecar.reader import Sidecar

DATA = Path(__file__).parents[1] / "data"
GOLDEN = DATA / "golden" / "parquet"
CASES = json.loads((GOLDEN / "index.json").read_text())
FOREIGN = [path for path in sorted((DATA / "parquet-testing").glob("*.parquet")) if path.stem != "PARQUET-1481"]


def source_of(data: bytes, name: str = "test", **more: Any) -> Source:
    return Source(
        read_footer(data, name=name), len(data), name, lambda offset, length: data[offset : offset + length], **more
    )


def written(table: pa.Table, **options: Any) -> bytes:
    file = io.BytesIO()
    pq.write_table(table, file, **options)
    return file.getvalue()


def changed(source: Source, **fields: Any) -> Source:
    """The same file if its footer said something else."""
    return replace(source, footer=replace(source.footer, **fields))


@pytest.mark.parametrize("case", CASES)
def test_a_golden_parquet_file_gives_its_golden_sidecar(case: str) -> None:
    source = source_of((GOLDEN / case).with_suffix(".parquet").read_bytes(), case)
    assert convert(source, extensions=False) == (GOLDEN / case).read_bytes()


@pytest.mark.parametrize("case", CASES)
def test_our_own_sections_change_nothing_else(case: str) -> None:
    golden, extended = (
        Sidecar.open(GOLDEN / case),
        Sidecar.of(convert(source_of((GOLDEN / case).with_suffix(".parquet").read_bytes()))),
    )
    assert extended.names == golden.names
    assert extended.row_counts.tolist() == golden.row_counts.tolist()
    assert extended.sorting == golden.sorting
    for field in set(golden.chunks.dtype.names or ()) - {"min_stat", "max_stat"}:
        assert (extended.chunks[field] == golden.chunks[field]).all()
    for column in range(golden.column_count):
        ours, theirs = extended.column(column), golden.column(column)
        assert ours.stored_minimum.values.tolist() == theirs.stored_minimum.values.tolist()
        assert ours.stored_maximum.present.tolist() == theirs.stored_maximum.present.tolist()


@pytest.mark.parametrize("path", FOREIGN, ids=lambda path: path.stem)
def test_files_of_many_writers_have_the_bounds_that_their_footers_state(path: Path) -> None:
    source = source_of(path.read_bytes(), path.name)
    sidecar = Sidecar.of(convert(source))
    footer = source.footer
    assert sidecar.row_counts.tolist() == footer.row_group_rows.tolist()
    for column in range(sidecar.column_count):
        chunks = sidecar.column(column)
        for bound, side in ((chunks.stored_minimum, "min"), (chunks.stored_maximum, "max")):
            assert [raw(bound.values[i]) if bound.present[i] else b"" for i in range(len(footer.chunks))] == stated(
                footer, column, side
            )


def raw(value: Any) -> bytes:
    return value if isinstance(value, bytes) else value.tobytes()


def stated(footer: ParquetFooter, column: int, side: str) -> list[bytes]:
    places = zip(
        footer.chunks[f"{side}_offset"][:, column].tolist(),
        footer.chunks[f"{side}_length"][:, column].tolist(),
        strict=True,
    )
    return [footer.metadata[offset : offset + length] for offset, length in places]


class TestStatistics:
    """What a footer states is taken over; what it does not state is unknown."""

    TABLE = pa.table({"s": ["b", None, "a"], "i": [3, 1, 2]})

    def test_counts_and_exactness(self) -> None:
        source = source_of(written(self.TABLE))
        source.footer.chunks["flags"][0, 0] |= parquet.MAX_EXACT_FALSE
        text, number = (Sidecar.of(convert(source)).column(i) for i in range(2))
        assert (text.null_count[0].tolist(), number.null_count[0].tolist()) == ([1], [0])
        assert (text.minimum.exact.tolist(), text.maximum.exact.tolist()) == ([True], [False])
        assert not text.distinct_count[1].any()

    def test_a_distinct_count_is_taken_over(self) -> None:
        source = source_of(written(self.TABLE, row_group_size=2))
        source.footer.chunks["flags"][0, 1] |= parquet.HAS_DISTINCT_COUNT
        source.footer.chunks["distinct_count"][0, 1] = 2
        count, known = Sidecar.of(convert(source)).column(1).distinct_count
        assert (count.tolist(), known.tolist()) == ([2, 0], [True, False])

    def test_a_negative_count_is_unknown(self) -> None:
        source = source_of(written(self.TABLE))
        source.footer.chunks["null_count"][0, 0] = -1
        count, known = Sidecar.of(convert(source)).column(0).null_count
        assert (count.tolist(), known.tolist()) == ([0], [False])

    def test_negative_sizes_are_zero(self) -> None:
        source = source_of(written(self.TABLE))
        for field in ("num_values", "total_compressed_size", "data_page_offset", "dictionary_page_offset"):
            source.footer.chunks[field] = -5
        record = Sidecar.of(convert(source, extensions=False)).chunks[0, 0]
        assert [record[field] for field in ("num_values", "total_compressed", "byte_range_start")] == [0, 0, 0]

    @pytest.mark.parametrize(("length", "kept"), [(65_535, True), (65_536, False)])
    def test_a_bound_beyond_sixty_four_kibibytes_is_left_out(self, length: int, kept: bool) -> None:
        source = source_of(written(self.TABLE))
        metadata = source.footer.metadata
        source.footer.chunks["max_offset"][0, 0], source.footer.chunks["max_length"][0, 0] = len(metadata), length
        longer = replace(changed(source, metadata=metadata + b"x" * length), parquet_size=1_000_000)
        column = Sidecar.of(convert(longer)).column(0)
        assert (column.minimum.present.tolist(), column.maximum.present.tolist()) == ([True], [kept])
        assert column.maximum.values[0] == (b"x" * length if kept else b"")

    def test_encodings_are_those_of_the_data(self) -> None:
        texts, numbers = pa.array(["b", "c", "a"]), pa.array([3.0, 1.0, 2.0])
        table = self.TABLE.append_column("p", numbers).append_column("l", texts)
        table = table.append_column("d", texts).append_column("f", numbers)
        encodings = {
            "i": "DELTA_BINARY_PACKED",
            "p": "PLAIN",
            "l": "DELTA_LENGTH_BYTE_ARRAY",
            "d": "DELTA_BYTE_ARRAY",
            "f": "BYTE_STREAM_SPLIT",
        }
        data = written(table, use_dictionary=["s"], column_encoding=encodings)
        chunks = Sidecar.of(convert(source_of(data))).chunks
        assert chunks["encodings"][0].tolist() == [0b11, 0b100, 0b1, 0b1000, 0b10000, 0b100000]

    @pytest.mark.parametrize("codec", ["NONE", "SNAPPY", "GZIP", "BROTLI", "ZSTD", "LZ4"])
    def test_codecs_keep_their_numbers(self, codec: str) -> None:
        wanted = {"NONE": Codec.UNCOMPRESSED, "LZ4": Codec.LZ4_RAW}.get(codec) or Codec.__members__.get(
            codec, Codec.UNCOMPRESSED
        )
        assert Sidecar.of(convert(source_of(written(self.TABLE, compression=codec)))).chunks["codec"][0, 0] == wanted

    def test_a_dictionary_offset_of_zero_is_kept_as_it_is_and_its_chunk_is_still_found(self) -> None:
        source = source_of((DATA / "parquet-testing" / "dict-page-offset-zero.parquet").read_bytes())
        sidecar = Sidecar.of(convert(source))
        found = sidecar.extensions.pages(0)
        assert found is not None
        assert sidecar.chunks["byte_range_start"][0, 0] == 0
        assert found[0]["data_page_offset"].tolist() == source.footer.chunks["data_page_offset"][:, 0].tolist()


class TestSorting:
    """The order of a file is what all row groups that speak of it agree on."""

    TABLE = pa.table({"t": pa.array([1, 2, 3], pa.timestamp("us")), "v": [1, 2, 3]}).cast(
        pa.schema([pa.field("t", pa.timestamp("us"), nullable=False), pa.field("v", pa.int64())])
    )
    ASCENDING = SortingColumn(0, descending=False, nulls_first=False)

    def sorted_by(self, *groups: tuple[SortingColumn, ...] | None, table: pa.Table = TABLE) -> Sidecar:
        return Sidecar.of(convert(changed(source_of(written(table, row_group_size=1)), row_group_sorting=groups)))

    def test_a_required_timestamp_first_is_the_designated_one(self) -> None:
        sidecar = self.sorted_by(*[(self.ASCENDING,)] * 3)
        assert (sidecar.designated_timestamp, sidecar.sorting) == (0, (0,))
        assert sidecar.header.feature_flags & Feature.SORTING_IS_DTS_ASC

    def test_row_groups_that_say_nothing_are_passed_over(self) -> None:
        assert self.sorted_by((self.ASCENDING,), None, ()).sorting == (0,)

    def test_row_groups_that_disagree_are_not_sorted(self) -> None:
        other = SortingColumn(1, descending=False, nulls_first=False)
        assert self.sorted_by((self.ASCENDING,), (other,), None).sorting == ()

    def test_null_placement_does_not_matter(self) -> None:
        assert self.sorted_by((self.ASCENDING,), (self.ASCENDING._replace(nulls_first=True),), None).sorting == (0,)

    def test_a_descending_column_is_marked_and_not_designated(self) -> None:
        sidecar = self.sorted_by(*[(self.ASCENDING._replace(descending=True),)] * 3)
        assert (sidecar.designated_timestamp, sidecar.sorting) == (None, (0,))
        assert sidecar.descriptors["flags"][0] & ColumnFlag.DESCENDING

    def test_a_timestamp_that_is_not_first_is_not_designated(self) -> None:
        first = SortingColumn(1, descending=False, nulls_first=False)
        sidecar = self.sorted_by(*[(first, self.ASCENDING)] * 3)
        assert (sidecar.designated_timestamp, sidecar.sorting) == (None, (1, 0))

    def test_an_optional_timestamp_is_not_designated(self) -> None:
        optional = self.TABLE.cast(pa.schema([pa.field("t", pa.timestamp("us")), pa.field("v", pa.int64())]))
        assert self.sorted_by(*[(self.ASCENDING,)] * 3, table=optional).designated_timestamp is None

    def test_a_sorting_column_that_is_not_there_is_no_order(self) -> None:
        assert self.sorted_by(*[(SortingColumn(7, descending=False, nulls_first=False),)] * 3).sorting == ()


class TestQuestdbNotes:
    """Files that QuestDB wrote before there were sidecars carry its notes as JSON."""

    TABLE = pa.table({"t": pa.array([1], pa.timestamp("us")), "s": ["a"]})

    def noted(self, **notes: Any) -> Sidecar:
        table = self.TABLE.replace_schema_metadata({"questdb": json.dumps({"version": 1, **notes})})
        return Sidecar.of(convert(source_of(written(table))))

    def test_types_ids_and_flags_come_from_the_notes(self) -> None:
        schema = [{"column_type": 8 | 1 << 17, "id": 3}, {"column_type": 12, "format": 1, "ascii": True}]
        sidecar = self.noted(schema=schema, squash_tracker=4, seq_txn=5, unused_bytes=6)
        assert sidecar.descriptors["type"].tolist() == [131080, 12]
        assert sidecar.descriptors["id"].tolist() == [3, -1]
        assert sidecar.descriptors["flags"][1] & 3 == ColumnFlag.LOCAL_KEY_IS_GLOBAL | ColumnFlag.IS_ASCII
        assert (sidecar.squash_tracker, sidecar.seq_txn, sidecar.footer.unused_bytes) == (4, 5, 0)
        assert (sidecar.designated_timestamp, sidecar.sorting) == (0, (0,))

    def test_flags_are_the_bits_of_the_format(self) -> None:
        descending = 8 | 1 << 17 | 1 << 20
        schema = [{"column_type": descending}, {"column_type": 12, "format": 1, "ascii": True}]
        # Both columns are optional: bit 2.
        assert self.noted(schema=schema).descriptors["flags"].tolist() == [0b10100, 0b00111]

    def test_a_descending_designated_timestamp_is_an_explicit_order(self) -> None:
        sidecar = self.noted(schema=[{"column_type": 8 | 1 << 17 | 1 << 20}, {"column_type": 12}])
        assert (sidecar.designated_timestamp, sidecar.sorting) == (0, (0,))
        assert not sidecar.header.feature_flags & Feature.SORTING_IS_DTS_ASC
        assert sidecar.descriptors["flags"][0] & ColumnFlag.DESCENDING

    def test_an_id_below_zero_counts_as_absent(self) -> None:
        assert self.noted(schema=[{"column_type": 8, "id": -7}, {"column_type": 12}]).descriptors["id"][0] == -1


class TestRefusals:
    """Files that a sidecar cannot describe."""

    SOURCE = source_of(written(pa.table({"a": [1]})))

    def test_an_unknown_codec(self) -> None:
        chunks = self.SOURCE.footer.chunks.copy()
        chunks["codec"] = 8
        with pytest.raises(Incompatible, match="unknown codec 8"):
            convert(changed(self.SOURCE, chunks=chunks))

    def test_chunks_in_other_files(self) -> None:
        chunks = self.SOURCE.footer.chunks.copy()
        chunks["flags"] |= parquet.HAS_FILE_PATH
        with pytest.raises(Incompatible, match="other files"):
            convert(changed(self.SOURCE, chunks=chunks))

    def test_a_file_that_is_shorter_than_its_footer(self) -> None:
        with pytest.raises(InvalidInput, match="cannot end with a footer"):
            convert(replace(self.SOURCE, parquet_size=10))

    def test_notes_for_other_columns(self) -> None:
        notes = json.dumps({"version": 1, "schema": [{"column_type": 5}] * 2})
        with pytest.raises(Damaged, match="2 columns, the file has 1"):
            convert(changed(self.SOURCE, key_value={"questdb": notes}))


class TestBlooms:
    """Filters are taken over where their length is known and the file can be read."""

    def test_without_the_file_there_are_no_filters(self) -> None:
        source = replace(source_of((GOLDEN / "x_bloom.parquet").read_bytes()), read=None)
        assert Sidecar.of(convert(source)).bloom_columns.tolist() == []

    def test_a_filter_of_unknown_length_is_left_out(self) -> None:
        source = source_of((GOLDEN / "x_bloom.parquet").read_bytes())
        source.footer.chunks["bloom_length"][:, 2] = 0
        assert Sidecar.of(convert(source)).bloom_columns.tolist() == [1]

    def test_a_filter_outside_of_the_file_is_damage(self) -> None:
        source = source_of((GOLDEN / "x_bloom.parquet").read_bytes())
        source.footer.chunks["bloom_offset"][0, 1] = source.parquet_size - 20
        with pytest.raises(Damaged):
            convert(source)


class TestUpdates:
    """After a Parquet file grew in place, only what changed is appended."""

    def grown(self, before: bytes, more: int) -> tuple[Source, Source]:
        """The file with fewer row groups, and the same with more."""
        source = source_of(before)
        footer = source.footer
        short = replace(
            footer,
            chunks=footer.chunks[:-more],
            row_group_rows=footer.row_group_rows[:-more],
            row_group_sorting=footer.row_group_sorting[:-more],
            num_rows=int(footer.row_group_rows[:-more].sum()),
        )
        return replace(source, footer=short, parquet_size=source.parquet_size - 100), source

    @pytest.mark.parametrize("extensions", [True, False])
    def test_unchanged_row_groups_are_kept_and_new_ones_appended(self, extensions: bool) -> None:
        data = written(pa.table({"a": range(30), "s": [str(i) * 20 for i in range(30)]}), row_group_size=10)
        before, after = self.grown(data, more=1)
        old = Sidecar.of(convert(before, extensions=extensions))
        change = convert_update(old, after, unused_bytes=7)
        new = Sidecar.of((change.size).to_bytes(8, "little") + bytes(old.buffer)[8:] + change.data)
        assert new.entries[:2].tolist() == old.entries.tolist()
        assert new.row_counts.tolist() == [10, 10, 10]
        assert (new.footer.unused_bytes, new.footer.previous_size) == (7, old.footer.size)
        whole = Sidecar.of(convert(after, extensions=extensions))
        for column in range(2):
            assert new.column(column).maximum.values.tolist() == whole.column(column).maximum.values.tolist()
        assert new.describes(len(data))
        assert (new.extensions.created_by is not None) is extensions
        if extensions:
            assert [len(records) for i in range(3) if (records := new.extensions.page_records(i)) is not None] == [
                2,
                2,
                2,
            ]

    def test_a_moved_row_group_is_written_again(self) -> None:
        source = source_of(written(pa.table({"a": range(30)}), row_group_size=10))
        old = Sidecar.of(convert(source))
        source.footer.chunks["dictionary_page_offset"][1] += 1000
        change = convert_update(old, source, unused_bytes=0)
        new = Sidecar.of((change.size).to_bytes(8, "little") + bytes(old.buffer)[8:] + change.data)
        assert (new.entries == old.entries).tolist() == [True, False, True]

    def test_columns_cannot_change(self) -> None:
        old = Sidecar.of(convert(source_of(written(pa.table({"a": [1]})))))
        for other in (pa.table({"b": [1]}), pa.table({"a": [1.5]}), pa.table({"a": pa.array([1], pa.uint64())})):
            with pytest.raises(InvalidInput, match="columns never change"):
                convert_update(old, source_of(written(other)), unused_bytes=0)


def test_unsigned_columns_compare_unsigned_and_without_our_sections_not_at_all_where_it_matters() -> None:
    high = 2**32 - 1
    source = source_of(written(pa.table({"u": pa.array([5, high], pa.uint32()), "low": pa.array([5, 6], pa.uint32())})))
    known, unknown = Sidecar.of(convert(source)), Sidecar.of(convert(source, extensions=False))
    assert [known.order(0), unknown.order(0)] == [Order.UNSIGNED, Order.SIGN_UNKNOWN]
    assert known.column(0).maximum.values.view(np.uint32).tolist() == [high]
    assert known.column(0).maximum.present.all()
    assert not unknown.column(0).maximum.present.any()
    assert unknown.column(1).maximum.present.all()
