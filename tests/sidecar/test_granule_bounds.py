"""Page indexes leave out pages that hold no row which matches, and never one that does, whatever its type."""

from __future__ import annotations

import io
import math
import random
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from windrow.kernels import rules as r
from windrow.model.predicate import Between, Comparison, In, IsNotNull, IsNull, Op, Predicate, StartsWith, matches
from windrow.parquet import thrift as t
from windrow.parquet.footer import read_footer
from windrow.sidecar.aligned_pages import find_granules
from windrow.sidecar.convert import Source, convert
from windrow.sidecar.pruning import SidecarPruner
from windrow.sidecar.reader import Sidecar

ROWS, PAGE = 200, 10
START = datetime(2026, 1, 1, tzinfo=UTC)
TYPES: dict[str, tuple[pa.DataType, Callable[[random.Random], Any]]] = {
    "int64": (pa.int64(), lambda draw: draw.randrange(-(2**60), 2**60)),
    "int8": (pa.int8(), lambda draw: draw.randrange(-128, 128)),
    "uint32": (pa.uint32(), lambda draw: draw.randrange(2**32)),
    "uint64": (pa.uint64(), lambda draw: draw.randrange(2**64)),
    "bool": (pa.bool_(), lambda draw: draw.random() < 0.5),
    "float": (pa.float32(), lambda draw: draw.choice([0.0, -0.0, 0.5, -1.5, 2.0, math.inf, math.nan])),
    "double": (pa.float64(), lambda draw: draw.choice([draw.gauss(0, 5), 0.0, -0.0, math.nan, -math.inf])),
    "half": (pa.float16(), lambda draw: draw.choice([0.0, 0.5, -1.5, 2.0, math.nan])),
    "text": (pa.string(), lambda draw: draw.choice(["", "a", "ä", "b" * 90, "cpu", "\U0001f600"]) + str(draw.random())),
    "binary": (pa.binary(), lambda draw: draw.randbytes(draw.randrange(4))),
    "date": (pa.date32(), lambda draw: date(2026, 1, 1) + timedelta(days=draw.randrange(4000))),
    "time": (pa.timestamp("us", "UTC"), lambda draw: START + timedelta(seconds=draw.randrange(10**6))),
    "decimal": (pa.decimal128(10, 2), lambda draw: Decimal(draw.randrange(-(10**6), 10**6)) / 100),
    "large decimal": (pa.decimal128(38, 2), lambda draw: Decimal(draw.randrange(-(10**20), 10**20)) / 100),
}


