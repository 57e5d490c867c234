"""Writing: byte for byte what QuestDB's own writer gives, in new files and in updates; the impossible is refused."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from windrow.errors import InvalidInput
from windrow.sidecar import layout, writer
from windrow.sidecar.blocks import RowGroups, block_entries
from windrow.sidecar.layout import Feature, FooterFeature
from windrow.sidecar.reader import Sidecar
from windrow.sidecar.stored_bounds import Spans, place_bounds

GOLDEN = Path(__file__).parents[1] / "data" / "golden" / "pm"
CASES = [json.loads(path.read_text()) for path in sorted(GOLDEN.glob("*.json"))]
STEPS = [(case, step) for case in CASES for step in range(len(case["updates"]))]
COLUMN = {
    "id": -1,
    "type": 8,
    "flags": 0,
    "fixed_byte_len": 0,
    "physical_type": 2,
    "max_rep_level": 0,
    "max_def_level": 0,
}
CHUNK = {
    "codec": 6,
    "encodings": 1,
    "num_values": 10,
    "byte_range_start": 4,
    "total_compressed": 100,
    "null_count": 0,
    "distinct_count": None,
    "min": None,
    "max": None,
    "bloom_hex": None,
    "bloom_external": None,
}


def spec(columns: int = 1, groups: int = 1, chunk: dict[str, Any] | None = None, **changes: Any) -> dict[str, Any]:
    """A described sidecar of equal columns and equal row groups."""
    group = {"num_rows": 10, "chunks": [{**CHUNK, **(chunk or {})}] * columns}
    plain = {
        "designated_timestamp": -1,
        "columns": [{**COLUMN, "name": f"c{i}"} for i in range(columns)],
        "sorting_columns": [],
        "squash_tracker": -1,
        "seq_txn": -1,
        "scratchpad": [],
        "bloom_external": False,
        "bloom_columns": None,
        "parquet_footer_offset": 1000,
        "parquet_footer_length": 200,
        "unused_bytes": 0,
        "row_groups": [group] * groups,
    }
    return {**plain, **changes}


def step(anchor: int, base: int | None = None, **changes: Any) -> dict[str, Any]:
    """A described update without changes to row groups."""
    plain = {
        "parse_anchor": anchor,
        "append_base": anchor if base is None else base,
        "replace": [],
        "add": [],
        "parquet_footer_offset": 2000,
        "parquet_footer_length": 200,
        "unused_bytes": 0,
        "seq_txn": None,
        "scratchpad": None,
    }
    return {**plain, **changes}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["case"])
def test_a_new_file_is_the_golden_file(case: dict[str, Any], make: SimpleNamespace) -> None:
    assert make.create(case["create"]) == (GOLDEN / case["files"][0]).read_bytes()


@pytest.mark.parametrize(
    ("case", "number"), STEPS, ids=lambda value: value["case"] if isinstance(value, dict) else value
)
def test_an_update_gives_the_next_golden_file(case: dict[str, Any], number: int, make: SimpleNamespace) -> None:
    before, after = ((GOLDEN / case["files"][number + i]).read_bytes() for i in range(2))
    assert make.update(before, case["updates"][number]) == after


def test_row_groups_without_columns_have_blocks_of_eight_bytes(make: SimpleNamespace) -> None:
    sidecar = Sidecar.of(make.create(spec(columns=0, groups=3)))
    assert np.diff(sidecar.entries).tolist() == [1, 1]
    assert sidecar.row_counts.tolist() == [10, 10, 10]


def test_an_update_without_new_blocks_begins_with_its_footer_wherever_the_file_ends(make: SimpleNamespace) -> None:
    before = make.create(spec(chunk={"min": {"hex": "00" * 9, "exact": True}}))
    assert len(before) % 8
    after = make.update(before, step(len(before)))
    assert Sidecar.of(after).footer.offset == len(before)


class TestSorting:
    """The order by the designated timestamp, ascending, is a flag; every other order is a list."""

    @pytest.mark.parametrize(
        ("timestamp", "sorting", "flags", "implicit"),
        [
            (0, [0], 0, True),
            (1, [1], 0, True),
            (0, [0], 16, False),
            (0, [1], 0, False),
            (0, [0, 1], 0, False),
            (0, [], 0, False),
            (-1, [0], 0, False),
        ],
    )
    def test_which_orders_are_implicit(
        self, timestamp: int, sorting: list[int], flags: int, implicit: bool, make: SimpleNamespace
    ) -> None:
        described = spec(columns=2, designated_timestamp=timestamp, sorting_columns=sorting)
        described["columns"] = [{**column, "flags": flags} for column in described["columns"]]
        sidecar = Sidecar.of(make.create(described))
        assert bool(sidecar.header.feature_flags & Feature.SORTING_IS_DTS_ASC) is implicit
        assert sidecar.header.sorting_column_count == (0 if implicit else len(sorting))
        assert sidecar.sorting == tuple(sorting)

    def test_the_flag_saves_the_list(self, make: SimpleNamespace) -> None:
        listed = make.create(spec(columns=2, designated_timestamp=0, sorting_columns=[1], groups=0))
        implied = make.create(spec(columns=2, designated_timestamp=0, sorting_columns=[0], groups=0))
        assert len(listed) - len(implied) == 4


class TestBlooms:
    """Bloom filters are kept in the sidecar or referred to; which columns may have one is fixed by the header."""

    def test_named_columns_are_sorted_and_listed_even_without_filters(self, make: SimpleNamespace) -> None:
        sidecar = Sidecar.of(make.create(spec(columns=3, bloom_columns=[2, 0, 2])))
        assert sidecar.bloom_columns.tolist() == [0, 2]
        assert sidecar.bloom(0, 0) is None

    def test_without_filters_there_are_no_flags_not_even_the_external_one(self, make: SimpleNamespace) -> None:
        assert Sidecar.of(make.create(spec(bloom_external=True))).header.feature_flags == 0

    def test_filters_of_the_other_kind_have_no_slot(self, make: SimpleNamespace) -> None:
        both = {"bloom_hex": "ab" * 32, "bloom_external": [500, 64]}
        inlined = Sidecar.of(make.create(spec(chunk=both)))
        external = Sidecar.of(make.create(spec(chunk=both, bloom_external=True)))
        assert (bytes(inlined.bloom(0, 0) or b""), inlined.external_bloom(0, 0)) == (b"\xab" * 32, None)
        assert (external.bloom(0, 0), external.external_bloom(0, 0)) == (None, (500, 64))

    def test_an_update_writes_a_filter_of_an_unlisted_column_but_gives_it_no_slot(self, make: SimpleNamespace) -> None:
        described = spec(columns=2)
        described["row_groups"] = [{"num_rows": 1, "chunks": [{**CHUNK, "bloom_hex": "01" * 32}, CHUNK]}]
        before = make.create(described)
        added = {"num_rows": 1, "chunks": [CHUNK, {**CHUNK, "bloom_hex": "02" * 32}]}
        after = make.update(before, step(len(before), add=[added]))
        sidecar = Sidecar.of(after)
        assert b"\x02" * 32 in after
        assert sidecar.bloom_columns.tolist() == [0]
        assert [bool(sidecar.bloom(group, 0)) for group in range(2)] == [True, False]

    def test_a_replaced_row_group_loses_its_filter_and_its_neighbour_keeps_it(self, make: SimpleNamespace) -> None:
        before = make.create(spec(groups=2, chunk={"bloom_hex": "01" * 32}))
        plain = {"num_rows": 7, "chunks": [CHUNK]}
        after = Sidecar.of(make.update(before, step(len(before), replace=[{"index": 0, "row_group": plain}])))
        assert [after.bloom(group, 0) is not None for group in range(2)] == [False, True]

    def test_external_filters_survive_an_update(self, make: SimpleNamespace) -> None:
        before = make.create(spec(chunk={"bloom_external": [500, 64]}, bloom_external=True))
        added = {"num_rows": 1, "chunks": [{**CHUNK, "bloom_external": [900, 32]}]}
        after = Sidecar.of(make.update(before, step(len(before), add=[added])))
        assert [after.external_bloom(group, 0) for group in range(2)] == [(500, 64), (900, 32)]


class TestFooterSections:
    """The sequencer transaction and the scratchpad belong to one footer; an update takes over what it does not set."""

    @pytest.mark.parametrize("value", [0, 77, -2, -(2**63)])
    def test_a_transaction_is_kept(self, value: int, make: SimpleNamespace) -> None:
        assert Sidecar.of(make.create(spec(seq_txn=value))).seq_txn == value

    def test_minus_one_is_no_transaction_and_no_bytes(self, make: SimpleNamespace) -> None:
        sidecar = Sidecar.of(make.create(spec(seq_txn=-1)))
        assert sidecar.seq_txn is None
        assert sidecar.footer.feature_flags == 0

    def test_an_update_inherits_both(self, make: SimpleNamespace) -> None:
        before = make.create(spec(seq_txn=5, scratchpad=[{"code": 9, "hex": "aa"}]))
        after = Sidecar.of(make.update(before, step(len(before))))
        assert (after.seq_txn, after.scratchpad) == (5, ((9, b"\xaa"),))

    def test_an_update_replaces_or_clears_them(self, make: SimpleNamespace) -> None:
        before = make.create(spec(seq_txn=5, scratchpad=[{"code": 9, "hex": "aa"}]))
        replaced = make.update(before, step(len(before), seq_txn=6, scratchpad=[{"code": 1, "hex": ""}]))
        cleared = make.update(before, step(len(before), seq_txn=-1, scratchpad=[]))
        assert (Sidecar.of(replaced).seq_txn, Sidecar.of(replaced).scratchpad) == (6, ((1, b""),))
        assert Sidecar.of(cleared).footer.feature_flags == 0

    def test_each_footer_keeps_its_own(self, make: SimpleNamespace) -> None:
        before = make.create(spec(seq_txn=5))
        after = make.update(before, step(len(before), seq_txn=6))
        assert [snapshot.seq_txn for snapshot in Sidecar.of(after).snapshots()] == [6, 5]

    def test_both_are_announced_by_their_bits(self, make: SimpleNamespace) -> None:
        sidecar = Sidecar.of(make.create(spec(seq_txn=5, scratchpad=[{"code": 9, "hex": "aa"}])))
        assert sidecar.footer.feature_flags == FooterFeature.SEQ_TXN | FooterFeature.SCRATCHPAD

    @pytest.mark.parametrize(("size", "fits"), [(2**20 - 12, True), (2**20 - 11, False)])
    def test_a_scratchpad_has_at_most_a_mebibyte(self, size: int, fits: bool, make: SimpleNamespace) -> None:
        described = spec(scratchpad=[{"code": 1, "hex": "00" * size}])
        if fits:
            assert len(Sidecar.of(make.create(described)).scratchpad[0][1]) == size
        else:
            with pytest.raises(InvalidInput, match="scratchpad"):
                make.create(described)


class TestSquashTracker:
    """A number of the header, absent when it is -1."""

    @pytest.mark.parametrize("value", [0, 1234, -2, -(2**63)])
    def test_it_is_kept_through_updates(self, value: int, make: SimpleNamespace) -> None:
        before = make.create(spec(squash_tracker=value))
        assert Sidecar.of(make.update(before, step(len(before)))).squash_tracker == value

    def test_minus_one_leaves_no_trace(self, make: SimpleNamespace) -> None:
        assert Sidecar.of(make.create(spec(squash_tracker=-1))).header.feature_flags == 0


class TestRefusals:
    """What cannot be written is refused before any byte is made."""

    @pytest.mark.parametrize("offset", [1, 7, 12])
    def test_a_block_that_is_not_aligned(self, offset: int) -> None:
        with pytest.raises(InvalidInput, match="multiples of 8"):
            block_entries(np.array([offset]))

    def test_a_block_beyond_thirty_two_gibibytes(self) -> None:
        assert block_entries(np.array([2**35 - 8])).tolist() == [2**32 - 1]
        with pytest.raises(InvalidInput, match="beyond"):
            block_entries(np.array([2**35]))

    def test_a_bound_beyond_sixty_four_kibibytes(self, make: SimpleNamespace) -> None:
        described = spec(chunk={"max": {"hex": "61" * 65_535, "exact": True}})
        described["columns"][0]["physical_type"] = 6
        assert Sidecar.of(make.create(described)).column(0).maximum.values[0] == b"a" * 65_535
        with pytest.raises(InvalidInput, match="max_stat of row group 0, column 0 has 65536 bytes"):
            make.create(spec(chunk={"max": {"hex": "61" * 65_536, "exact": True}}))

    @pytest.mark.parametrize("place", [(0, 1), (1, 0), (-1, 0)])
    def test_a_filter_for_a_chunk_that_is_not_there(self, place: tuple[int, int]) -> None:
        chunks = np.zeros((1, 1), layout.CHUNK)
        with pytest.raises(InvalidInput, match="bloom filter"):
            RowGroups(np.zeros(1, "<u8"), chunks, blooms={place: b"1"})

    @pytest.mark.parametrize(
        "changes",
        [{"sorting_columns": [1]}, {"bloom_columns": [1]}, {"designated_timestamp": 1}, {"designated_timestamp": -2}],
    )
    def test_a_column_that_is_not_there(self, changes: dict[str, Any], make: SimpleNamespace) -> None:
        with pytest.raises(InvalidInput, match="there are 1 columns"):
            make.create(spec(**changes))

    @pytest.mark.parametrize(
        "changes",
        [{"parquet_footer_length": 2**32}, {"parquet_footer_offset": -1}, {"seq_txn": 2**63}, {"unused_bytes": 2**64}],
    )
    def test_a_number_that_does_not_fit(self, changes: dict[str, Any], make: SimpleNamespace) -> None:
        with pytest.raises(InvalidInput, match="out of range"):
            make.create(spec(**changes))

    def test_a_name_that_is_no_text(self, make: SimpleNamespace) -> None:
        described = spec()
        described["columns"][0]["name"] = "\udcff"
        with pytest.raises(InvalidInput, match="is no text"):
            make.create(described)

    def test_a_row_group_that_is_neither_there_nor_next(self, make: SimpleNamespace) -> None:
        before = make.create(spec())
        with pytest.raises(InvalidInput, match="among 1 row groups"):
            make.update(
                before, step(len(before), replace=[{"index": 5, "row_group": {"num_rows": 1, "chunks": [CHUNK]}}])
            )

    def test_row_groups_of_other_columns(self, make: SimpleNamespace) -> None:
        sidecar = Sidecar.of(make.create(spec()))
        groups = make.groups([{"num_rows": 1, "chunks": [CHUNK, CHUNK]}], 2)
        with pytest.raises(InvalidInput, match="columns never change"):
            writer.update(sidecar, groups, [1], writer.SnapshotFields(1, 1))

    @pytest.mark.parametrize("past", [-1, 1])
    def test_a_base_before_the_snapshot_or_after_the_file(self, past: int, make: SimpleNamespace) -> None:
        before = make.create(spec())
        with pytest.raises(InvalidInput, match="cannot append"):
            make.update(before, step(len(before), base=len(before) + past))

    def test_targets_out_of_order(self, make: SimpleNamespace) -> None:
        sidecar = Sidecar.of(make.create(spec(groups=2)))
        groups = make.groups([{"num_rows": 1, "chunks": [CHUNK]}] * 2, 1)
        with pytest.raises(InvalidInput, match="ascending"):
            writer.update(sidecar, groups, [1, 0], writer.SnapshotFields(1, 1))


def test_placing_bounds_fills_flags_sizes_and_slots() -> None:
    chunks = np.zeros((1, 3), layout.CHUNK)
    starts, lengths = np.array([[0, 0, 0]]), np.array([[0, 4, 9]])
    absent = Spans(starts, np.zeros_like(lengths), np.ones_like(lengths, bool))
    spans = Spans(starts, lengths, np.array([[True, True, False]]))
    long = place_bounds(chunks, b"abcdefghi", spans, absent)
    assert chunks["stat_flags"].tolist() == [[0, 0b111, 0b001]]
    assert chunks["stat_sizes"].tolist() == [[0, 4, 0]]
    assert chunks["min_stat"].tolist() == [[0, int.from_bytes(b"abcd", "little"), 0]]
    assert long.lengths.tolist() == [[[0, 0], [0, 0], [9, 0]]]
