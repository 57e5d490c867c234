"""From filters that Spark pushes down to a predicate that every wanted row fulfils.

Spark filters again whatever comes, so that to say less is never wrong.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa
from pyspark.sql import datasource as spark

from windrow.errors import InvalidInput
from windrow.model.operators import comparisons_of
from windrow.model.predicate import Comparison, In, IsNotNull, IsNull, Not, Op, Predicate, StartsWith
from windrow.questions.conditions import all_of, any_of
from windrow.questions.literals import fitted

__all__ = ["spark_filters_to_predicate"]

_OPS: dict[type[spark.Filter], Op] = {getattr(spark, name): op for name, op in comparisons_of("spark").items()}
_MICROSECOND = timedelta(microseconds=1)


def spark_filters_to_predicate(filters: Iterable[spark.Filter], columns: pa.Schema) -> Predicate | None:
    """Return a predicate on some columns that rows of all filters fulfil; None when there is none."""
    return all_of([_implied(each, columns) for each in filters])


def _implied(given: spark.Filter, columns: pa.Schema) -> Predicate | None:
    try:
        predicate = _predicate(given, columns)
        return None if predicate is None else fitted(predicate, columns)
    except (InvalidInput, OverflowError):
        return None


def _predicate(given: Any, columns: pa.Schema) -> Predicate | None:
    if isinstance(given, spark.Not):
        return _negated(given.child, columns)
    name = _column(given, columns)
    if name is None:
        return None
    match given:
        case spark.IsNull():
            return IsNull(name)
        case spark.IsNotNull():
            return IsNotNull(name)
        case spark.StringStartsWith():
            return StartsWith(name, given.value)
        case spark.In():
            values = [value for value in given.value if value is not None]
            return any_of([_compared(name, Op.EQUAL, value, columns) for value in values])
        case spark.EqualNullSafe() if given.value is None:
            return IsNull(name)
        case spark.EqualNullSafe():
            return _compared(name, Op.EQUAL, given.value, columns)
    op = _OPS.get(type(given))
    return None if op is None else _compared(name, op, given.value, columns)


def _negated(given: Any, columns: pa.Schema) -> Predicate | None:
    """Only exact predicates can be negated."""
    name = _column(given, columns)
    if name is None or _is_finer(columns.field(name).type):
        return None
    match given:
        case spark.EqualTo():
            return Comparison(name, Op.NOT_EQUAL, given.value)
        case spark.In() if None not in given.value:
            return Not(In(name, tuple(given.value)))
        case spark.StringStartsWith():
            return Not(StartsWith(name, given.value))
    return None


def _compared(name: str, op: Op, value: Any, columns: pa.Schema) -> Predicate | None:
    if not (isinstance(value, datetime) and _is_finer(columns.field(name).type)):
        return Comparison(name, op, value)
    # Spark sees times that were cut down to a microsecond.
    below = Comparison(name, Op.LESS, value + _MICROSECOND)
    if op is Op.EQUAL:
        return all_of([Comparison(name, Op.GREATER_OR_EQUAL, value), below])
    return below if op is Op.LESS_OR_EQUAL else Comparison(name, op, value)


def _column(given: Any, columns: pa.Schema) -> str | None:
    path: tuple[str, ...] = getattr(given, "attribute", ())
    return path[0] if len(path) == 1 and path[0] in columns.names else None


def _is_finer(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind) and kind.unit == "ns")
