"""Random tables and predicates: row groups that are skipped hold no matching row, and no more are read than need be."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from windrow.model.ordering import comparable
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
    StartsWith,
    columns_of,
    matches,
    negation_normal_form,
)
from windrow.parquet.footer import read_footer
from windrow.sidecar import Sidecar
from windrow.sidecar.convert import Source, convert
from windrow.sidecar.pruning import prune

NAN = math.nan
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
NUMBERS = st.one_of(
    st.integers(-4, 300),
    st.floats(-4, 300),
    st.decimals(-4, 300, places=2),
    st.sampled_from([2**31, 2**63, 2**64, 2**70, -(2**70), math.inf, -math.inf, NAN, -0.0, True, Decimal("0.001")]),
)
MOMENTS = st.one_of(
    st.datetimes(datetime(1969, 12, 31), datetime(1970, 1, 3)),  # noqa: DTZ001
    st.dates(date(1969, 12, 30), date(1970, 1, 4)),
)
TEXTS = st.text("ab\x00é\U0010ffff", max_size=3) | st.text("ab", min_size=7, max_size=10)
BLOBS = st.binary(max_size=3) | st.just(b"\xff" * 9)
CLOCKS = st.datetimes(datetime(1969, 12, 31), datetime(1970, 1, 3))  # noqa: DTZ001


@dataclass(frozen=True)
class Kind:
    """A type of column: its values, the literals that it is compared with, and the step from one value to the next."""

    type: pa.DataType
    values: Any
    literals: Any
    step: Fraction | None = None

    @property
    def is_float(self) -> bool:
        return pa.types.is_floating(self.type)


def whole(kind: pa.DataType, low: int, high: int) -> Kind:
    return Kind(kind, st.integers(0, 4) | st.integers(low, high) | st.sampled_from([low, high]), NUMBERS, Fraction(1))


def fraction(kind: pa.DataType, places: int, limit: int) -> Kind:
    values = st.decimals(-4, 4, places=places) | st.decimals(-limit, limit, places=places)
    return Kind(kind, values, NUMBERS, Fraction(1, 10**places))


def floating(kind: pa.DataType, width: int) -> Kind:
    values = st.floats(width=width) | st.sampled_from([0.0, -0.0, 1.0, 2.5, NAN])
    return Kind(kind, values, NUMBERS | values)


def moment(unit: str, microseconds: Fraction, zone: str | None = None) -> Kind:
    values = CLOCKS.map(lambda at: at.replace(microsecond=at.microsecond // 1000 * 1000))
    return Kind(pa.timestamp(unit, zone), values, MOMENTS, microseconds)


KINDS: dict[str, Kind] = {
    **{
        f"int{bits}": whole(getattr(pa, f"int{bits}")(), -(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        for bits in (8, 16, 32, 64)
    },
    **{f"uint{bits}": whole(getattr(pa, f"uint{bits}")(), 0, 2**bits - 1) for bits in (8, 16, 32, 64)},
    "bool": Kind(pa.bool_(), st.booleans(), NUMBERS, Fraction(1)),
    "float16": floating(pa.float16(), 16),
    "float32": floating(pa.float32(), 32),
    "float64": floating(pa.float64(), 64),
    "decimal in 32 bits": fraction(pa.decimal128(7, 2), 2, 99_999),
    "decimal in 64 bits": fraction(pa.decimal128(17, 3), 3, 10**13),
    "decimal in bytes": fraction(pa.decimal128(30, 5), 5, 10**20),
    "decimal in many bytes": fraction(pa.decimal256(60, 1), 1, 10**50),
    "date": Kind(pa.date32(), st.dates(date(1969, 12, 30), date(1970, 1, 4)), MOMENTS, Fraction(86_400_000_000)),
    "milliseconds": moment("ms", Fraction(1000)),
    "microseconds": moment("us", Fraction(1)),
    "microseconds in a zone": moment("us", Fraction(1), "Europe/Oslo"),
    "nanoseconds": moment("ns", Fraction(1, 1000)),
    "dictionary": Kind(pa.dictionary(pa.int32(), pa.string()), TEXTS, TEXTS),
    "text": Kind(pa.string(), TEXTS, TEXTS),
    "large text": Kind(pa.large_string(), TEXTS, TEXTS),
    "binary": Kind(pa.binary(), BLOBS, BLOBS),
    "fixed binary": Kind(pa.binary(3), st.binary(min_size=3, max_size=3), BLOBS),
    "time": Kind(pa.time64("us"), st.times(), None),
    "list": Kind(pa.list_(pa.int64()), st.lists(st.integers(0, 3), max_size=2), None),
    "struct": Kind(pa.struct([("a", pa.int64()), ("b", pa.int64())]), st.fixed_dictionaries({"a": st.just(1)}), None),
}

Row = dict[str, Any]


@st.composite
def tables(draw: st.DrawFn) -> tuple[dict[str, Kind], pa.Table]:
    names = draw(st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=3, unique=True))
    kinds = {name: KINDS[name] for name in names}
    rows = draw(st.integers(1, 20))
    cells = {
        name: pa.array(draw(st.lists(st.none() | kind.values, min_size=rows, max_size=rows)), kind.type)
        for name, kind in kinds.items()
    }
    return kinds, pa.table(cells)


def leaves(name: str, kind: Kind) -> st.SearchStrategy[Predicate]:
    column = st.just(name)
    nulls = [st.builds(IsNull, column), st.builds(IsNotNull, column)]
    if kind.literals is None:
        return st.one_of(nulls)
    tests = [
        st.builds(Comparison, column, st.sampled_from(Op), kind.literals),
        st.builds(In, column, st.lists(kind.literals, max_size=4).map(tuple)),
        st.builds(Between, column, kind.literals, kind.literals),
    ]
    prefix = [st.builds(StartsWith, column, TEXTS)] if kind.literals is TEXTS else []
    return st.one_of(*tests, *tests, *prefix, *nulls)


def predicates(kinds: dict[str, Kind]) -> st.SearchStrategy[Predicate]:
    def joined(parts: st.SearchStrategy[Predicate]) -> st.SearchStrategy[Predicate]:
        several = st.lists(parts, max_size=3).map(tuple)
        return st.builds(And, several) | st.builds(Or, several) | st.builds(Not, parts)

    single = st.sampled_from(sorted(kinds)).flatmap(lambda name: leaves(name, kinds[name]))
    return st.recursive(single, joined, max_leaves=5)


def written(table: pa.Table, row_group_size: int, **options: Any) -> bytes:
    file = io.BytesIO()
    pq.write_table(table, file, row_group_size=row_group_size, **options)
    return file.getvalue()


def sidecar_of(data: bytes) -> Sidecar:
    return Sidecar.of(convert(Source(read_footer(data, name="t"), len(data), read=lambda at, n: data[at : at + n])))


def rows_of(table: pa.Table) -> list[Row]:
    for position, field in enumerate(table.schema):
        if pa.types.is_float16(field.type):
            table = table.set_column(position, field.name, table.column(position).cast(pa.float32()))
    return table.to_pylist()


def grouped(rows: Sequence[Row], size: int) -> list[Sequence[Row]]:
    return [rows[start : start + size] for start in range(0, len(rows), size)]


# ---- the slow way: one row group and one question at a time, by its smallest and largest value


def may_match(predicate: Predicate, kinds: dict[str, Kind], rows: Sequence[Row]) -> bool:
    match predicate:
        case And(parts):
            return all(may_match(part, kinds, rows) for part in parts)
        case Or(parts):
            return any(may_match(part, kinds, rows) for part in parts)
    test: Any = predicate.part if isinstance(predicate, Not) else predicate
    kind, values = kinds[test.column], [row[test.column] for row in rows if row[test.column] is not None]
    if pa.types.is_nested(kind.type):
        return True
    if isinstance(predicate, IsNull):
        return len(values) < len(rows)
    if isinstance(predicate, IsNotNull) or not values:
        return bool(values)
    # Bounds never tell of NaN, so a float column may always hold one; and when it holds nothing else it has no bounds.
    if kind.is_float and matches(predicate, {test.column: NAN}):
        return True
    numbers = [value for value in values if comparable(value)[0] == 0] or [-math.inf, math.inf]
    return some_value_matches(predicate, test, kind, min(numbers), max(numbers))


def some_value_matches(predicate: Predicate, test: Any, kind: Kind, low: Any, high: Any) -> bool:
    """Whether a value that the column can hold lies between the two and matches; if one does, one of these few does."""
    if high in ("", b""):
        high = "\U0010ffff" * 9 if high == "" else b"\xff" * 99  # empty bounds are not stored
    around = [value for literal in literals(test) for value in neighbours(kind, literal)]
    inside = [value for value in around if comparable(low) <= comparable(value) <= comparable(high)]
    return any(matches(predicate, {test.column: value}) for value in (low, high, *inside))


def literals(test: Any) -> tuple[Any, ...]:
    match test:
        case Comparison(_, _, value):
            return (value,)
        case In(_, values):
            return values
        case Between(_, low, high):
            return low, high
    return (test.prefix,)


def neighbours(kind: Kind, literal: Any) -> list[Any]:
    """The literal, or the values next to it that the column can hold."""
    if kind.step is None:
        return [literal] if not kind.is_float else floats_around(literal)
    if isinstance(literal, date):
        ticks = Fraction((comparable(literal)[1] - EPOCH) // timedelta(microseconds=1)) / kind.step
        return [EPOCH + timedelta(microseconds=float(at * kind.step)) for at in (math.floor(ticks), math.ceil(ticks))]
    if not math.isfinite(literal):
        return []
    ticks = Fraction(literal) / kind.step
    return [Decimal(at) * kind.step.numerator / kind.step.denominator for at in (math.floor(ticks), math.ceil(ticks))]


def floats_around(literal: Any) -> list[float]:
    nearest = float(literal)
    return [math.nextafter(nearest, -math.inf), nearest, math.nextafter(nearest, math.inf)]


# ---- what must hold


QUESTIONS = 5
"""Predicates for each table."""


def check(data: st.DataObject) -> None:
    kinds, table = data.draw(tables(), label="table")
    size = data.draw(st.integers(1, 6), label="row group size")
    file = written(table, size, store_decimal_as_integer=data.draw(st.booleans(), label="decimals as integers"))
    sidecar, groups = sidecar_of(file), grouped(rows_of(table), size)
    for _ in range(QUESTIONS):
        predicate = data.draw(predicates(kinds), label="predicate")
        kept = prune(sidecar, predicate).tolist()
        assert lost(predicate, groups, kept) == []
        # pyarrow bounds a slice of a dictionary column by the whole dictionary: row groups may be kept in vain there.
        if "dictionary" in columns_of(predicate):
            continue
        assert kept == [may_match(negation_normal_form(predicate), kinds, group) for group in groups]


def lost(predicate: Predicate, groups: Sequence[Sequence[Row]], kept: Sequence[bool]) -> list[Row]:
    """The matching rows of row groups that were not kept."""
    skipped = [group for group, keep in zip(groups, kept, strict=True) if not keep]
    return [row for group in skipped for row in group if matches(predicate, row)]


PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


@settings(PATIENT, max_examples=400 // QUESTIONS)
@given(st.data())
def test_no_row_is_lost_and_no_row_group_is_kept_in_vain(data: st.DataObject) -> None:
    check(data)


@pytest.mark.long
@settings(PATIENT, max_examples=10_000 // QUESTIONS)
@given(st.data())
def test_the_same_ten_thousand_times(data: st.DataObject) -> None:
    check(data)


def test_all_text_starts_with_nothing() -> None:
    sidecar = sidecar_of(written(pa.table({"text": ["", "a", None]}), 1))
    assert prune(sidecar, StartsWith("text", "")).tolist() == [True, True, False]
    assert prune(sidecar, Not(StartsWith("text", ""))).tolist() == [False, False, False]


FILTERED = sorted(name for name, kind in KINDS.items() if kind.literals is not None and name != "bool")


@settings(PATIENT, max_examples=150)
@given(st.data())
def test_no_row_is_lost_by_bloom_filters(data: st.DataObject) -> None:
    kind = KINDS[data.draw(st.sampled_from(FILTERED))]
    table = pa.table({"c": pa.array(data.draw(st.lists(kind.values, min_size=1, max_size=20)), kind.type)})
    rows = rows_of(table)
    wanted = st.sampled_from([row["c"] for row in rows]) | kind.literals
    predicate = In("c", data.draw(st.lists(wanted, min_size=1, max_size=3).map(tuple)))
    kept = prune(sidecar_of(written(table, 4, bloom_filter_options={"c": {"ndv": 20}})), predicate).tolist()
    assert lost(predicate, grouped(rows, 4), kept) == []


FLOATS = [1.0, 2.0, None, NAN, -math.inf, 3.0, math.inf, None, NAN, NAN, -0.0, 0.0, 5.0, None, None, 1.5]
CONDITIONS = {
    "x > 4": Comparison("x", Op.GREATER, 4),
    "x >= 5": Comparison("x", Op.GREATER_OR_EQUAL, 5),
    "x > 'inf'::double": Comparison("x", Op.GREATER, math.inf),
    "x = 'nan'::double": Comparison("x", Op.EQUAL, NAN),
    "x <> 5": Comparison("x", Op.NOT_EQUAL, 5),
    "not x < 4": Not(Comparison("x", Op.LESS, 4)),
    "x < 0": Comparison("x", Op.LESS, 0),
    "x <= 'nan'::double": Comparison("x", Op.LESS_OR_EQUAL, NAN),
    "x between 0 and 1": Between("x", 0, 1),
    "x in (0, 5)": In("x", (0, 5)),
    "x not in (0, 5)": Not(In("x", (0, 5))),
    "x is null or x > 9": Or((IsNull("x"), Comparison("x", Op.GREATER, 9))),
}


@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()], ids=str)
def test_a_native_table_finds_no_row_in_what_is_skipped(condition: str, kind: pa.DataType) -> None:
    table = pa.table({"place": range(len(FLOATS)), "x": pa.array(FLOATS, kind)})
    with duckdb.connect() as database:
        database.register("given", table)
        database.execute("create table native as select * from given")
        found = [place for (place,) in database.execute(f"select place from native where {condition}").fetchall()]
    kept = prune(sidecar_of(written(table, 2)), CONDITIONS[condition])
    assert {place // 2 for place in found} <= set(kept.nonzero()[0].tolist())
    assert sorted(found) == [place for place, x in enumerate(FLOATS) if matches(CONDITIONS[condition], {"x": x})]
