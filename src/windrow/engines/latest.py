"""The newest row of each series of a table: `table.latest(by="host")`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from windrow.engines.answer import Answer
from windrow.engines.arrow import scanning_cursor, scanning_engine
from windrow.engines.duckdb.relations import Relation
from windrow.engines.selection import Selection, condition_text
from windrow.errors import InvalidInput
from windrow.model.predicate import Predicate
from windrow.questions.spelling import sql_name
from windrow.reading.read_context import ReadContext

__all__ = ["latest_rows"]


def latest_rows(
    name: str,
    relation: Relation,
    context: ReadContext,
    by: str | Iterable[str],
    where: str | Predicate | None = None,
    columns: Iterable[str] | None = None,
    *,
    sandbox: bool = False,
) -> Answer:
    """Return the newest row of each series among rows that meet a condition; `by` tells series apart.

    Of rows that share the newest time one is returned, and a row without a time only where its series has no other.
    """
    if relation.timestamp is None:
        raise InvalidInput(f"latest of {name!r}: it has no column of times; order the rows by a query")
    if isinstance(columns, str):
        raise InvalidInput(f"latest of {name!r}: columns={columns!r} is a text; give a list of names")
    keys = [by] if isinstance(by, str) else list(by)
    with scanning_cursor() as cursor:
        condition = None if where is None else condition_text(where, cursor, sandbox=sandbox)
        selection = Selection.of(name, relation, condition, columns)
        selection.check(cursor)
    selection.refuse_wide("DuckDB")
    series = ", ".join(map(sql_name, Selection.of(name, relation, None, keys).columns)) if keys else ""
    over = f"{f'PARTITION BY {series} ' if series else ''}ORDER BY {sql_name(relation.timestamp)} DESC NULLS LAST"
    request = selection.request(context)
    query = f"{request.query} QUALIFY row_number() OVER ({over}) = 1"
    return scanning_engine(context.limits).answer(replace(request, query=query))
