"""Queries about the newest buckets of time: how many of them are enough.

    select time_bucket(interval '1 minute', timestamp) as minute, max(value) from cpu
    group by minute order by minute desc limit 5

The engine runs the query as it is, over the rows of at least so many of the newest buckets.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pyarrow as pa
from sqlglot import exp

from windrow.questions.conditions import to_exact_predicate, truncation_of
from windrow.questions.literals import fitted_exactly
from windrow.questions.naming import Naming, NewestBuckets
from windrow.questions.newest import Columns, is_odd
from windrow.questions.references import is_plain_source

__all__ = ["BucketShape", "bucket_shape"]

_LONG = timedelta(minutes=30)
_ZONE = timedelta(hours=2)
"""A bucket in a zone of time that changes its offset may be longer by so much."""
_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class BucketShape:
    """What a parsed query says, but for the values of its literals."""

    bucket: exp.Expr
    limit: exp.Expr
    offset: exp.Expr | None
    where: exp.Expr | None
    columns: Columns

    def newest(self, constant: Callable[[exp.Expr], Any]) -> NewestBuckets | None:
        """The buckets that are enough for the query with the literals that it has now; None where that is unsure."""
        cut = truncation_of(self.bucket, self.columns, constant)
        counts = [_count(each) for each in (self.limit, self.offset) if each is not None]
        if cut is None or cut[0] != self.columns.timestamp or cut[1] <= timedelta() or None in counts:
            return None
        step = (cut[1] + (_ZONE if cut[1] >= _LONG else timedelta())) // _MICROSECOND
        count = sum(each for each in counts if each is not None)
        if self.where is None:
            return NewestBuckets(count, step)
        exact = to_exact_predicate(self.where, self.columns, constant)
        predicate = None if exact is None else fitted_exactly(exact, self.columns.schema)
        return None if predicate is None else NewestBuckets(count, step, predicate)


def _count(node: exp.Expr) -> int | None:
    is_number = isinstance(node, exp.Literal) and not node.is_string and node.name.isdigit()
    return int(node.name) if is_number else None


def bucket_shape(naming: Naming, name: str, schema: pa.Schema, timestamp: str) -> BucketShape | None:
    """Return the buckets of time that a query is about, of which its limit leaves the newest; None if it is another."""
    select, places = naming.tree, naming.places
    if not (naming.is_single and isinstance(select, exp.Select)) or timestamp not in schema.names or len(places) != 1:
        return None
    [place] = places
    is_ours = place.name.lower() == name.lower() and not place.args.get("db") and is_plain_source(place)
    group, order, limit = (select.args.get(part) for part in ("group", "order", "limit"))
    if (
        not is_ours
        or group is None
        or order is None
        or is_odd(select)
        or select.find(exp.Window, exp.Columns, exp.Explode)
    ):
        return None
    if any(select.args.get(part) for part in ("having", "qualify", "distinct")) or not isinstance(limit, exp.Limit):
        return None
    if any(value for part, value in limit.args.items() if part != "expression"):
        return None
    columns = Columns(schema, timestamp, [place.alias_or_name])
    first = order.expressions[0]
    bucket = _resolved(first.this, select)
    if not first.args.get("desc") or first.args.get("nulls_first") or bucket is None or _is_hidden(select, columns):
        return None
    keys = [_resolved(each, select) for each in group.expressions]
    more = {part for part, value in group.args.items() if value} - {"expressions", "all"}
    if more or (bucket not in keys and not (group.args.get("all") and bucket in _unaliased(select))):
        return None
    offset, where = select.args.get("offset"), select.args.get("where")
    return BucketShape(
        bucket,
        limit.expression,
        None if offset is None else offset.expression,
        None if where is None else where.this,
        columns,
    )


def _unaliased(select: exp.Select) -> list[exp.Expr]:
    return [each.unalias() for each in select.expressions]


def _resolved(node: exp.Expr, select: exp.Select) -> exp.Expr | None:
    """The expression that a name or a place of a projection stands for."""
    if isinstance(node, exp.Literal):
        at = _count(node)
        found = _unaliased(select)
        return found[at - 1] if at is not None and 0 < at <= len(found) else None
    if isinstance(node, exp.Column) and not node.table:
        named = [each for each in select.expressions if each.alias.lower() == node.name.lower()]
        return named[0].unalias() if len(named) == 1 else None
    return node


def _is_hidden(select: exp.Select, columns: Columns) -> bool:
    """Whether a projection has the name of a column and is something else."""
    where = select.args.get("where")
    tested = where.find_all(exp.Column) if where is not None else ()
    names = {columns.timestamp.lower(), *(each.name.lower() for each in tested)}
    return any(each.alias.lower() in names for each in select.expressions if each.alias)
