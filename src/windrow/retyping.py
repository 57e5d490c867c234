"""`table.retype`: a column gets a type that its values do not have, and a rule says how these are read from then on.

    metrics.retype.plan("value", "double", old_values="cast")    # what would change, or why it cannot
    metrics.retype.run("value", "double", old_values="cast")

Nothing is rewritten: the change begins a schema epoch. Splits of earlier epochs are read by the rule, and never merged
with later ones.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from windrow.context import Context
from windrow.engines.arrow import RowStream, count_rows, scanning_cursor
from windrow.engines.duckdb.old_values import can_be_cast, unfit
from windrow.engines.duckdb.relations import Relation, duckdb_types
from windrow.engines.selection import Selection
from windrow.errors import Conflict, InvalidInput, NotFound
from windrow.ingest.attributes import RESIDUAL
from windrow.metastore import CommitKind, Published, TableRecord
from windrow.model.epochs import OldValues
from windrow.model.points import check_point_schema
from windrow.model.shown import ShownByField
from windrow.model.timeseries import TIMESERIES_ID
from windrow.model.type_names import parse_type
from windrow.model.widening import plain, stored, widened
from windrow.questions.spelling import sql_name
from windrow.reading.read_context import ReadContext
from windrow.runners.leases import given_up_on_error

__all__ = ["Retype", "RetypePlan", "RetypeResult"]

_LEASE = 60.0
_ATTEMPTS = 3
_RULES = (
    "'cast' (every value is converted exactly, or nothing is changed), 'cast_or_null' (what cannot be converted "
    "exactly reads as null) or 'null' (all read as null)"
)


@dataclass(frozen=True, slots=True, repr=False)
class RetypePlan(ShownByField):
    """What a change of a column's type would do."""

    table: str
    column: str
    type_before: str
    type_after: str
    old_values: str
    version: int
    """The version that was looked at."""
    schema_epoch: int
    """The epoch that would begin."""
    splits: int
    """Splits of earlier epochs: they stay as they are, and are merged only with each other."""
    rows: int
    nulled: int
    """Values that would read as null."""
    mirror: str
    """What readers of the Delta log see then."""


@dataclass(frozen=True, slots=True, repr=False)
class RetypeResult(ShownByField):
    """A change of a column's type that was made."""

    plan: RetypePlan
    version: int
    """The first version with the new type."""
    commit_id: str

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return self.plan.to_dict() | {"version": self.version, "commit_id": self.commit_id}


