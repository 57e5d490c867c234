"""A predicate spelled as a SQL condition of DuckDB, with the same meaning where its time zone is UTC."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal

from windrow.model.predicate import And, Between, Comparison, In, IsNotNull, IsNull, Literal, Not, Or, Predicate

__all__ = ["spelled", "spelled_value", "sql_name", "sql_text"]


def spelled(predicate: Predicate) -> str:
    """Return the condition that selects the rows which the predicate selects."""
    match predicate:
        case And(parts):
            return _joined(parts, "AND", "TRUE")
        case Or(parts):
            return _joined(parts, "OR", "FALSE")
        case Not(part):
            return f"(NOT {spelled(part)})"
        case IsNull(column):
            return f"({sql_name(column)} IS NULL)"
        case IsNotNull(column):
            return f"({sql_name(column)} IS NOT NULL)"
        case Comparison(column, op, value):
            return f"({sql_name(column)} {op} {spelled_value(value)})"
        case Between(column, low, high):
            return f"({sql_name(column)} BETWEEN {spelled_value(low)} AND {spelled_value(high)})"
        case In(column, values):
            return f"({sql_name(column)} IN ({', '.join(map(spelled_value, values))}))" if values else "FALSE"
    return f"starts_with({sql_name(predicate.column)}, {sql_text(predicate.prefix)})"


def spelled_value(value: Literal) -> str:
    """Return a value of its own type: a float is no decimal, and a time without a zone stays one."""
    match value:
        case bool():
            return "TRUE" if value else "FALSE"
        case str():
            return sql_text(value)
        case bytes():
            return "CAST('" + "".join(f"\\x{byte:02X}" for byte in value) + "' AS BLOB)"
        case float():
            return f"CAST('{value!r}' AS DOUBLE)"
        case Decimal():
            return format(value, "f")
        case datetime():
            zone = "TIMESTAMP" if value.tzinfo is None else "TIMESTAMPTZ"
            return f"CAST('{value.isoformat(sep=' ')}' AS {zone})"
        case date():
            return f"CAST('{value.isoformat()}' AS DATE)"
    return str(value)


def sql_name(text: str) -> str:
    """A name as SQL writes it."""
    return '"' + text.replace('"', '""') + '"'


def sql_text(text: str) -> str:
    """A text as SQL writes it."""
    return "'" + text.replace("'", "''") + "'"


def _joined(parts: tuple[Predicate, ...], word: str, none: str) -> str:
    return f"({f' {word} '.join(map(spelled, parts))})" if parts else none
