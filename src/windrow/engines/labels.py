"""Label values and series of a table: what statistics or metadata are certain of is not looked for in the rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from windrow.engines.duckdb.relations import Relation
from windrow.engines.scan import Scan
from windrow.errors import InvalidInput, NotFound
from windrow.model.points import METRIC_NAME, is_text, tag_columns
from windrow.model.rows import Rows
from windrow.model.settings import TableSettings
from windrow.model.timeseries import TIMESERIES_ID
from windrow.questions.literals import fitted_exactly
from windrow.questions.spelling import sql_name, sql_text
from windrow.questions.where import parse_where
from windrow.statistics.label_answers import LabelAnswers

__all__ = ["LabelRow", "Labels"]

_MOST_NAMED = 1000
"""Values that are known already and named in the question for the others."""


@dataclass(frozen=True, slots=True)
class LabelRow:
    """A value of a column, and where it was found."""

    value: str
    known_by: str
    """`statistics`, which have all values; `metadata`; or `rows`."""


@dataclass(frozen=True, slots=True)
class Labels:
    """The labels of one version of a table."""

    name: str
    relation: Relation
    settings: TableSettings
    scan: Callable[[str | None, Sequence[str]], Scan]
    recorded: LabelAnswers | None = None
    """What is on record in full; None where only rows and bounds are to be believed."""

    def values(self, column: str, where: str | None = None) -> Rows[LabelRow]:
        """Return the values of a column of text in the rows that meet a condition, in order; null is none of them."""
        recorded = self._recorded(column) if where is None else None
        if recorded is not None:
            return Rows(LabelRow, tuple(LabelRow(value, "statistics") for value in recorded))
        known = self._known(column, where)[:_MOST_NAMED]
        conditions = [f"({where})"] if where else []
        conditions.append(f"{sql_name(column)} IS NOT NULL")
        if known:
            # Row groups of nothing else are passed over.
            conditions.append(f"{sql_name(column)} NOT IN ({', '.join(map(sql_text, known))})")
        found: set[str] = set()
        for batch in self.scan(" AND ".join(conditions), [column]).to_reader():
            found.update(pc.unique(batch.column(0).cast(pa.large_string())).to_pylist())
        told = dict.fromkeys(found, "rows") | dict.fromkeys(known, "metadata")
        return Rows(LabelRow, tuple(LabelRow(value, told[value]) for value in sorted(told)))

    def series(self, where: str | None = None) -> int:
        """Count the series in the rows that meet a condition: by their ids, or by metric and tags."""
        identity = self._identity()
        if where is None and self.recorded is not None and identity == [TIMESERIES_ID] and not self._changed(*identity):
            counted = self.recorded.series()
            if counted is not None:
                return counted
        rows = self.scan(where, identity).to_duckdb()
        [(count,)] = rows.distinct().aggregate("count(*)").fetchall()
        return int(count)

    def _recorded(self, column: str) -> list[str] | None:
        """All values of a column, where they are on record; attributes in maps are not."""
        schema = self.relation.columns
        is_column = column in schema.names and column not in self.relation.attributes
        if self.recorded is None or not is_column or not is_text(schema.field(column).type) or self._changed(column):
            return None
        return self.recorded.values(column)

    def _changed(self, column: str) -> bool:
        """Whether a column had another type once, so that its values are not read as they are on record."""
        return any(column in columns for columns in self.relation.old.values())

    def _known(self, column: str, where: str | None) -> list[str]:
        if column not in self.relation.columns.names:
            if column in self.relation.attributes:
                return []
            raise NotFound(f"table {self.name!r} has no column {column!r}; inspect.columns() lists them")
        if not is_text(self.relation.columns.field(column).type):
            raise InvalidInput(f"column {column!r} of table {self.name!r} is no text, and labels are")
        try:
            said = None if where is None else fitted_exactly(parse_where(where), self.relation.plain_columns)
        except InvalidInput:  # a condition that only rows can answer
            return []
        if (where is not None and said is None) or column in self.relation.attributes or self.relation.labels is None:
            return []
        return self.relation.labels(column, said)

    def _identity(self) -> list[str]:
        schema = self.relation.columns
        if TIMESERIES_ID in schema.names:
            return [TIMESERIES_ID]
        timestamp, signal = self.settings.timestamp, self.settings.signal
        tags = tag_columns(schema, declared=self.settings.tags, timestamp=timestamp, signal=signal)
        named = [name for name in (METRIC_NAME, *tags) if name in schema.names]
        if not named:
            raise InvalidInput(f"table {self.name!r} has neither {TIMESERIES_ID} nor tags, so it has no series")
        return named
