"""Some columns of the rows of a relation that meet a condition: what a scan asks, whoever executes it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cached_property

import duckdb
import pyarrow as pa
from sqlglot import exp

from windrow.engines.duckdb.named_tables import FixedTables
from windrow.engines.duckdb.nanoseconds import fine_condition
from windrow.engines.duckdb.relations import Relation, rows_sql
from windrow.engines.duckdb.request import Request
from windrow.engines.duckdb.sandbox import check_functions
from windrow.engines.duckdb.syntax import names_in, parsed_condition
from windrow.errors import InvalidInput
from windrow.model.predicate import Predicate
from windrow.model.sources import SourceKind
from windrow.planning.virtual_file import VirtualFile
from windrow.questions.conditions import all_of
from windrow.questions.naming import Naming
from windrow.questions.spelling import spelled, sql_name
from windrow.questions.where import parse_condition
from windrow.reading.read_context import ReadContext
from windrow.reading.source import EVERY_SOURCE

__all__ = ["Selection", "condition_text"]

_MOST_DIGITS = 38
_MOMENTS = (exp.CurrentTimestamp, exp.CurrentDate, exp.CurrentTime, exp.Localtimestamp, exp.Localtime)
_MOMENT_CALLS = frozenset(
    ["now", "today", "transaction_timestamp", "get_current_timestamp", "current_localtimestamp", "current_localtime"]
)


@dataclass(frozen=True)
class Selection:
    """A question to one relation. `columns` are spelled as the relation spells them."""

    name: str
    """What the relation is called in the condition."""
    relation: Relation
    columns: tuple[str, ...]
    where: str | None = None
    """A condition of DuckDB's SQL."""
    pruned_by: Predicate | None = None
    """What rows must meet besides: those that do not may be left out, or not."""

    @classmethod
    def of(cls, name: str, relation: Relation, where: str | None, columns: Iterable[str] | None) -> Selection:
        """Check a question; None stands for all columns, and for all rows."""
        known = [*relation.columns.names, *relation.extra_names]
        chosen = known if columns is None else [_spelled_as(name, known, column) for column in columns]
        if not chosen or len(set(chosen)) < len(chosen):
            raise InvalidInput(f"scan of {name!r}: name at least one column, and each of them once, found {chosen}")
        return cls(name, relation, tuple(chosen), where)

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns with the types that they have in the table; what rows keep in a map is text."""
        types = {column.name: _delivered(column.type) for column in self.relation.columns} | dict(self.relation.wide)
        return pa.schema([(name, types.get(name, pa.string())) for name in self.columns])

    def narrowed(self, columns: Iterable[str], pruned_by: Predicate | None) -> Selection:
        """The same for some of the columns, where rows that do not meet a predicate may be left out."""
        return replace(self, columns=tuple(columns), pruned_by=all_of([self.pruned_by, pruned_by]))

    def request(
        self, context: ReadContext, allowed: frozenset[SourceKind] = EVERY_SOURCE, *, count: bool = False
    ) -> Request:
        """The query of the rows, or of their number."""
        return Request(
            self._query(sql_name(self.name), self.where, count=count),
            FixedTables({self.name: lambda: self._lasting}),
            context=context,
            allowed=allowed,
            pruned_by=self.pruned_by,
            refusal=self._refusal,
        )

    @cached_property
    def _lasting(self) -> Relation:
        """The relation, of which no query releases anything: the next engine reads it again."""
        return self.relation if self.relation.release is None else replace(self.relation, release=None)

    def _refusal(self, error: duckdb.Error) -> InvalidInput:
        return InvalidInput(f"scan of {self.name!r} failed: {_problem(error)}")

    @cached_property
    def needed(self) -> Relation:
        """The relation with the columns that the question is about."""
        return self.relation.narrowed(Naming.of(self._query(sql_name(self.name), self.where)))

    def refuse_wide(self, engine: str) -> None:
        """Refuse columns of decimals that an engine has no type for."""
        wide = [name for name in self.columns if name in self.relation.wide]
        if wide:
            raise InvalidInput(
                f"scan of {self.name!r}: column {wide[0]!r} is {self.relation.wide[wide[0]]}, which {engine} cannot "
                f"hold; leave it out with columns=[...], or read it with to_arrow()"
            )

    def _refuse_wide_conditions(self) -> None:
        asked = Naming.of(self._query(sql_name(self.name), self.where, count=True))
        named = [name for name in self.relation.wide if asked.refers_to(name)]
        if self.where is not None and named:
            raise InvalidInput(
                f"scan of {self.name!r}: the condition names {named[0]!r}, a {self.relation.wide[named[0]]}, which "
                "DuckDB cannot compare; filter the Arrow table instead"
            )

    def check(self, cursor: duckdb.DuckDBPyConnection) -> None:
        """Refuse a condition that names unknown columns, or compares what cannot be compared."""
        if self.relation.wide:
            self._refuse_wide_conditions()
        try:
            cursor.execute(self.sql(cursor, self.needed, [], [])).fetchall()
        except duckdb.Error as error:
            raise InvalidInput(f"scan of {self.name!r}: the condition cannot be asked: {_problem(error)}") from error

    def sql(
        self,
        cursor: duckdb.DuckDBPyConnection,
        relation: Relation,
        virtual: Sequence[VirtualFile],
        paths: Sequence[Sequence[str]],
    ) -> str:
        """The query over virtual files, as DuckDB can answer it; `relation` has the columns that it names."""
        rows = f"({rows_sql(cursor, relation, virtual, paths)}) AS {sql_name(self.name)}"
        fine = None if self.where is None else fine_condition(cursor, self.where, self.name, self.relation.columns)
        return self._query(rows, fine)

    def _query(self, rows: str, condition: str | None, *, count: bool = False) -> str:
        columns = "count(*)" if count else ", ".join(map(sql_name, self.columns))
        # The condition may end with a comment.
        return f"SELECT {columns} FROM {rows}" + ("" if condition is None else f" WHERE ({condition}\n)")


def _delivered(kind: pa.DataType) -> pa.DataType:
    """DuckDB reads decimals of more digits than it has as floats."""
    return pa.float64() if pa.types.is_decimal(kind) and kind.precision > _MOST_DIGITS else kind


def condition_text(where: str | Predicate, cursor: duckdb.DuckDBPyConnection, *, sandbox: bool = False) -> str:
    """Return a condition as text, in which the present moment is a value: whoever asks it later asks the same.

    What DuckDB's parser takes for more than a condition, or for a query inside, is refused.
    """
    if not isinstance(where, str):
        if not isinstance(where, Predicate):
            raise InvalidInput(f"where is a {type(where).__name__}; give the text of a condition, or a Predicate")
        return spelled(where)
    condition = parse_condition(where)
    if condition.find(exp.Query):
        raise InvalidInput(f"condition {where!r} asks a query inside; use lake.sql for that")
    _check(cursor, where, sandbox=sandbox)
    moments = [node for node in condition.walk() if _is_moment(node)]
    if not moments:
        return where
    asked = ", ".join(f"CAST({node.sql('duckdb')} AS VARCHAR), typeof({node.sql('duckdb')})" for node in moments)
    values = cursor.execute(f"SELECT {asked}").fetchall()[0]
    root = exp.Paren(this=condition)
    for node, text, kind in zip(moments, values[::2], values[1::2], strict=True):
        node.replace(exp.cast(exp.Literal.string(text), kind, dialect="duckdb"))
    written = str(root.sql("duckdb"))
    # This is the text that is run, and another parser wrote it.
    _check(cursor, written, sandbox=sandbox)
    return written


def _check(cursor: duckdb.DuckDBPyConnection, where: str, *, sandbox: bool) -> None:
    """Refuse what DuckDB's parser takes for more than a condition, and in a sandbox functions that do not compute."""
    parsed = parsed_condition(cursor, where)
    if parsed is None:
        raise InvalidInput(f"condition {where!r} is more than a condition; give what stands behind WHERE alone")
    if sandbox:
        check_functions(names_in(parsed))


def _is_moment(node: exp.Expr) -> bool:
    return isinstance(node, _MOMENTS) or (isinstance(node, exp.Anonymous) and node.name.lower() in _MOMENT_CALLS)


def _problem(error: duckdb.Error) -> str:
    """What is wrong; behind the first lines stands the query that was made of the condition."""
    return str(error).partition("\n\nLINE")[0]


def _spelled_as(name: str, known: list[str], column: str) -> str:
    """Return a column as the relation spells it: case tells nothing apart."""
    found = next((each for each in known if each.lower() == str(column).lower()), None)
    if found is None:
        near = get_close_matches(str(column), known, 1)
        hint = f"did you mean {near[0]!r}?" if near else f"it has {', '.join(known)}"
        raise InvalidInput(f"scan of {name!r}: there is no column {column!r}; {hint}")
    return found
