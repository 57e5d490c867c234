"""Values of a query, read as the engine reads them against a column of a type; where that is not sure, not at all.

DuckDB brings the two sides of a comparison to one type before it compares. A predicate compares exactly, so a value
counts only where both ways give the same.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from windrow.model.operators import Literal, Test, operator_of, with_literals
from windrow.model.predicate import And, Predicate, negation_normal_form
from windrow.questions.conditions import each_test

__all__ = ["fitted", "fitted_exactly", "fitted_where_typed"]

_WHOLE_IN_DOUBLE = 2**53
_EXACT_POWER_OF_TEN = 22
_WHOLE_IN_SINGLE = 2**24
_EXACT_POWER_IN_SINGLE = 10
_TIME = re.compile(
    r"\d{4}-\d{2}-\d{2}(?:[ T]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,6})?)?(?:Z|[+-]\d{2}(?::\d{2})?)?)?", re.ASCII
)
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII)
"""The form in which engines write them: in it, text has the order of the bytes."""
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)


def fitted(predicate: Predicate, schema: pa.Schema) -> Predicate | None:
    """Return what a predicate says of the columns of a schema, with values of their types."""
    return each_test(predicate, lambda test: _fitted_test(test, schema))


def fitted_exactly(predicate: Predicate, schema: pa.Schema) -> Predicate | None:
    """Return the same where nothing of the predicate is lost by it, else None."""
    tests: list[Predicate | None] = []

    def fit(test: Test) -> Predicate | None:
        tests.append(_fitted_test(test, schema))
        return tests[-1]

    found = each_test(negation_normal_form(predicate), fit)
    return None if None in tests else found


def fitted_where_typed(predicate: Predicate, schema: pa.Schema) -> Predicate:
    """Return the same with values of the types of those columns that the schema has; other tests stay as they are."""

    def fit(test: Test) -> Predicate | None:
        return test if schema.get_field_index(test.column) < 0 else _fitted_test(test, schema)

    return each_test(negation_normal_form(predicate), fit) or And(())


def _fitted_test(test: Test, schema: pa.Schema) -> Test | None:
    if schema.get_field_index(test.column) < 0:
        return None
    column_type = schema.field(test.column).type
    kind = column_type.value_type if pa.types.is_dictionary(column_type) else column_type
    operator = operator_of(test)
    if operator.is_about_text and not _is_text(kind):
        return None
    found = _fitted_values(operator.literals(test), kind)
    return None if found is None else with_literals(test, found)


def _fitted_values(values: tuple[Literal, ...], kind: pa.DataType) -> tuple[Literal, ...] | None:
    fit = next((fit for applies, fit in _FITS if applies(kind)), None)
    found = _singles(values) if fit is _single else [None if fit is None else fit(value) for value in values]
    return None if None in found else tuple(value for value in found if value is not None)


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _is_bytes(kind: pa.DataType) -> bool:
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind))


def _is_uuid(kind: pa.DataType) -> bool:
    return isinstance(kind, pa.UuidType)


def _uuid(value: Literal) -> Literal | None:
    return _parsed(_UUID, lambda text: bytes.fromhex(text.replace("-", "")), value)


def _only(*kinds: type) -> Callable[[Literal], Literal | None]:
    return lambda value: value if type(value) in kinds else None


def _whole(value: Literal) -> Literal | None:
    if type(value) is float:
        # The column becomes a double, in which larger whole numbers are not apart.
        return value if math.isfinite(value) and abs(value) < _WHOLE_IN_DOUBLE else None
    return value if type(value) in (int, Decimal) else None


def _double(value: Literal) -> Literal | None:
    match value:
        case bool():
            return None
        case int():
            return float(value) if abs(value) <= _WHOLE_IN_DOUBLE else None
        case Decimal():
            return _decimal_as_double(value)
        case float():
            return value
    return None


def _decimal_as_double(value: Decimal) -> float | None:
    """Where digits and power of ten are exact, their quotient is the nearest double, however it is computed."""
    _, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int) or not -_EXACT_POWER_OF_TEN <= exponent <= 0:
        return None
    return float(value) if int("".join(map(str, digits)) or "0") <= _WHOLE_IN_DOUBLE else None


def _single(value: Literal) -> Literal | None:
    """A number that is the same in both widths compares alike, whichever one the engine takes."""
    wide = _double(value)
    if not isinstance(wide, float) or (isinstance(value, Decimal) and Decimal(wide) != value):
        return None
    with np.errstate(over="ignore"):
        narrow = float(np.float32(wide))
    return wide if narrow == wide or math.isnan(wide) else None


def _singles(values: tuple[Literal, ...]) -> list[Literal | None]:
    """DuckDB compares floats of 32 bits with decimals as floats of 32 bits, and with doubles as doubles."""
    are_decimals = all(type(value) in (int, Decimal) for value in values)
    return [_decimal_as_single(value) if are_decimals else _single(value) for value in values]


def _decimal_as_single(value: Literal) -> Literal | None:
    """Where digits and power of ten are exact, their quotient is the nearest float."""
    if not isinstance(value, Decimal):
        return _single(value)
    sign, digits, exponent = value.as_tuple()
    number = int("".join(map(str, digits)) or "0")
    if not isinstance(exponent, int) or not -_EXACT_POWER_IN_SINGLE <= exponent <= 0 or number > _WHOLE_IN_SINGLE:
        return None
    return float((-1 if sign else 1) * np.float32(number) / np.float32(10**-exponent))


def _time(value: Literal) -> Literal | None:
    if isinstance(value, datetime):
        return value
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day)  # noqa: DTZ001 - a time without a zone is UTC
    return _parsed(_TIME, datetime.fromisoformat, value)


def _day(value: Literal) -> Literal | None:
    return value if type(value) is date else _parsed(_DATE, date.fromisoformat, value)


def _parsed(form: re.Pattern[str], parse: Callable[[str], Literal], value: Literal) -> Literal | None:
    if not isinstance(value, str) or not form.fullmatch(value):
        return None
    try:
        return parse(value)
    except ValueError:
        return None


_FITS: tuple[tuple[Callable[[pa.DataType], Any], Callable[[Literal], Literal | None]], ...] = (
    (_is_text, _only(str)),
    (_is_bytes, _only(bytes)),
    (_is_uuid, _uuid),
    (pa.types.is_boolean, _only(bool)),
    (pa.types.is_integer, _whole),
    (pa.types.is_float64, _double),
    (pa.types.is_float32, _single),
    (pa.types.is_timestamp, _time),
    (pa.types.is_date32, _day),
    (pa.types.is_decimal, _only(int, Decimal)),
)
