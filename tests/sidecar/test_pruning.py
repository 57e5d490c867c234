"""Row groups and granules that a sidecar rules out, for files of several writers, and what it must not rule out."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windrow.model.predicate import (
    And,
    Between,
    Comparison,
    In,
    IsNotNull,
    IsNull,
    Not,
    Op,
    Or,
    Predicate,
    matches,
)
from windrow.parquet.bloom import BloomFilter, hash_binary
from windrow.parquet.footer import read_footer
from windrow.sidecar import Sidecar
from windrow.sidecar.convert import Source, convert
from windrow.sidecar.granules import GranuleIndex, first_keys
from windrow.sidecar.pruning import Granules, SidecarPruner, prune, prune_granules
from windrow.sidecar.types import decimal_type

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
Reads = list[tuple[int, int]]


def written(table: pa.Table, size: int = 2, **options: Any) -> bytes:
    file = io.BytesIO()
    pq.write_table(table, file, row_group_size=size, **options)
    return file.getvalue()


def source_of(data: bytes, **more: Any) -> Source:
    return Source(read_footer(data, name="test"), len(data), read=lambda at, size: data[at : at + size], **more)


def sidecar_of(table: pa.Table, size: int = 2, *, extensions: bool = True, **options: Any) -> Sidecar:
    return Sidecar.of(convert(source_of(written(table, size, **options)), extensions=extensions))


def equal(column: str, value: Any) -> Comparison:
    return Comparison(column, Op.EQUAL, value)


def kept(sidecar: Sidecar, predicate: Predicate, **more: Any) -> str:
    return "".join(map(str, prune(sidecar, predicate, **more).astype(int)))


class TestNames:
    """A name counts where it stands for one flat column."""

    def test_columns_are_found_among_names_that_contain_them(self) -> None:
        names = ["aa", "a", "ba", "aaa", "ab"]
        sidecar = sidecar_of(pa.table({name: [place, place] for place, name in enumerate(names)}))
        for place, name in enumerate(names):
            assert kept(sidecar, equal(name, place)) == "1"
            assert kept(sidecar, equal(name, place + 1)) == "0"

    def test_an_unknown_column_proves_nothing(self) -> None:
        sidecar = sidecar_of(pa.table({"a": [1, 2, 3, 4]}))
        assert kept(sidecar, equal("b", 9)) == "11"
        assert kept(sidecar, equal("\ud800", 9)) == "11"
        assert kept(sidecar, And((equal("b", 9), equal("a", 3)))) == "01"

    def test_a_name_that_two_columns_have_proves_nothing(self) -> None:
        twice = pa.Table.from_arrays([pa.array([1]), pa.array([2]), pa.array([3])], names=["a", "b", "a"])
        assert kept(sidecar_of(twice), equal("a", 9)) == "1"
        assert kept(sidecar_of(twice), equal("b", 9)) == "0"

    @pytest.mark.parametrize(
        "nested",
        [
            pa.array([{"a": 1, "b": 2}]),
            pa.array([{"a": 1}]),
            pa.array([[1, 2]]),
            pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int64())),
        ],
        ids=["struct", "struct of one", "list", "map"],
    )
    @pytest.mark.parametrize("extensions", [True, False])
    def test_nested_columns_prove_nothing(self, nested: pa.Array, extensions: bool) -> None:
        sidecar = sidecar_of(pa.table({"n": nested}), extensions=extensions)
        for name in ("n", "n.a", "a"):
            assert kept(sidecar, Or((equal(name, 9), IsNull(name)))) == "1"

    def test_only_columns_that_are_named_are_touched(self, monkeypatch: pytest.MonkeyPatch) -> None:
        sidecar = sidecar_of(pa.table({name: [1, 2] for name in "abcd"}))
        touched: list[int] = []
        column = Sidecar.column
        monkeypatch.setattr(
            Sidecar, "column", lambda self, place, among: touched.append(place) or column(self, place, among)
        )
        prune(sidecar, And((equal("c", 1), equal("a", 1))))
        assert sorted(touched) == [0, 2]


class TestBloomFilters:
    """Of the row groups that bounds leave, those whose filter may hold a value."""

    TABLE = pa.table({"n": [1, 9, 2, 8, 3, 7], "s": ["a", "z", "b", "y", "c", "x"], "v": [1, 2, 3, 4, 5, 6]})
    OPTIONS: ClassVar = {"bloom_filter_options": {"n": {"ndv": 10}, "s": {"ndv": 10}}}

    @pytest.mark.parametrize(
        ("predicate", "expected"),
        [
            (equal("n", 7), "001"),
            (equal("s", "b"), "010"),
            (In("n", (1, 3)), "101"),
            (Between("n", 3, 3), "111"),
            (Not(equal("n", 7)), "111"),
            (And((equal("n", 7), equal("v", 1))), "000"),
            (Or((equal("n", 7), equal("v", 1))), "101"),
            (Or((equal("n", 5), IsNull("v"))), "000"),
            (equal("n", 7.0), "001"),
        ],
    )
    def test_they_answer_equality(self, predicate: Predicate, expected: str) -> None:
        assert kept(sidecar_of(self.TABLE, **self.OPTIONS), predicate) == expected

    @pytest.mark.parametrize("extensions", [True, False])
    def test_they_know_unsigned_integers_with_and_without_a_schema(self, extensions: bool) -> None:
        values = [1, 2**64 - 1, 2, 2**63, 3, 2**64 - 2]
        table = pa.table({"n": pa.array(values, pa.uint64())})
        sidecar = sidecar_of(table, extensions=extensions, bloom_filter_options={"n": {"ndv": 10}})
        for place, value in enumerate(values):
            assert kept(sidecar, equal("n", value)) == "".join(
                "1" if place // 2 == group else "0" for group in range(3)
            )

    def reader(self, data: bytes) -> tuple[Callable[[int, int], bytes], Reads]:
        reads: Reads = []

        def read(offset: int, length: int) -> bytes:
            reads.append((offset, length))
            return data[offset : offset + length]

        return read, reads

    def test_those_that_stay_in_the_file_are_read_for_what_bounds_leave(self) -> None:
        data = written(self.TABLE, **self.OPTIONS)
        sidecar = Sidecar.of(convert(replace(source_of(data), read=None)))
        assert not len(sidecar.bloom_columns)
        read, reads = self.reader(data)
        assert kept(sidecar, equal("n", 7)) == "111"
        assert kept(sidecar, equal("n", 7), read=read) == "001"
        assert len(reads) == 3
        assert kept(sidecar, And((equal("n", 7), equal("v", 6))), read=read) == "001"
        assert len(reads) == 4
        assert kept(sidecar, equal("v", 1), read=read) == "100"
        assert len(reads) == 4

    def test_those_that_a_slot_refers_to(self, make: SimpleNamespace) -> None:
        bits = BloomFilter(bytes(32))
        bits.insert(hash_binary((7).to_bytes(8, "little"), np.array([0, 8])))
        file = b"PAR1" + bytes(bits)
        read, reads = self.reader(file)
        sidecar = Sidecar.of(make.create(spec([(0, 9), (0, 9)], bloom_external=(4, 32), bloom_columns=[0])))
        assert kept(sidecar, equal("c", 7)) == "11"
        assert kept(sidecar, equal("c", 7), read=read) == "11"
        assert kept(sidecar, equal("c", 5), read=read) == "00"
        assert reads == [(4, 32)] * 4

    @pytest.mark.parametrize("slot", [(4, 31), (4, 2**40), (2**40, 32)])
    def test_a_slot_that_cannot_be_right_is_passed_over(self, slot: tuple[int, int], make: SimpleNamespace) -> None:
        read, reads = self.reader(b"PAR1" + bytes(60))
        sidecar = Sidecar.of(make.create(spec([(0, 9)], bloom_external=slot, bloom_columns=[0])))
        assert kept(sidecar, equal("c", 5), read=read) == "1"
        assert reads == ([slot] if slot == (4, 31) else [])


DESIGNATED = 8 | 1 << 17


def spec(pairs: Sequence[tuple[int, int] | None], code: int = 6, **more: Any) -> dict[str, Any]:
    """A described sidecar of one column of 64-bit integers, by its bounds; None for a row group that has none."""
    chunk = {
        "codec": 0, "encodings": 0, "num_values": 5, "byte_range_start": 4, "total_compressed": 10, "null_count": 0,
        "distinct_count": None, "bloom_hex": None, "bloom_external": more.get("bloom_external"),
    }  # fmt: skip
    column = {"name": "c", "type": code, "physical_type": 2, "id": -1}
    bounds = [
        {side: pair and {"hex": pair[at].to_bytes(8, "little", signed=True).hex(), "exact": True}
         for at, side in enumerate(("min", "max"))}
        for pair in pairs
    ]  # fmt: skip
    return {
        "columns": [column],
        "designated_timestamp": 0 if code & 1 << 17 else -1,
        "sorting_columns": [0] if code & 1 << 17 else [],
        "squash_tracker": -1,
        "bloom_columns": more.get("bloom_columns"),
        "bloom_external": "bloom_external" in more,
        "row_groups": [{"num_rows": 5, "chunks": [{**chunk, **each}]} for each in bounds],
        "parquet_footer_offset": 1000,
        "parquet_footer_length": 200,
        "unused_bytes": 0,
        "seq_txn": None,
        "scratchpad": None,
    }


def at(microseconds: int) -> datetime:
    return EPOCH + timedelta(microseconds=microseconds)


class TestTime:
    """Row groups are found by search where QuestDB keeps them in order of time."""

    PAIRS = ((0, 10), (10, 20), (25, 30), (30, 30), (30, 45), (50, 60))

    @given(st.integers(-5, 65), st.integers(-5, 65), st.sampled_from(Op))
    @settings(max_examples=200, deadline=None)
    def test_the_search_finds_what_a_look_at_all_finds(self, low: int, high: int, op: Op) -> None:
        searched, plain = self.sidecars
        compare = Comparison("c", op, at(low))
        for predicate in (compare, And((compare, Comparison("c", Op.LESS, at(high)))), Between("c", at(low), at(high))):
            assert kept(searched, predicate) == kept(plain, predicate)

    @pytest.fixture(autouse=True, scope="class")
    @classmethod
    def made(cls, make: SimpleNamespace) -> None:
        cls.sidecars = tuple(Sidecar.of(make.create(spec(cls.PAIRS, code))) for code in (DESIGNATED, 8))

    def test_it_looks_at_few(self, make: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
        pairs = [(10 * place, 10 * place + 9) for place in range(1000)]
        sidecar = Sidecar.of(make.create(spec(pairs, DESIGNATED)))
        looked: list[int] = []
        column = Sidecar.column
        monkeypatch.setattr(
            Sidecar, "column", lambda self, at, among: looked.append(len(among)) or column(self, at, among)
        )
        assert np.flatnonzero(prune(sidecar, Between("c", at(4005), at(4012)))).tolist() == [400, 401]
        assert looked == [2]

    def test_a_row_group_without_bounds_stops_the_search(self, make: SimpleNamespace) -> None:
        pairs = [(0, 9), (10, 19), None, (30, 39)]
        sidecar = Sidecar.of(make.create(spec(pairs, DESIGNATED)))
        assert kept(sidecar, equal("c", at(15))) == "0110"
        assert kept(sidecar, equal("c", at(35))) == "0011"

    def test_other_files_may_be_sorted_in_each_row_group_alone(self) -> None:
        schema = pa.schema([pa.field("c", pa.timestamp("us"), nullable=False)])
        table = pa.table({"c": [at(n) for n in (50, 60, 10, 20, 30, 40)]}, schema)
        sidecar = sidecar_of(table, sorting_columns=[pq.SortingColumn(0)])
        assert sidecar.designated_timestamp == 0
        assert kept(sidecar, equal("c", at(10))) == "010"
        assert kept(sidecar, equal("c", at(60))) == "100"


@pytest.mark.parametrize("nulls", [0, 5])
def test_int96_has_nulls_alone(nulls: int, make: SimpleNamespace) -> None:
    described = spec([(0, 9)], code=8 | 1 << 18)
    described["columns"][0] |= {"physical_type": 3, "max_def_level": 1, "flags": 4}
    bound = {"hex": "01" * 12, "exact": True}
    described["row_groups"][0]["chunks"][0].update(min=bound, max=bound, null_count=nulls)
    sidecar = Sidecar.of(make.create(described))
    assert sidecar.column("c").minimum.present.all()
    assert kept(sidecar, equal("c", EPOCH)) == ("1" if nulls < 5 else "0")


@pytest.mark.parametrize(("exact", "expected"), [(True, "010"), (False, "111")])
def test_decimals_of_any_length_are_not_shortened(exact: bool, expected: str, make: SimpleNamespace) -> None:
    described = spec([(0, 0)] * 3, code=decimal_type(30, 1))
    described["columns"][0]["physical_type"] = 6
    for group, number in zip(described["row_groups"], (-129, 128, 70_000), strict=True):
        bound = {"hex": number.to_bytes(3, "big", signed=True).hex(), "exact": exact}
        group["chunks"][0].update(min=bound, max=bound)
    assert kept(Sidecar.of(make.create(described)), equal("c", Decimal("12.8"))) == expected


Row = tuple[str | None, int | None]


def granular(groups: Sequence[Sequence[Row]], size: int) -> Sidecar:
    """The sidecar of a file that is sorted by `a` and then by `b`, with granules of `size` rows."""
    rows = [row for group in groups for row in group]
    a, b = pa.array([row[0] for row in rows], pa.string()), pa.array([row[1] for row in rows], pa.int64())
    file = io.BytesIO()
    with pq.ParquetWriter(file, pa.schema([("a", pa.string()), ("b", pa.int64())])) as writer:
        start = 0
        for group in groups:
            writer.write_table(pa.table({"a": a, "b": b}).slice(start, len(group)), row_group_size=len(group))
            start += len(group)
    indexes = [_index([group[at : at + size] for at in range(0, len(group), size)]) for group in groups]
    return Sidecar.of(convert(source_of(file.getvalue(), granules=indexes)))


def _index(granules: Sequence[Sequence[Row]]) -> GranuleIndex:
    texts = [None if rows[0][0] is None else rows[0][0].encode() for rows in granules]
    numbers = [None if rows[0][1] is None else rows[0][1].to_bytes(8, "little", signed=True) for rows in granules]
    pages = np.zeros((2, len(granules)))
    keys = (first_keys(0, texts), first_keys(1, numbers))
    return GranuleIndex(np.array([len(rows) for rows in granules]), pages, pages, keys)


def in_order(rows: list[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: (row[0] is None, row[0] or "", row[1] is None, row[1] or 0))


def marks(found: list[Granules]) -> list[str]:
    return ["whole" if each.kept is None else "".join(map(str, each.kept.astype(int))) for each in found]


class TestGranules:
    """Granules are ruled out by the keys that they start with."""

    ROWS: tuple[Row, ...] = (("a", 1), ("a", 2), ("a", 3), ("a", 9), ("b", 0), ("b", 5), ("c", None), (None, 4))

    @pytest.mark.parametrize(
        ("predicate", "expected"),
        [
            (equal("a", "a"), "1100"),
            (equal("a", "b"), "0110"),
            (equal("a", "c"), "0011"),
            (equal("b", 2), "1111"),
            (equal("b", 7), "0111"),
            (And((equal("a", "a"), equal("b", 9))), "0100"),
            (Comparison("a", Op.GREATER, "b"), "0011"),
            (IsNull("a"), "0001"),
            (IsNotNull("b"), "1111"),
            (IsNull("b"), "0111"),
            (equal("elsewhere", 1), "1111"),
        ],
    )
    def test_which_are_left(self, predicate: Predicate, expected: str) -> None:
        sidecar = granular([self.ROWS], 2)
        assert marks(prune_granules(sidecar, predicate, np.array([True]))) == [expected]

    def test_each_row_group_that_was_kept_has_its_own(self) -> None:
        sidecar = granular([self.ROWS[:4], self.ROWS[4:], self.ROWS[:2]], 2)
        found = prune_granules(sidecar, equal("a", "b"), np.array([False, True, True]))
        assert [each.row_group for each in found] == [1, 2]
        assert marks(found) == ["10", "0"]

    def test_without_granules_a_row_group_stays_whole(self) -> None:
        sidecar = sidecar_of(pa.table({"a": [1, 2, 3, 4]}))
        found = prune_granules(sidecar, equal("a", 1), prune(sidecar, equal("a", 1)))
        assert marks(found) == ["whole"]
        assert found[0].ranges == [(0, 1)]

    def test_what_is_left_has_ranges(self) -> None:
        assert Granules(0, np.array([True, True, False, True])).ranges == [(0, 2), (3, 4)]
        assert Granules(0, np.array([False])).ranges == []

    @settings(max_examples=100, deadline=None)
    @given(st.data())
    def test_no_row_is_lost(self, data: st.DataObject) -> None:
        row = st.tuples(st.none() | st.sampled_from("abc"), st.none() | st.integers(0, 4))
        groups = data.draw(st.lists(st.lists(row, min_size=1, max_size=12).map(in_order), min_size=1, max_size=3))
        size = data.draw(st.integers(1, 4))
        texts = st.builds(Comparison, st.just("a"), st.sampled_from(Op), st.sampled_from("abc"))
        numbers = st.builds(Comparison, st.just("b"), st.sampled_from(Op), st.integers(0, 4))
        one = texts | numbers | st.sampled_from([IsNull("a"), IsNull("b"), IsNotNull("b")])
        predicate = data.draw(one | st.tuples(one, one).map(And) | st.tuples(one, one).map(Or) | one.map(Not))
        sidecar = granular(groups, size)
        for each in prune_granules(sidecar, predicate, prune(sidecar, predicate)):
            rows = groups[each.row_group]
            granules = [rows[at : at + size] for at in range(0, len(rows), size)]
            matching = [any(matches(predicate, {"a": a, "b": b}) for a, b in granule) for granule in granules]
            assert not [
                g for g, (keep, match) in enumerate(zip(each.kept, matching, strict=True)) if match and not keep
            ]


class TestPruner:
    """A predicate for many sidecars."""

    def test_types_may_differ_from_file_to_file(self) -> None:
        pruner = SidecarPruner(equal("c", 5))
        kinds = [pa.int32(), pa.uint64(), pa.float64(), pa.decimal128(30, 2), pa.string(), pa.int32()]
        tables = [pa.table({"c": pa.array([5, 5, 6, 6]).cast(kind)}) for kind in kinds]
        found = ["".join(map(str, pruner.prune(sidecar_of(table)).astype(int))) for table in tables]
        assert found == ["10", "10", "10", "10", "11", "10"]

    def test_it_explains_what_each_step_leaves(self) -> None:
        values = [1, 9, None, None, 2, 8, 20, 30]
        sidecar = sidecar_of(pa.table({"n": values}), bloom_filter_options={"n": {"ndv": 10}})
        steps = SidecarPruner(equal("n", 8)).explain(sidecar)
        assert [(each.step, each.asked, each.kept) for each in steps] == [
            ("all-null", 4, 3),
            ("statistics", 3, 2),
            ("bloom filters", 2, 1),
            ("granule keys", 0, 0),
        ]
        assert str(steps).splitlines()[0].split() == ["step", "units", "asked", "kept"]

    def test_it_explains_granules(self) -> None:
        steps = SidecarPruner(equal("a", "b")).explain(granular([TestGranules.ROWS], 2))
        assert (steps[-1].units, steps[-1].asked, steps[-1].kept) == ("granules", 4, 2)

    def test_a_file_without_row_groups(self) -> None:
        file = io.BytesIO()
        pq.ParquetWriter(file, pa.schema([("c", pa.int64())])).close()
        assert kept(Sidecar.of(convert(source_of(file.getvalue()))), equal("c", 1)) == ""
