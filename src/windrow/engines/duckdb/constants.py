"""Values of a query that its text alone does not tell: parameters, and expressions that DuckDB works out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from decimal import Decimal
from typing import Any

import duckdb
from sqlglot import exp

from windrow.errors import InvalidInput
from windrow.questions.templates import MARK

__all__ = ["Constants", "Parameters"]

Parameters = Sequence[Any] | Mapping[str, Any] | None
_PLAIN = (str, bytes, bool, int, float, Decimal, date)


class Constants:
    """Gives expressions without columns their values.

    What DuckDB has to work out is worked out in a transaction that goes on until the query has run: so now() is the
    same for what is left out and for what is asked.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection, parameters: Parameters) -> None:
        self._connection = connection
        self._given = _named(parameters)
        self.is_open = False
        """Whether a transaction was begun."""

    def __call__(self, expression: exp.Expr) -> Any:
        """The value of an expression; InvalidInput where it has none that can be compared."""
        if isinstance(expression, exp.Placeholder):
            return self._parameter(expression)
        marks = {each.name: self._parameter(each) for each in expression.find_all(exp.Placeholder)}
        self._begin()
        query = f"SELECT {expression.sql('duckdb')}"
        return (self._connection.execute(query, marks) if marks else self._connection.execute(query)).fetchall()[0][0]

    def _parameter(self, mark: exp.Placeholder) -> Any:
        value = self._given.get(mark.name)
        if type(value) not in _PLAIN and not isinstance(value, date):
            raise InvalidInput(f"the parameter {mark.name} has no value that can be compared with bounds")
        return value

    def _begin(self) -> None:
        if not self.is_open:
            self._connection.begin()
            self.is_open = True

    def end(self, *, commit: bool) -> None:
        """End the transaction, if there is one."""
        if self.is_open:
            self.is_open = False
            if commit:
                self._connection.commit()
            else:
                self._connection.rollback()


def _named(parameters: Parameters) -> dict[str, Any]:
    """Parameters by the names that templates give them."""
    if parameters is None:
        return {}
    if isinstance(parameters, Mapping):
        return {str(name): value for name, value in parameters.items()}
    return {f"{MARK}{number}": value for number, value in enumerate(parameters, 1)}
