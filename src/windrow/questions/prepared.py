"""The rows that a parsed query needs of its table, compiled once for all queries of its shape.

This is for one SELECT from one table, which most small queries are: a comparison of a column with a value costs no walk
over the tree. Everything else goes the plain way, `windrow.questions.references`, with equal results.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import pyarrow as pa
from sqlglot import exp

from windrow.errors import InvalidInput
from windrow.model.column_types import TypeFamily, type_of
from windrow.model.operators import Comparison, mirrored, operator_of
from windrow.model.predicate import Predicate, negation_normal_form
from windrow.questions.conditions import TOO_FINE, all_of, to_predicate
from windrow.questions.literals import fitted
from windrow.questions.naming import Naming
from windrow.questions.references import Constant, Owner, is_plain_source, owner_of, spelled_as
from windrow.questions.where import OPS, literal_of

__all__ = ["Need", "Needs", "prepared_need"]

Need: TypeAlias = Callable[[Constant], Predicate | None]
"""A predicate that rows must fulfil to matter, by the values of constants; None for all rows."""

_VALUES = (exp.Literal, exp.Placeholder)


@dataclass(frozen=True, slots=True)
class Needs:
    """The rows that a query of several tables needs of each, where they follow from its text alone."""

    query: str
    schemas: Mapping[str, pa.Schema]
    needs: dict[str, Predicate | None]

    def are_of(self, query: str, schemas: Mapping[str, pa.Schema]) -> bool:
        """Whether this is the same query, over tables that were not looked at anew."""
        is_same = query == self.query and schemas.keys() == self.schemas.keys()
        return is_same and all(schemas[name] is schema for name, schema in self.schemas.items())


def prepared_need(naming: Naming, name: str, schema: pa.Schema) -> Need | None:
    """Return the rows that a query needs of its only table; None for queries of another shape."""
    select = naming.tree
    if not (naming.is_single and isinstance(select, exp.Select)) or len(naming.places) != 1:
        return None
    [table] = naming.places
    is_ours = table.name.lower() == name.lower() and not table.args.get("db") and not select.args.get("sample")
    spelled = {column.lower(): column for column in schema.names}
    if not is_ours or not is_plain_source(table) or len(spelled) < len(schema.names):
        return None
    where = select.args.get("where")
    if where is None:
        return lambda _: None
    owns = owner_of(table.alias_or_name, frozenset(spelled), select, alone=True)
    condition = where.this
    parts = list(condition.flatten()) if isinstance(condition, exp.And) else [condition]
    needs = [_comparison(part, owns, spelled, schema) or _plain(part, owns, schema) for part in parts]
    return needs[0] if len(needs) == 1 else lambda constant: all_of([need(constant) for need in needs])


def _plain(condition: exp.Expr, owns: Owner, schema: pa.Schema) -> Need:
    """Any condition, read anew for each query."""

    def need(constant: Constant) -> Predicate | None:
        implied = to_predicate(condition, owns, constant)
        return None if implied is None else fitted(spelled_as(negation_normal_form(implied), schema), schema)

    return need


def _comparison(condition: exp.Expr, owns: Owner, spelled: dict[str, str], schema: pa.Schema) -> Need | None:
    """A comparison of a column with a literal, a cast of a literal to a time, or a parameter."""
    op = OPS.get(type(condition))
    if op is None:
        return None
    column, value = condition.this, condition.expression
    if not isinstance(column, exp.Column):
        op, column, value = mirrored(op), value, column
    owned = owns(column) if isinstance(column, exp.Column) else None
    if owned is None or not _is_value(value):
        return None
    name = spelled[owned]
    record, literal = type_of(schema.field(name).type), value.this if isinstance(value, exp.Cast) else value
    if operator_of(Comparison(name, op, "")).is_about_text and record.family is not TypeFamily.TEXT:
        return None

    def need(constant: Constant) -> Predicate | None:
        try:
            [fit] = record.fit((_value(value, literal, constant),))
            return None if fit is None else Comparison(name, op, fit)
        except InvalidInput:
            return None

    return need


def _is_value(part: exp.Expr) -> bool:
    """Whether a part of a query is a constant without computation, for every value."""
    if isinstance(part, exp.Cast):
        return part.to.this in _TIMES and isinstance(part.this, exp.Literal) and part.this.is_string
    return isinstance(part, _VALUES)


_TIMES = {exp.DataType.Type[name] for name in ("DATE", "TIMESTAMP", "TIMESTAMPTZ", "TIMESTAMPNTZ")}


def _value(part: exp.Expr, literal: Any, constant: Constant) -> Any:
    if isinstance(part, exp.Placeholder):
        return constant(part)
    if TOO_FINE.search(literal.args["this"]):
        raise InvalidInput("a time with more digits than can be compared")
    try:
        return literal_of(part)
    except InvalidInput:
        return constant(part)
