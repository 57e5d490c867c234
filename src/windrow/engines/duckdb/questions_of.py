"""What a query wants of each relation that it names: columns, rows, aggregates, and which newest rows are enough."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

import duckdb
import pyarrow as pa

from windrow.engines.duckdb.constants import Constants
from windrow.engines.duckdb.relations import Relation
from windrow.engines.duckdb.request import Request
from windrow.model.predicate import Predicate
from windrow.model.sources import SourceKind
from windrow.questions.aggregates import aggregates_of
from windrow.questions.conditions import all_of
from windrow.questions.naming import Naming, Newest, NewestBuckets, Question
from windrow.questions.newest import NewestShape, newest_shape
from windrow.questions.newest_buckets import BucketShape, bucket_shape
from windrow.questions.prepared import Need, Needs, prepared_need
from windrow.questions.references import needed_rows

__all__ = ["Narrow", "questions_of"]


@dataclass(frozen=True, slots=True, eq=False)
class Narrow:
    """A relation as one query sees it."""

    relation: Relation
    """With those columns alone that the query can mean."""
    plain_columns: pa.Schema
    """The columns that no row has in a map too."""
    is_fine: bool
    """Whether there are times of nanoseconds among all of its columns."""


def questions_of(
    constants: Constants,
    request: Request,
    naming: Naming,
    narrow: Mapping[str, Narrow],
    allowed: Collection[SourceKind],
) -> dict[str, Question]:
    """What a query wants of each relation."""
    questions = _needed_questions(constants, request, naming, narrow, allowed)
    if len(narrow) == 1 and naming.tree is not None and request.pruned_by is None:
        [(name, each)] = narrow.items()
        newest = None if questions[name].aggregates else _newest(constants, naming, name, each)
        questions[name] = questions[name] if newest is None else replace(questions[name], newest=newest)
    return questions


def _newest(constants: Constants, naming: Naming, name: str, narrow: Narrow) -> Newest | NewestBuckets | None:
    """Which newest rows are enough for a query of one table; None where it needs others."""
    timestamp = narrow.relation.timestamp
    if narrow.relation.newest is None or timestamp is None:
        return None
    key = NewestShape, narrow
    if key not in naming.prepared:
        find = newest_shape, bucket_shape
        shapes = [each(naming, name, narrow.plain_columns, timestamp) for each in find]
        naming.prepared[key] = shapes[0] or shapes[1]
    shape: NewestShape | BucketShape | None = naming.prepared[key]
    try:
        return None if shape is None else shape.newest(constants)
    except duckdb.Error:
        constants.end(commit=False)
        return None


def _needed_questions(
    constants: Constants,
    request: Request,
    naming: Naming,
    narrow: Mapping[str, Narrow],
    allowed: Collection[SourceKind],
) -> dict[str, Question]:
    """What a query wants of each relation, whatever times its rows have."""
    columns = {name: tuple(each.relation.columns.names) for name, each in narrow.items()}
    needed: dict[str, Predicate | None] = {}
    try:
        if naming.counts_only and SourceKind.METADATA in allowed and not request.parameters and not request.pruned_by:
            schemas = {name: each.plain_columns for name, each in narrow.items()}
            aggregates = aggregates_of(naming.tree, schemas, constants)
            if aggregates is not None:
                name, question = aggregates
                return {name: replace(question, columns=columns[name])}
        if naming.tree is not None:
            needed = _needed(constants, request, naming, narrow)
    except duckdb.Error:
        # A constant without a value: the query itself will say so, if it ever comes to need it.
        constants.end(commit=False)
    if request.pruned_by is not None:
        needed = {name: all_of([needed.get(name), request.pruned_by]) for name in narrow}
    return {name: Question(columns[name], needed.get(name)) for name in narrow}


def _needed(
    constants: Constants, request: Request, naming: Naming, narrow: Mapping[str, Narrow]
) -> dict[str, Predicate | None]:
    """Which rows of each relation can matter; names that rows may keep in a map tell nothing."""
    if len(narrow) == 1:
        [(name, each)] = narrow.items()
        need = _prepared(naming, name, each)
        if need is not None:
            return {name: need(constants)}
    schemas = {name: each.plain_columns for name, each in narrow.items()}
    before: Needs | None = naming.prepared.get(Needs)
    if before is not None and before.are_of(request.query, schemas):
        return before.needs
    needs = needed_rows(naming, schemas, constants)
    if not constants.is_open and not request.parameters:
        naming.prepared[Needs] = Needs(request.query, schemas, needs)
    return needs


def _prepared(naming: Naming, name: str, narrow: Narrow) -> Need | None:
    """What was compiled of a query for the columns of its only table."""
    if narrow not in naming.prepared:
        naming.prepared.clear()
        naming.prepared[narrow] = prepared_need(naming, name, narrow.plain_columns)
    need: Need | None = naming.prepared[narrow]
    return need
