"""What a row must be. A row is one point: one moment, one value or event.

Metrics have a `metric_name`, a `value`, a timestamp and, if they like, a `metric_type`; every tag is its own column.
Any other signal only needs a timestamp. Further columns are welcome in both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import StrEnum

import pyarrow as pa

from windrow.errors import InvalidInput
from windrow.model.column_types import TypeFamily, type_of
from windrow.model.names import name_problems
from windrow.model.sort_schema import SortSchema
from windrow.model.window import TIMESTAMP_UNITS

__all__ = [
    "METRIC_NAME",
    "METRIC_TYPE",
    "VALUE",
    "Signal",
    "check_point_schema",
    "is_text",
    "required_columns",
    "signal_of",
    "tag_columns",
]

METRIC_NAME = "metric_name"
METRIC_TYPE = "metric_type"
"""A small integer: 0 is a gauge, as are points without a type, 1 is a sum."""
VALUE = "value"


class Signal(StrEnum):
    """What the points of a table are."""

    METRICS = "metrics"
    EVENTS = "events"


def signal_of(sort_schema: SortSchema) -> Signal:
    """Say what a table holds by what it is sorted by: metrics when the schema names the metric."""
    return Signal.METRICS if METRIC_NAME in sort_schema.column_names else Signal.EVENTS


def check_point_schema(schema: pa.Schema, *, signal: Signal, timestamp: str, timestamp_unit: str | None) -> None:
    """Refuse a schema whose rows cannot be points of the signal; the error names all that is wrong with it."""
    problems = list(name_problems(schema.names))
    problems += _timestamp_problems(schema, timestamp, timestamp_unit)
    if signal is Signal.METRICS:
        problems += _column_problems(schema, METRIC_NAME, is_text, "text")
        problems += _column_problems(schema, VALUE, _is_number, "a number")
        if METRIC_TYPE in schema.names:
            problems += _column_problems(schema, METRIC_TYPE, pa.types.is_integer, "an integer")
    if problems:
        raise InvalidInput(f"these rows cannot be {signal}: {'; '.join(problems)}")


def required_columns(signal: Signal) -> tuple[str, ...]:
    """Return the columns that are null in no point; a point without a timestamp lies in the overflow window."""
    return (METRIC_NAME, VALUE) if signal is Signal.METRICS else ()


def tag_columns(
    schema: pa.Schema, *, declared: tuple[str, ...] | None, timestamp: str, signal: Signal
) -> tuple[str, ...]:
    """Return the columns that name a series: the declared ones, else all text but the metric's name."""
    if declared is not None:
        return declared
    others = {timestamp, METRIC_NAME} if signal is Signal.METRICS else {timestamp}
    return tuple(field.name for field in schema if is_text(field.type) and field.name not in others)


def is_text(kind: pa.DataType) -> bool:
    """Say whether a column of this type holds text, dictionary-encoded or plain."""
    return type_of(kind).family is TypeFamily.TEXT


def _is_number(kind: pa.DataType) -> bool:
    return not pa.types.is_dictionary(kind) and type_of(kind).family in (
        TypeFamily.WHOLE,
        TypeFamily.FLOAT,
        TypeFamily.DECIMAL,
    )


def _timestamp_problems(schema: pa.Schema, timestamp: str, unit: str | None) -> Iterator[str]:
    yield from _column_problems(schema, timestamp, _tells_time, "a timestamp, a date or an integer with timestamp_unit")
    if unit is not None and unit not in TIMESTAMP_UNITS:
        yield f"timestamp_unit is {unit!r}, use one of {', '.join(TIMESTAMP_UNITS)}"
    if unit is None and any(field.name == timestamp and pa.types.is_integer(field.type) for field in schema):
        yield f"column {timestamp!r} holds integers, set timestamp_unit to one of {', '.join(TIMESTAMP_UNITS)}"


def _tells_time(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind) or pa.types.is_date(kind) or pa.types.is_integer(kind))


def _column_problems(schema: pa.Schema, name: str, fits: Callable[[pa.DataType], bool], expected: str) -> Iterator[str]:
    if name not in schema.names:
        yield f"column {name!r} is missing, add it as {expected}"
    for field in schema:
        if field.name == name and not fits(field.type):
            yield f"column {name!r} is {field.type}, make it {expected}"
