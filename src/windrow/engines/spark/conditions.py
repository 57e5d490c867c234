"""A predicate spelled as a condition of Spark's SQL that selects the same rows as DuckDB's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa

from windrow.errors import InvalidInput
from windrow.model.operators import Engine, Literal, Test, operator_of
from windrow.model.predicate import Predicate, with_tests
from windrow.questions.literals import fitted
from windrow.questions.spelling import Dialect, spelled
from windrow.questions.where import parse_where

__all__ = ["exact_predicate", "spark_condition", "spark_name", "spark_text"]


def exact_predicate(where: str, schema: pa.Schema) -> Predicate | None:
    """Return the predicate that selects exactly what a condition selects, None where there is none."""
    written = {name.lower(): name for name in schema.names}
    if len(written) < len(schema.names):
        return None
    try:
        return _exactly(parse_where(where), schema, written)
    except InvalidInput:
        return None


def _exactly(predicate: Predicate, schema: pa.Schema, written: Mapping[str, str]) -> Predicate:
    def change(test: Test) -> Predicate:
        column = written.get(test.column.lower())
        found = None if column is None else fitted(replace(test, column=column), schema)
        if found is None or Engine.SPARK not in operator_of(test).sql:
            raise InvalidInput(f"predicate on {test.column!r}: it is not surely read alike by all engines")
        return found

    return with_tests(predicate, change)


def spark_condition(predicate: Predicate, types: Mapping[str, pa.DataType]) -> str:
    """Return the condition; `types` are those of the columns."""
    dialect = Dialect(spark_name, lambda column, literal: _value(literal, types[column]), Engine.SPARK)
    return spelled(predicate, dialect)


def spark_name(text: str) -> str:
    """A name as Spark writes it."""
    return "`" + text.replace("`", "``") + "`"


def spark_text(text: str) -> str:
    """A text as Spark writes it, by its bytes: what a backslash means in others is a matter of settings."""
    return f"CAST(X'{text.encode().hex()}' AS STRING)"


def _value(value: Literal, kind: pa.DataType) -> str:
    """A value of its own type."""
    match value:
        case bool():
            return "TRUE" if value else "FALSE"
        case str():
            return spark_text(value)
        case bytes():
            return f"X'{value.hex()}'"
        case float():
            return f"CAST('{value!r}' AS DOUBLE)"
        case Decimal():
            return f"CAST('{value:f}' AS DECIMAL(38, {min(max(-int(value.as_tuple().exponent), 0), 38)}))"
        case datetime():
            moment = value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
            text = moment.isoformat(sep=" ")
            return f"TIMESTAMP_NTZ '{text}'" if kind.tz is None else f"TIMESTAMP_LTZ '{text} UTC'"
        case date():
            return f"DATE '{value.isoformat()}'"
    return f"CAST('{value}' AS {'BIGINT' if abs(value) < 2**63 else 'DECIMAL(38, 0)'})"
