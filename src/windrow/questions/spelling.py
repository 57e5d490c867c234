"""A predicate spelled as a SQL condition: DuckDB's, with the same meaning where its time zone is UTC, or another's."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from typing import NamedTuple

from windrow.errors import InvalidInput
from windrow.model.operators import Engine, Literal, literals_of, operator_of
from windrow.model.predicate import And, Not, Or, Predicate

__all__ = ["Dialect", "spelled", "spelled_value", "sql_name", "sql_text"]


class Dialect(NamedTuple):
    """What engines write in different ways."""

    name: Callable[[str], str]
    value: Callable[[str, Literal], str]
    """A value that a column of this name is compared with."""
    engine: Engine
    """By whose record of an operator it is written."""


def spelled(predicate: Predicate, dialect: Dialect | None = None) -> str:
    """Return the condition that selects the rows which the predicate selects; in the dialect of DuckDB, or another."""
    written = dialect or _DUCKDB
    match predicate:
        case And(parts):
            return f"({' AND '.join(spelled(part, written) for part in parts)})" if parts else "TRUE"
        case Or(parts):
            return f"({' OR '.join(spelled(part, written) for part in parts)})" if parts else "FALSE"
        case Not(part):
            return f"(NOT {spelled(part, written)})"
    template = operator_of(predicate).sql.get(written.engine)
    if template is None:
        raise InvalidInput(f"predicate on {predicate.column!r}: {written.engine} reads it in another way")
    values = [written.value(predicate.column, literal) for literal in literals_of(predicate)]
    if not values and "{values}" in template:
        return "FALSE"  # a list of nothing, which SQL does not have
    return template.format(*values, column=written.name(predicate.column), values=", ".join(values))


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


_DUCKDB = Dialect(sql_name, lambda _, literal: spelled_value(literal), Engine.DUCKDB)
