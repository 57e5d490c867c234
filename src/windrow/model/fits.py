"""Values of a query, as a column of a type compares them; None where it is not sure that engines do the same.

DuckDB brings the two sides of a comparison to one type before it compares. A predicate compares exactly, so a value
counts only where both ways give the same.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from datetime import date, datetime, time
from decimal import Decimal
from typing import TypeAlias

import numpy as np

from windrow.model.operators import Literal

__all__ = ["Fit", "day", "double", "each", "moment", "nothing", "only", "singles", "uuid", "whole"]

Fit: TypeAlias = Callable[[tuple[Literal, ...]], list[Literal | None]]
"""All values of one test, each as the column compares it, or None."""

_WHOLE_IN_DOUBLE = 2**53
_EXACT_POWER_OF_TEN = 22
_WHOLE_IN_SINGLE = 2**24
_EXACT_POWER_IN_SINGLE = 10
_TIME = re.compile(
    r"\d{4}-\d{2}-\d{2}(?:[ T]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,6})?)?(?:Z|[+-]\d{2}(?::\d{2})?)?)?", re.ASCII
)
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII)
"""The form in which engines write them: in it, text has the order of the bytes."""
_MIDNIGHT = time()
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)


def nothing(values: tuple[Literal, ...]) -> list[Literal | None]:
    """No value fits."""
    return [None for _ in values]


def each(fit: Callable[[Literal], Literal | None]) -> Fit:
    """Each value fits by itself."""
    return lambda values: [fit(value) for value in values]


def uuid(value: Literal) -> Literal | None:
    """A UUID, as its bytes."""
    return _parsed(_UUID, lambda text: bytes.fromhex(text.replace("-", "")), value)


def only(*kinds: type) -> Callable[[Literal], Literal | None]:
    """Values of these classes, as they are."""
    return lambda value: value if type(value) in kinds else None


def whole(value: Literal) -> Literal | None:
    """A number, for columns of whole numbers."""
    if type(value) is float:
        # The column becomes a double, in which larger whole numbers are not apart.
        return value if math.isfinite(value) and abs(value) < _WHOLE_IN_DOUBLE else None
    return value if type(value) in (int, Decimal) else None


def double(value: Literal) -> Literal | None:
    """A number, for columns of floats of 64 bits."""
    match value:
        case bool():
            return None
        case int():
            return float(value) if abs(value) <= _WHOLE_IN_DOUBLE else None
        case Decimal():
            return _decimal_asdouble(value)
        case float():
            return value
    return None


def _decimal_asdouble(value: Decimal) -> float | None:
    """Where digits and power of ten are exact, their quotient is the nearest double, however it is computed."""
    _, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int) or not -_EXACT_POWER_OF_TEN <= exponent <= 0:
        return None
    return float(value) if int("".join(map(str, digits)) or "0") <= _WHOLE_IN_DOUBLE else None


def _single(value: Literal) -> Literal | None:
    """A number that is the same in both widths compares alike, whichever one the engine takes."""
    wide = double(value)
    if not isinstance(wide, float) or (isinstance(value, Decimal) and Decimal(wide) != value):
        return None
    with np.errstate(over="ignore"):
        narrow = float(np.float32(wide))
    return wide if narrow == wide or math.isnan(wide) else None


def singles(values: tuple[Literal, ...]) -> list[Literal | None]:
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


def moment(value: Literal) -> Literal | None:
    """An instant, or a text in the form of one."""
    if isinstance(value, datetime):
        return value
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day)  # noqa: DTZ001 - a time without a zone is UTC
    return _parsed(_TIME, datetime.fromisoformat, value)


def day(value: Literal) -> Literal | None:
    """A date, a text in the form of one, or the time at which one begins."""
    if isinstance(value, datetime) and value.tzinfo is None and value.time() == _MIDNIGHT:
        return value.date()
    return value if type(value) is date else _parsed(_DATE, date.fromisoformat, value)


def _parsed(form: re.Pattern[str], parse: Callable[[str], Literal], value: Literal) -> Literal | None:
    if not isinstance(value, str) or not form.fullmatch(value):
        return None
    try:
        return parse(value)
    except ValueError:
        return None