@dataclass(frozen=True, slots=True)
class Retype:
    """Changes of the types of a table's columns."""

    context: Context
    name: str
    relation: Callable[[int], Relation]
    """Gives the table as it is at a version."""
    reading: ReadContext

    def plan(self, column: str, to: str | pa.DataType, *, old_values: str | None = None) -> RetypePlan:
        """Say what giving a column another type would change, or refuse it as `run` would; nothing is written.

        `to` is a type of Arrow or its name, such as "double", "int64", "string" or "timestamp[us, tz=UTC]".
        `old_values` is the rule by which values that exist are read from then on: "cast", "cast_or_null" or "null".
        All values of the column are looked at.
        """
        return self._planned(column, to, old_values)[0]

    def run(self, column: str, to: str | pa.DataType, *, old_values: str | None = None) -> RetypeResult:
        """Give a column another type, as one commit. What is being ingested with the old type is not published then."""
        for attempt in range(1, _ATTEMPTS + 1):
            plan, kind = self._planned(column, to, old_values)
            try:
                published = self._publish(plan, kind)
            except Conflict:
                # Rows came in that nobody has looked at.
                if attempt == _ATTEMPTS:
                    raise
                continue
            return RetypeResult(plan, published.version, published.commit_id)
        raise AssertionError("unreachable")

    def _publish(self, plan: RetypePlan, kind: pa.DataType) -> Published:
        metastore, commit_id = self.context.metastore, self.context.new_id()
        table_id = metastore.table(self.name).table_id
        opened = metastore.open_commit(table_id, CommitKind.RETYPE, commit_id=commit_id, lease=_LEASE)
        rule = OldValues(plan.old_values)
        with given_up_on_error(metastore, commit_id, opened.attempt):
            return metastore.change_type(
                commit_id,
                column=plan.column,
                kind=kind,
                rule=rule,
                epoch=plan.schema_epoch,
                version=plan.version if rule is OldValues.CAST else None,
                summary=plan.to_dict(),
            )

    def _planned(self, column: str, to: str | pa.DataType, old_values: str | None) -> tuple[RetypePlan, pa.DataType]:
        rule = _rule_of(column, old_values)
        metastore = self.context.metastore
        record = metastore.table(self.name)
        types = {each.name: each.type for each in metastore.columns(record.table_id, record.version)}
        before, after = self._types(record, types, column, to)
        nulled = self._nulled(record.version, column, (before, after), rule)
        windows = metastore.windows(record.table_id, record.version)
        plan = RetypePlan(
            table=self.name,
            column=column,
            type_before=str(before),
            type_after=str(after),
            old_values=rule,
            version=record.version,
            schema_epoch=record.schema_epoch + 1,
            splits=sum(each.splits for each in windows),
            rows=sum(each.rows for each in windows),
            nulled=nulled,
            mirror=_mirror(record, has_splits=any(each.splits for each in windows)),
        )
        return plan, after

    def _types(
        self, record: TableRecord, types: dict[str, pa.DataType], column: str, to: str | pa.DataType
    ) -> tuple[pa.DataType, pa.DataType]:
        """Return the type before and after, or refuse a change that cannot be made or needs no epoch."""
        place, settings = f"column {column!r} of table {self.name!r}", record.settings
        if column not in types:
            raise NotFound(f"table {self.name!r} has no column {column!r}; it has {', '.join(types) or 'none yet'}")
        fixed = {settings.timestamp: "windows", TIMESERIES_ID: "series", RESIDUAL: "attributes"}
        fixed |= dict.fromkeys(settings.partition_by, "tenants")
        if column in fixed:
            raise InvalidInput(f"{place}: {fixed[column]} are told by it, so its type stays; write another column")
        before = types[column]
        after = stored(plain(parse_type(to)), settings.timestamp_precision)
        if after == before:
            raise InvalidInput(f"{place} is {before} already; there is nothing to change")
        if widened(before, after) == after:
            raise InvalidInput(
                f"{place}: {after} holds every value of {before}, so the column widens by itself when data of that "
                "type is ingested; there is nothing to change"
            )
        schema = pa.schema([(name, after if name == column else kind) for name, kind in types.items()])
        check_point_schema(
            schema, signal=settings.signal, timestamp=settings.timestamp, timestamp_unit=settings.timestamp_unit
        )
        return before, after

    def _nulled(self, version: int, column: str, kinds: tuple[pa.DataType, pa.DataType], rule: OldValues) -> int:
        """Count the values that will read as null; where none may, and there is one, refuse."""
        place = f"column {column!r} of table {self.name!r}"
        relation = self.relation(version)
        if rule is OldValues.NULL:
            return self._count(relation, column, f"{sql_name(column)} IS NOT NULL")
        impossible = f"{place}: values of {kinds[0]} cannot become {kinds[1]}; read them as null (old_values='null')"
        if not all(map(can_be_cast, kinds)):
            raise InvalidInput(impossible)
        with scanning_cursor() as cursor:
            spelled = duckdb_types(cursor, pa.schema([("before", kinds[0]), ("after", kinds[1])]))
            condition = unfit(column, (kinds[0], spelled[0]), (kinds[1], spelled[1]))
            try:
                self._selection(relation, column, condition).check(cursor)
            except InvalidInput as error:
                raise InvalidInput(impossible) from error
        misfits = self._count(relation, column, condition)
        if misfits and rule is OldValues.CAST:
            raise InvalidInput(
                f"{place}: {misfits} values of {kinds[0]} cannot become {kinds[1]} exactly, such as "
                f"{self._example(relation, column, condition)}; let them read as null (old_values='cast_or_null'), or "
                "write another column"
            )
        return misfits

    def _selection(self, relation: Relation, column: str, condition: str) -> Selection:
        return Selection.of(self.name, relation, condition, [column])

    def _count(self, relation: Relation, column: str, condition: str) -> int:
        return count_rows(self._selection(relation, column, condition), self.reading)

    def _example(self, relation: Relation, column: str, condition: str) -> str:
        """Return a value that meets a condition."""
        for batch in RowStream(self._selection(relation, column, condition), self.reading):
            return repr(batch.column(0)[0].as_py())
        return "none any more"


def _rule_of(column: str, old_values: str | None) -> OldValues:
    if old_values is None:
        raise InvalidInput(f"column {column!r}: say by old_values how values that exist are read: {_RULES}")
    try:
        return OldValues(old_values)
    except ValueError:
        raise InvalidInput(f"old_values: {old_values!r} is no rule; give {_RULES}") from None


def _mirror(record: TableRecord, *, has_splits: bool) -> str:
    if not record.settings.mirror:
        return "the table has none"
    return "refuses other readers while splits of earlier epochs are visible" if has_splits else "serves other readers"
