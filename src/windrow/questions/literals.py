"""Values of a query as the engine converts them to the type of a column; unsure ones are dropped.

DuckDB brings the two sides of a comparison to one type before it compares. A predicate compares exactly, so a value
counts only where both ways give the same.
"""

from __future__ import annotations

import pyarrow as pa

from windrow.model.column_types import TypeFamily, type_of
from windrow.model.operators import Test, operator_of, with_literals
from windrow.model.predicate import And, Predicate, negation_normal_form
from windrow.questions.conditions import each_test

__all__ = ["fitted", "fitted_exactly", "fitted_where_typed"]


def fitted(predicate: Predicate, schema: pa.Schema) -> Predicate | None:
    """Return the part of a predicate about columns of a schema, with values of their types."""
    return each_test(predicate, lambda test: _fitted_test(test, schema))


def fitted_exactly(predicate: Predicate, schema: pa.Schema) -> Predicate | None:
    """Return the same where no part of the predicate is dropped, else None."""
    tests: list[Predicate | None] = []

    def fit(test: Test) -> Predicate | None:
        tests.append(_fitted_test(test, schema))
        return tests[-1]

    changed = each_test(negation_normal_form(predicate), fit)
    return None if None in tests else changed


def fitted_where_typed(predicate: Predicate, schema: pa.Schema) -> Predicate:
    """Return the same with values of the types of those columns that the schema has; other tests stay as they are."""

    def fit(test: Test) -> Predicate | None:
        return test if schema.get_field_index(test.column) < 0 else _fitted_test(test, schema)

    return each_test(negation_normal_form(predicate), fit) or And(())


def _fitted_test(test: Test, schema: pa.Schema) -> Test | None:
    if schema.get_field_index(test.column) < 0:
        return None
    record = type_of(schema.field(test.column).type)
    operator = operator_of(test)
    if operator.is_about_text and record.family is not TypeFamily.TEXT:
        return None
    values = record.fit(operator.literals(test))
    fits = tuple(value for value in values if value is not None)
    return with_literals(test, fits) if len(fits) == len(values) else None
