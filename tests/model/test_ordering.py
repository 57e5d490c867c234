"""The order of rows: the plain one against what it must be, the vectorised one against the plain one."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from math import inf, nan

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windrow.errors import InvalidInput
from windrow.model.ordering import comparable, dictionary_codes, first_unsorted_row, is_sorted, sort_indices, steps_back
from windrow.model.sort_schema import Direction, SortColumn, SortSchema


@dataclass(frozen=True)
class Descending:
    """Turns the order of a comparable value round."""

    value: tuple[int, object]

    def __lt__(self, other):
        return other.value < self.value


def sort_key(schema):
    """The plain order: the key by which `sorted` puts rows of Python into the order of the schema."""

    def key(row):
        values = ((comparable(row.get(column.name)), column.direction) for column in schema.columns)
        return tuple(value if way is Direction.ASCENDING else Descending(value) for value, way in values)

    return key


def naive(*parts):
    return datetime(*parts, tzinfo=UTC).replace(tzinfo=None)


MORNING = naive(2024, 1, 1, 8)

ASCENDING_VALUES = [
    pytest.param([-inf, -1.5, 0.0, 2.0, inf, nan, None], id="numbers, NaN, null"),
    pytest.param([-(2**63), -1, 0, 2**64, None], id="integers"),
    pytest.param(
        ["", "A", "Z", "a", "ab", "b", "\x7f", "é", "\uffee", "\U0001f600", None], id="text by its UTF-8 bytes"
    ),
    pytest.param([b"", b"\x00", b"a", b"a\x00", b"\x7f", b"\xff", None], id="bytes"),
    pytest.param([False, True, None], id="truth"),
    pytest.param([Decimal("-1.5"), Decimal(0), Decimal("0.01"), Decimal("NaN"), None], id="decimals"),
    pytest.param([date(1969, 1, 1), date(2024, 1, 1), None], id="dates"),
    pytest.param([MORNING, MORNING.replace(tzinfo=timezone(-timedelta(hours=1))), None], id="times; naive is UTC"),
]


def schema_of(direction):
    return SortSchema((SortColumn("x", direction),))


@pytest.mark.parametrize("values", ASCENDING_VALUES)
def test_rows_sort_ascending_with_null_last_and_descending_with_null_first(values):
    rows = [{"x": value} for value in values]
    backwards = rows[::-1]
    assert sorted(backwards, key=sort_key(schema_of(Direction.ASCENDING))) == rows
    assert sorted(rows, key=sort_key(schema_of(Direction.DESCENDING))) == backwards


@pytest.mark.parametrize("direction", Direction)
def test_zeros_tie_and_so_do_nans_and_a_missing_column_with_null(direction):
    key = sort_key(schema_of(direction))
    assert key({"x": -0.0}) == key({"x": 0.0})
    assert key({"x": nan}) == key({"x": -nan}) == key({"x": Decimal("NaN")})
    assert key({}) == key({"x": None})
    assert key({"x": MORNING}) == key({"x": MORNING.replace(tzinfo=UTC)})
    assert key({"x": 1}) != key({"x": 2})


def test_the_first_sort_column_counts_most():
    key = sort_key(SortSchema.parse("a|b-/V2"))
    rows = [{"b": 1}, {"a": 2, "b": 9}, {"a": 1, "b": 1}, {"a": 1, "b": 2}, {"a": 1, "b": None}]
    assert sorted(rows, key=key) == rows[::-1]


def few(*values):
    """Few values, so that columns tie often."""
    return st.none() | st.sampled_from(values)


text = few("", "a", "A", "ab", "é", "z", "\U0001f600", "\uffee")
numbers = few(0, 1, 2, 100)
moments = few(naive(1960, 1, 1, 0, 0, 0, 1), naive(2024, 1, 1), naive(2024, 1, 2))
days = few(date(1960, 1, 1), date(2024, 1, 1), date(2024, 1, 2))
decimals = few(Decimal("-1.50"), Decimal("0.00"), Decimal("2.25"), Decimal("10.00"))
octets = few(b"", b"a", b"a\x00", b"\xff")
floats = few(-inf, -1.5, -0.0, 0.0, 1.5, inf, nan)

COLUMNS = [
    (pa.string(), text),
    (pa.large_string(), text),
    (pa.string_view(), text),
    (pa.dictionary(pa.int8(), pa.string()), text),
    (pa.dictionary(pa.int32(), pa.large_string()), text),
    (pa.dictionary(pa.int32(), pa.int64()), numbers),
    (pa.int8(), few(-128, -1, 0, 127)),
    (pa.int32(), numbers),
    (pa.int64(), few(-(2**63), -1, 0, 2**63 - 1)),
    (pa.int64(), st.sampled_from([-(2**63), -1, 0, 2**63 - 1])),
    (pa.uint8(), numbers),
    (pa.uint64(), few(0, 1, 2**63, 2**64 - 1)),
    (pa.float16(), floats),
    (pa.float32(), floats),
    (pa.float64(), floats),
    (pa.bool_(), few(False, True)),
    (pa.timestamp("us"), moments),
    (pa.timestamp("ms", "UTC"), few(datetime(1960, 1, 1, tzinfo=UTC), datetime(2024, 1, 1, tzinfo=UTC))),
    (pa.timestamp("s"), st.sampled_from([naive(1960, 1, 1), naive(2024, 1, 1)])),
    (pa.date32(), days),
    (pa.date64(), days),
    (pa.decimal32(4, 2), decimals),
    (pa.decimal64(4, 2), decimals),
    (pa.decimal128(4, 2), decimals),
    (pa.decimal256(40, 2), decimals),
    (pa.binary(), octets),
    (pa.large_binary(), octets),
    (pa.binary_view(), octets),
    (pa.binary(2), few(b"aa", b"ab", b"\xff\x00")),
    (pa.null(), st.none()),
]


@st.composite
def chunked(draw, kind, values):
    """A column in one to three chunks, each with a dictionary of its own where the type has one."""
    cuts = sorted(draw(st.lists(st.integers(0, len(values)), max_size=2)))
    pieces = [values[low:high] for low, high in zip([0, *cuts], [*cuts, len(values)], strict=True)]
    return pa.chunked_array([pa.array(piece, kind) for piece in pieces], kind)


@st.composite
def tables(draw, kinds):
    count = draw(st.integers(0, 12))
    columns = {}
    for position, (kind, values) in enumerate(kinds):
        drawn = draw(st.lists(values, min_size=count, max_size=count))
        columns[f"c{position}"] = draw(chunked(kind, drawn))
    return pa.table(columns)


def reordered(table, order):
    """The rows in another order; Arrow cannot take rows of every type by itself."""
    columns = [[column[row].as_py() for row in order] for column in table.columns]
    return pa.table(
        [pa.array(column, kind) for column, kind in zip(columns, table.schema.types, strict=True)], table.column_names
    )


def check_against_the_plain_order(table, schema):
    rows, key = table.to_pylist(), sort_key(schema)
    order = sorted(range(len(rows)), key=lambda row: key(rows[row]))
    assert sort_indices(table, schema).tolist() == order
    assert is_sorted(reordered(table, order), schema)
    behind = [row for row in range(1, len(rows)) if key(rows[row]) < key(rows[row - 1])]
    assert first_unsorted_row(table, schema) == (behind[0] if behind else None)
    assert is_sorted(table, schema) is not bool(behind)


@pytest.mark.parametrize("direction", Direction)
@pytest.mark.parametrize(("kind", "values"), COLUMNS, ids=[str(kind) for kind, _ in COLUMNS])
def test_one_column_of_any_type_sorts_as_python_rows_do(kind, values, direction):
    schema = SortSchema((SortColumn("c0", direction),))

    @settings(deadline=None, max_examples=25)
    @given(tables([(kind, values)]))
    def check(table):
        check_against_the_plain_order(table, schema)

    check()


@settings(deadline=None, max_examples=150)
@given(st.data())
def test_several_columns_sort_as_python_rows_do(data):
    kinds = data.draw(st.lists(st.sampled_from(COLUMNS), min_size=1, max_size=4))
    table = data.draw(tables(kinds))
    # c4 and beyond are missing from the table
    names = data.draw(st.lists(st.sampled_from(["c0", "c1", "c2", "c3", "c4"]), min_size=1, max_size=4, unique=True))
    columns = tuple(SortColumn(name, data.draw(st.sampled_from(Direction))) for name in names)
    check_against_the_plain_order(table, SortSchema(columns))


def test_rows_that_tie_keep_their_order():
    table = pa.table({"a": [2, 1, 2, 1, 2]})
    assert sort_indices(table, SortSchema.parse("a/V2")).tolist() == [1, 3, 0, 2, 4]
    assert sort_indices(table, SortSchema.parse("a-/V2")).tolist() == [0, 2, 4, 1, 3]


def test_a_table_without_any_sort_column_is_sorted_as_it_is():
    table = pa.table({"b": [2, 1]})
    assert sort_indices(table, SortSchema.parse("a/V2")).tolist() == [0, 1]
    assert is_sorted(table, SortSchema.parse("a/V2"))


def test_metadata_columns_do_not_sort():
    assert is_sorted(pa.table({"a": [1, 2], "b": [2, 1]}), SortSchema.parse("a&b/V2"))


def test_steps_back_name_the_column_that_decides():
    table = pa.table({"a": [1, 1, 2, 1], "b": [5, 4, 3, 2]})
    steps = [(column.name, rows.tolist()) for column, rows in steps_back(table, SortSchema.parse("a|b/V2"))]
    assert steps == [("a", [3]), ("b", [1])]


def test_nans_of_any_bits_tie():
    bits = np.array([0x7FF8000000000000, 0xFFF8000000000001, 0x7FF0000000000001], dtype=np.uint64)
    table = pa.table({"a": bits.view(np.float64), "b": [3, 2, 1]})
    assert sort_indices(table, SortSchema.parse("a|b/V2")).tolist() == [2, 1, 0]


@pytest.mark.parametrize(
    "dictionary",
    [["b", "a", "b", None], ["b", None, "b", "a"]],
    ids=["a value twice and a null", "a null in the middle"],
)
@pytest.mark.parametrize("chunks", [1, 2])
def test_a_dictionary_may_hold_a_value_twice_or_a_null(dictionary, chunks):
    encoded = pa.DictionaryArray.from_arrays(pa.array([0, 1, None, 2, 3]), pa.array(dictionary))
    table = pa.table({"c0": pa.chunked_array([encoded] * chunks), "c1": list(range(5 * chunks))[::-1]})
    check_against_the_plain_order(table, SortSchema.parse("c0|c1/V2"))


def test_dictionaries_that_outgrow_their_index_type_together_still_sort():
    chunks = [pa.array([f"{chunk}{value}" for value in range(100)]).dictionary_encode() for chunk in (1, 0)]
    narrow = [chunk.cast(pa.dictionary(pa.int8(), pa.string())) for chunk in chunks]
    indices = sort_indices(pa.table({"a": pa.chunked_array(narrow)}), SortSchema.parse("a/V2"))
    texts = pa.chunked_array(chunks).to_pylist()
    assert [texts[row] for row in indices] == sorted(texts)


@pytest.mark.parametrize("values", [[[1], [2]], [{"a": 1}, {"a": 2}]], ids=["lists", "structs"])
def test_a_type_without_an_order_is_refused(values):
    with pytest.raises(InvalidInput, match=r"column 'a' of type .* has no order; sort by another column"):
        sort_indices(pa.table({"a": values}), SortSchema.parse("a/V2"))


def test_codes_give_each_row_its_value_and_null_the_code_past_the_last():
    codes, distinct = dictionary_codes(pa.chunked_array([["b", None], ["a", "b"]]))
    assert distinct.to_pylist() == ["b", "a"]
    assert codes.tolist() == [0, 2, 1, 0]
