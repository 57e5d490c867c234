"""What a statement may do to tables of the lake, whose data no SQL changes: it reads them, and no more."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import duckdb
from sqlglot import exp

from windrow.engines.duckdb.syntax import table_names
from windrow.errors import InvalidInput
from windrow.questions.naming import Naming, has_views

__all__ = ["named_tables", "refuse_changes"]

_CHANGES = (
    *(exp.Create, exp.Alter, exp.Comment),
    *(exp.Insert, exp.Update, exp.Delete, exp.Merge),
)
_STORED = frozenset({"VIEW", "MACRO", "FUNCTION"})
"""What would be asked again by other queries."""


def named_tables(cursor: duckdb.DuckDBPyConnection, naming: Naming, query: str) -> frozenset[str]:
    """Return the names in place of tables, of a query or of other statements."""
    if naming.candidates is not None:
        return naming.candidates
    if naming.tree is not None:
        views = {each.name for each in naming.places if has_views(each)}
        return frozenset(views.union(naming.tables, cursor.get_table_names(query)))
    if not naming.statements or any(isinstance(each, exp.Command) for each in naming.statements):
        return frozenset(table_names(cursor, query))
    places = (table for each in naming.statements for table in each.find_all(exp.Table))
    return frozenset(table.name for table in places if (table.name and not table.db) or has_views(table))


def refuse_changes(naming: Naming, tables: Collection[str]) -> None:
    """Refuse statements that would change a table of the lake, hide it, or go on to read it by another name."""
    lake = {name.lower(): name for name in tables}
    for statement in naming.statements:
        for table in _targets(statement):
            if not table.db and table.name.lower() in lake:
                raise InvalidInput(_words(statement, lake[table.name.lower()]))
        if isinstance(statement, exp.Create) and str(statement.args.get("kind")).upper() in _STORED:
            places = [each for each in statement.find_all(exp.Table) if not each.db or has_views(each)]
            named = [lake[each.name.lower()] for each in places if each.name.lower() in lake]
            if named:
                raise InvalidInput(
                    f"a {str(statement.args['kind']).lower()} cannot read {named[0]!r}, a table of the lake, of which "
                    "every query reads the newest version; write WITH in the query, or CREATE TABLE AS for a copy"
                )
        if isinstance(statement, exp.Command) and statement.name.upper() in ("PREPARE", "EXECUTE"):
            raise InvalidInput("statements are not prepared here; give the values of a query as its params")


def _targets(statement: exp.Expr) -> Iterator[exp.Table]:
    """The tables that a statement makes, changes or removes."""
    if isinstance(statement, exp.Copy):
        yield from (statement.this,) if statement.args.get("kind") and isinstance(statement.this, exp.Table) else ()
    elif isinstance(statement, exp.Drop | exp.TruncateTable):
        yield from statement.find_all(exp.Table)
    elif isinstance(statement, _CHANGES) and statement.this is not None:
        found = statement.this.find(exp.Table)
        yield from () if found is None else (found,)


def _words(statement: exp.Expr, name: str) -> str:
    if isinstance(statement, exp.Create):
        return f"create: {name!r} is a table of the lake, which nothing may hide; choose another name"
    if isinstance(statement, exp.Drop | exp.TruncateTable):
        return (
            f"drop: {name!r} is a table of the lake, and SQL only reads it; drop it with lake.drop_table, or let "
            "points leave it by retention: lake.table(...).change.run(retention=...) and upkeep.expire"
        )
    if isinstance(statement, exp.Alter | exp.Comment):
        return f"alter: {name!r} is a table of the lake, and SQL only reads it; use lake.table(...).change"
    return f"{name!r} is a table of the lake, and SQL only reads it; bring rows in with lake.table(...).ingest"
