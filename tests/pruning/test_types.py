"""Where literals fall among the values that a column can store."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest

from windrow.pruning.types import (
    BINARY,
    DATE,
    FLOAT,
    OPAQUE,
    SIGNED,
    TEXT,
    TIMESTAMPS,
    UNSIGNED,
    ColumnType,
    decimal,
)

INF, NAN = math.inf, math.nan
CENTS = decimal(2)
NOON = datetime(1970, 1, 2, 12, tzinfo=UTC)
DAY = 86_400

EXACT = [
    (SIGNED, 7, 7, 8),
    (SIGNED, -7, -7, -6),
    (SIGNED, True, 1, 2),
    (SIGNED, 7.0, 7, 8),
    (SIGNED, Decimal("7.00"), 7, 8),
    (SIGNED, 2**70, 2**70, 2**70 + 1),
    (UNSIGNED, 2**64 - 1, 2**64 - 1, 2**64),
    (CENTS, Decimal("1.50"), 150, 151),
    (CENTS, 1.5, 150, 151),
    (CENTS, -3, -300, -299),
    (decimal(-2), 300, 3, 4),
    (DATE, date(1970, 1, 2), 1, 2),
    (DATE, datetime(1970, 1, 2), 1, 2),  # noqa: DTZ001  # a time without a zone is UTC
    (TIMESTAMPS["s"], NOON, 129_600, 129_601),
    (TIMESTAMPS["ms"], NOON, 129_600_000, 129_600_001),
    (TIMESTAMPS["us"], NOON + timedelta(microseconds=1), 129_600_000_001, 129_600_000_002),
    (TIMESTAMPS["ns"], NOON, 129_600_000_000_000, 129_600_000_000_001),
    (TIMESTAMPS["us"], datetime(1970, 1, 1, 1, tzinfo=timezone(timedelta(hours=1))), 0, 1),
    (TIMESTAMPS["us"], date(1969, 12, 31), -DAY * 10**6, -DAY * 10**6 + 1),
    (TEXT, "é", b"\xc3\xa9", b"\xc3\xa9\x00"),
    (TEXT, "", b"", b"\x00"),
    (BINARY, b"\xff", b"\xff", b"\xff\x00"),
]

BETWEEN = [
    (SIGNED, 1.5, 2),
    (SIGNED, -1.5, -1),
    (SIGNED, Decimal("0.0001"), 1),
    (SIGNED, Decimal("1e-99999999"), 1),
    (SIGNED, Decimal("-1e-99999999"), 0),
    (SIGNED, 5e-324, 1),
    (CENTS, Decimal("1.501"), 151),
    (CENTS, 0.1, 11),
    (CENTS, 0.7, 70),
    (decimal(-2), 299, 3),
    (DATE, NOON, 2),
    (DATE, datetime(1969, 12, 31, 12, tzinfo=UTC), 0),
    (TIMESTAMPS["s"], NOON + timedelta(microseconds=1), 129_601),
    (TIMESTAMPS["ms"], datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC), 0),
]


@pytest.mark.parametrize(("column_type", "literal", "at", "after"), EXACT)
def test_a_value_that_can_be_stored_is_at_its_own_place(
    column_type: ColumnType, literal: Any, at: Any, after: Any
) -> None:
    assert column_type.around(literal) == (at, after)


@pytest.mark.parametrize(("column_type", "literal", "next_above"), BETWEEN)
def test_a_value_that_cannot_be_stored_lies_between_two_that_can(
    column_type: ColumnType, literal: Any, next_above: int
) -> None:
    assert column_type.around(literal) == (next_above, next_above)


@pytest.mark.parametrize("column_type", [SIGNED, UNSIGNED, CENTS, decimal(2, wide=True)])
@pytest.mark.parametrize(
    ("literal", "place"),
    [(INF, INF), (-INF, -INF), (NAN, INF), (Decimal("Infinity"), INF), (Decimal("NaN"), INF), (Decimal("sNaN"), INF)],
)
def test_what_is_no_number_lies_outside_of_all_exact_numbers(
    column_type: ColumnType, literal: Any, place: float
) -> None:
    assert column_type.around(literal) == (place, place)


def test_the_largest_decimals_take_no_time() -> None:
    at, after = SIGNED.around(Decimal("-1e999999999"))
    assert at == after - 1
    assert at < -(10**4000)


class TestFloats:
    """Positions of floats follow their order and leave no room between neighbours."""

    @pytest.mark.parametrize("value", [0.0, 1.0, -1.0, 5e-324, -5e-324, 1.7976931348623157e308, INF, -INF, 0.1])
    def test_the_next_position_is_that_of_the_next_float(self, value: float) -> None:
        at, after = FLOAT.around(value)
        assert after == at + 1
        assert FLOAT.value(at) == value
        beyond = FLOAT.value(after)
        assert beyond == math.nextafter(value, INF) if value < INF else math.isnan(beyond)

    def test_both_zeros_are_one(self) -> None:
        assert FLOAT.around(-0.0) == FLOAT.around(0.0) == FLOAT.around(0)
        assert FLOAT.value(FLOAT.around(-5e-324)[1]) == 0.0

    def test_nan_is_the_last_of_all(self) -> None:
        first, end = FLOAT.limits
        assert FLOAT.around(NAN) == (end - 1, end)
        assert FLOAT.around(-INF)[0] == first
        assert FLOAT.around(INF)[1] == end - 1

    @pytest.mark.parametrize(
        ("literal", "below", "above"),
        [
            (Decimal("0.1"), 0.09999999999999999, 0.1),
            (2**53 + 1, 2.0**53, 2.0**53 + 2),
            (10**400, 1.7976931348623157e308, INF),
            (-(10**400), -INF, -1.7976931348623157e308),
            (Decimal("1e-400"), 0.0, 5e-324),
            (Decimal("-1e-99999999"), -5e-324, 0.0),
            (Decimal("1e99999999"), 1.7976931348623157e308, INF),
        ],
        ids=lambda value: format(value, ".3g") if isinstance(value, float) else type(value).__name__,
    )
    def test_a_number_that_is_no_float_lies_between_two_floats(self, literal: Any, below: float, above: float) -> None:
        at, after = FLOAT.around(literal)
        assert at == after
        assert (FLOAT.value(at - 1), FLOAT.value(at)) == (below, above)


@pytest.mark.parametrize(
    ("column_type", "accepted"),
    [
        (SIGNED, {"number"}),
        (FLOAT, {"number"}),
        (CENTS, {"number"}),
        (DATE, {"time"}),
        (TIMESTAMPS["ns"], {"time"}),
        (TEXT, {"text"}),
        (BINARY, {"binary"}),
        (OPAQUE, set()),
    ],
)
def test_which_literals_compare(column_type: ColumnType, accepted: set[str]) -> None:
    literals = {
        "number": (1, 1.5, True, Decimal(1)),
        "time": (NOON, date(2020, 1, 1)),
        "text": ("a",),
        "binary": (b"a",),
    }
    for kind, values in literals.items():
        assert {column_type.compares(value) for value in values} == {kind in accepted}
