"""Values of earlier schema epochs as DuckDB reads them: converted as the rule of each change of type says.

A conversion is exact or none: numbers that would be rounded do not fit. Times without a zone are UTC, whatever the zone
of a connection.
"""

from __future__ import annotations

import pyarrow as pa
from pyarrow import types

from windrow.model.epochs import OldValues
from windrow.model.points import is_text
from windrow.questions.spelling import sql_name

__all__ = ["Named", "can_be_cast", "new_value", "unfit"]

_DIGITS = 38
"""DuckDB's decimals have no more."""
_OFFSET = "':.*([zZ]|[+-][0-9:]+)$'"
"""Where a time of a day ends with an offset from UTC."""

Named = tuple[pa.DataType, str]
"""A type, and DuckDB's name of it."""


def can_be_cast(kind: pa.DataType) -> bool:
    """Say whether values of a type can be converted into other types, and others into it."""
    if types.is_decimal(kind):
        return bool(kind.precision <= _DIGITS)
    is_number = types.is_integer(kind) or (types.is_floating(kind) and not types.is_float16(kind))
    is_time = types.is_timestamp(kind) or types.is_date32(kind)
    return bool(is_number or is_time or types.is_boolean(kind) or is_text(kind))


def new_value(column: str, before: Named, after: Named, rule: OldValues) -> str:
    """Return the SQL of a column after a change of its type."""
    if rule is OldValues.NULL:
        return f"CAST(NULL AS {after[1]})"
    if rule is OldValues.CAST:
        # Every value was looked at; one that cannot be converted is damage, which must not read as null.
        found = _converted(column, before, after, "CAST")
    else:
        tried, exact = _converted(column, before, after), _exactly(column, before, after)
        found = tried if exact is None else f"CASE WHEN {exact} THEN {tried} END"
    return f"(({found}) AT TIME ZONE 'UTC')" if _has_zone(after[0]) else found


def unfit(column: str, before: Named, after: Named) -> str:
    """Return the SQL of the condition that a value cannot be converted exactly."""
    exact = _exactly(column, before, after) or f"{_converted(column, before, after)} IS NOT NULL"
    return f"{sql_name(column)} IS NOT NULL AND NOT coalesce({exact}, false)"


def _value(column: str, kind: pa.DataType) -> str:
    return f"({sql_name(column)} AT TIME ZONE 'UTC')" if _has_zone(kind) else sql_name(column)


def _without_zone(named: Named) -> str:
    return "TIMESTAMP" if _has_zone(named[0]) else named[1]


def _converted(column: str, before: Named, after: Named, cast: str = "TRY_CAST") -> str:
    """Return the SQL of a value with its new type; of an instant, the time in UTC."""
    value, new = _value(column, before[0]), _without_zone(after)
    plain = f"{cast}({value} AS {new})"
    if not (is_text(before[0]) and types.is_timestamp(after[0])):
        return plain
    # DuckDB leaves an offset out where it is not told that there may be one.
    moment = f"{cast}({cast}({value} AS TIMESTAMPTZ) AT TIME ZONE 'UTC' AS {new})"
    return f"CASE WHEN regexp_matches({value}, {_OFFSET}) THEN {moment} ELSE {plain} END"


def _exactly(column: str, before: Named, after: Named) -> str | None:
    """Return the SQL of the condition that a value is converted exactly; None where it is, if it can be converted."""
    value, tried, kind = _value(column, before[0]), _converted(column, before, after), after[0]
    if is_text(kind):
        return None
    if not is_text(before[0]):
        return f"TRY_CAST({tried} AS {_without_zone(before)}) = {value}"
    if types.is_integer(kind):
        return f"TRY_CAST({value} AS DECIMAL({_DIGITS}, 10)) = {tried}"
    if types.is_decimal(kind):
        return f"TRY_CAST({value} AS DECIMAL({_DIGITS}, {_DIGITS - kind.precision + kind.scale})) = {tried}"
    return f"TRY_CAST({value} AS TIMESTAMP) = {tried}" if types.is_date(kind) else None


def _has_zone(kind: pa.DataType) -> bool:
    return bool(types.is_timestamp(kind) and kind.tz is not None)