class Pages:
    """A file of one row group with pages of ten rows, its sidecar, and what was read of its page index."""

    def __init__(self, column: pa.Array, **options: Any) -> None:
        file = io.BytesIO()
        layout = {"row_group_size": ROWS, "max_rows_per_page": PAGE, "write_page_index": True, **options}
        pq.write_table(pa.table({"a": column}), file, **layout)
        self.data = file.getvalue()
        footer = read_footer(self.data, name="test")
        granules = find_granules(footer, lambda at, size: self.data[at : at + size], name="test")
        self.sidecar = Sidecar.of(convert(Source(footer, len(self.data), "test", None, None, granules)))
        self.rows = column.to_pylist()
        self.reads = 0

    def index(self, row_group: int, column: int) -> bytes | None:
        self.reads += 1
        records = self.sidecar.extensions.page_records(row_group)
        assert records is not None
        start, length = int(records["column_index_offset"][column]), int(records["column_index_length"][column])
        return self.data[start : start + length]

    def kept(self, predicate: Predicate, index: Callable[[int, int], bytes | None] | None = None) -> list[bool]:
        pruner = SidecarPruner(predicate)
        found = pruner.prune_granules(self.sidecar, np.ones(1, bool))
        [left] = pruner.prune_pages(self.sidecar, found, index or self.index)
        return [True] * (ROWS // PAGE) if left.kept is None else left.kept.tolist()

    def wanted(self, predicate: Predicate) -> list[bool]:
        pages = [self.rows[first : first + PAGE] for first in range(0, len(self.rows), PAGE)]
        return [any(matches(predicate, {"a": value}) for value in page) for page in pages]


def questions(draw: random.Random, values: list[Any]) -> list[Predicate]:
    one, other = draw.choice(values), draw.choice(values)
    asked: list[Predicate] = [Comparison("a", op, one) for op in Op]
    asked += [In("a", (one, other)), IsNull("a"), IsNotNull("a")]
    asked += [] if isinstance(one, bool) else [Between("a", one, other)]
    return [*asked, StartsWith("a", one[:1])] if isinstance(one, str) else asked


@pytest.mark.parametrize("order", ["sorted", "as it comes"])
@pytest.mark.parametrize("name", TYPES)
def test_no_page_with_a_row_that_matches_is_left_out(name: str, order: str) -> None:
    kind, value = TYPES[name]
    left_out = 0
    for seed in range(10):
        draw = random.Random(seed)
        values = [None if draw.random() < 0.2 else value(draw) for _ in range(ROWS)]
        if order == "sorted":
            values.sort(key=lambda each: (each is None, each != each, each if each == each else 0))  # noqa: PLR0124
        pages = Pages(pa.array(values, kind))
        for question in questions(draw, [each for each in pages.rows if each is not None]):
            kept, wanted = pages.kept(question), pages.wanted(question)
            assert all(found for found, needed in zip(kept, wanted, strict=True) if needed), f"{seed}: {question}"
            left_out += kept.count(False)
    assert left_out or order != "sorted"


def test_an_index_is_read_once() -> None:
    pages = Pages(pa.array(range(ROWS)))
    for value in (5, 25, 5):
        assert pages.kept(Comparison("a", Op.EQUAL, value)).index(True) == value // PAGE
    assert pages.reads == 1


def test_an_index_that_cannot_be_had_is_asked_for_again() -> None:
    pages = Pages(pa.array(range(ROWS)))
    question = Comparison("a", Op.EQUAL, 25)
    assert all(pages.kept(question, lambda *_: None))
    assert sum(pages.kept(question)) == 1


PAGES = ROWS // PAGE
CELLS = [value.to_bytes(8, "little") for value in range(PAGES)]


def index_of(null: bool = False, low: list[bytes] = CELLS, high: list[bytes] = CELLS, nulls: int = 0) -> bytes:
    """A column index in which all pages have as many nulls, or are null."""
    return t.struct(
        t.list_of(1, r.TRUE, [b"\1" if null else b"\2"] * len(low)),
        t.list_of(2, r.BINARY, list(map(t.prefixed, low))),
        t.list_of(3, r.BINARY, list(map(t.prefixed, high))),
        t.i32(4, 0),
        t.list_of(5, r.I64, [t.zigzag(nulls)] * len(low)),
    )


LIES = {
    "of fewer pages": index_of(low=CELLS[:2], high=CELLS[:2]),
    "of more nulls than rows": index_of(nulls=PAGE + 1),
    "of fewer nulls than none": index_of(nulls=-1),
    "of pages that are null and are not": index_of(null=True, nulls=1),
    "of values of another width": index_of(low=[b"1"] * PAGES, high=[b"1"] * PAGES),
    "of bounds that are crossed": index_of(low=CELLS[3:4] * PAGES, high=CELLS[1:2] * PAGES),
    "of nothing": b"",
    "that is cut off": index_of()[:-30],
}


def test_an_index_that_was_put_together_is_believed() -> None:
    """So that those below are not believed for what is wrong with each."""
    assert sum(Pages(pa.array(range(ROWS))).kept(Comparison("a", Op.EQUAL, 5), lambda *_: index_of())) == 1


@pytest.mark.parametrize("lie", LIES)
def test_an_index_that_contradicts_itself_or_the_pages_proves_nothing(lie: str) -> None:
    assert all(Pages(pa.array(range(ROWS))).kept(Comparison("a", Op.EQUAL, 25), lambda *_: LIES[lie]))


def test_pages_of_a_row_group_without_bounds_prove_nothing() -> None:
    pages = Pages(pa.array(range(ROWS)), write_statistics=False)
    true = Pages(pa.array(range(ROWS)))
    assert all(pages.kept(Comparison("a", Op.EQUAL, 25), true.index))


class TestHowMuchIsRead:
    """Indexes are read where they may pay."""

    def groups(self, values: list[int], rows: int) -> tuple[Sidecar, Callable[[int, int], bytes | None], list[int]]:
        """A file with many row groups, its page indexes, and the row groups whose index was read."""
        pages = Pages(pa.array(values), row_group_size=rows)
        read: list[int] = []

        def index(row_group: int, column: int) -> bytes | None:
            read.append(row_group)
            return pages.index(row_group, column)

        return pages.sidecar, index, read

    def left(self, sidecar: Sidecar, index: Callable[[int, int], bytes | None], predicate: Predicate) -> int:
        pruner = SidecarPruner(predicate)
        found = pruner.prune_granules(sidecar, pruner.prune(sidecar))
        counts = sidecar.extensions.granule_counts
        left = pruner.prune_pages(sidecar, found, index)
        return sum(int(counts[at]) if kept is None else int(kept.sum()) for at, kept in left)

    def test_few_granules_are_not_worth_an_index(self) -> None:
        sidecar, index, read = self.groups([*range(700)], rows=70)
        assert self.left(sidecar, index, Comparison("a", Op.LESS, 5)) == 7
        assert read == []

    def test_after_some_indexes_that_help_all_are_read(self) -> None:
        sidecar, index, read = self.groups([*range(80)] * 50, rows=80)
        assert self.left(sidecar, index, Comparison("a", Op.LESS, 5)) == 50
        assert read == [*range(50)]

    def test_after_some_indexes_that_do_not_help_no_more_are_read(self) -> None:
        sidecar, index, read = self.groups([0, 1, 2, 3, 4, 5, 6, 7, 8, 9] * 400, rows=80)
        assert self.left(sidecar, index, Comparison("a", Op.LESS, 5)) == 400
        assert read == [*range(8)]
