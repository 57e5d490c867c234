"""Attributes of points: which have a column of their own, and which live together in the residual column.

An attribute that few rows have would be a column of nulls, so it stays in a map from name to value. Once an attribute
is a column of the table it stays one: the table's own columns are what was promoted. Where an attribute lives changes
neither the id of its series nor what a query finds under its name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from windrow.errors import InvalidInput
from windrow.model.points import METRIC_NAME, METRIC_TYPE, VALUE, is_text
from windrow.model.settings import TableSettings
from windrow.model.timeseries import TIMESERIES_ID, residual_tags

__all__ = [
    "NOT_ATTRIBUTES",
    "POINT_COLUMNS",
    "RESIDUAL",
    "RESIDUAL_TYPE",
    "AttributeCounts",
    "AttributeRule",
    "has_residual",
    "point_schema",
    "promoted_attributes",
    "residual_names",
    "series_tags",
]

RESIDUAL = "attributes"
"""The column of the attributes that are too rare for one of their own."""

RESIDUAL_TYPE = pa.map_(pa.string(), pa.string())
"""A map from name to value."""

_TIME = pa.timestamp("ns", "UTC")
POINT_COLUMNS = {
    METRIC_NAME: pa.string(),
    METRIC_TYPE: pa.uint8(),
    "unit": pa.string(),
    "description": pa.string(),
    "temporality": pa.string(),
    "is_monotonic": pa.bool_(),
    "upper_bound": pa.string(),
    "quantile": pa.string(),
    "timestamp": _TIME,
    "start_timestamp": _TIME,
    VALUE: pa.float64(),
}
"""What every point of OpenTelemetry metrics has beside its attributes."""

NOT_ATTRIBUTES = frozenset([*POINT_COLUMNS, RESIDUAL, TIMESERIES_ID])
"""Columns that no attribute takes: one of such a name stays in the residual column."""

_TELL_SERIES_APART = frozenset(["upper_bound", "quantile"])
_TAKEN = frozenset(name.casefold() for name in NOT_ATTRIBUTES)
_LONGEST_NAME = 128


@dataclass(frozen=True, slots=True)
class AttributeRule:
    """When an attribute becomes a column."""

    rare: float = 0.01
    """An attribute that fewer than this share of the rows have stays in the residual column."""
    always: frozenset[str] = frozenset()
    """Attributes that are columns however rare: those of the table, and those that it is sorted or partitioned by."""
    never: frozenset[str] = frozenset()
    """Columns of the table that are no text, and so no attributes, whatever they are called."""

    def __post_init__(self) -> None:
        if not 0 <= self.rare <= 1:
            raise InvalidInput(f"rare_attributes={self.rare}: expected a share of the rows, from 0 to 1")

    @classmethod
    def of_table(cls, settings: TableSettings, columns: Mapping[str, pa.DataType], rare: float) -> AttributeRule:
        """Return the rule of a table that has these columns."""
        texts = {name for name, kind in columns.items() if is_text(kind)}
        others = frozenset(columns.keys() - texts)
        needed = texts.union(settings.sort.column_names, settings.partition_by)
        return cls(rare, frozenset(needed - NOT_ATTRIBUTES - others), others)


@dataclass(frozen=True, slots=True)
class AttributeCounts:
    """How many rows have which attribute."""

    rows: int = 0
    by_name: Counter[str] = field(default_factory=Counter)

    def __add__(self, other: AttributeCounts) -> AttributeCounts:
        return AttributeCounts(self.rows + other.rows, self.by_name + other.by_name)

    def promoted(self, rule: AttributeRule) -> frozenset[str]:
        """Return the attributes that become columns, of those that were counted.

        Engines do not tell columns apart by case, so that of names that differ in nothing else only one becomes a
        column.
        """
        promoted = set(rule.always & self.by_name.keys()) - NOT_ATTRIBUTES
        taken = _TAKEN | {name.casefold() for name in rule.always | rule.never}
        for name in sorted(self.by_name):
            enough = self.by_name[name] >= rule.rare * self.rows
            if enough and name.casefold() not in taken and _can_be_column(name):
                promoted.add(name)
                taken |= {name.casefold()}
        return frozenset(promoted)


def has_residual(schema: pa.Schema) -> bool:
    """Say whether rows keep attributes in a residual column."""
    kinds = [each.type for each in schema if each.name == RESIDUAL]
    return any(pa.types.is_map(kind) and is_text(kind.key_type) and is_text(kind.item_type) for kind in kinds)


def point_schema(promoted: frozenset[str]) -> pa.Schema:
    """Return the columns of points of OpenTelemetry of which these attributes are promoted."""
    attributes = dict.fromkeys(sorted(promoted), pa.string())
    return pa.schema(POINT_COLUMNS | attributes | {RESIDUAL: RESIDUAL_TYPE})


def promoted_attributes(schema: pa.Schema) -> frozenset[str]:
    """Return the attributes that have a column of their own."""
    return frozenset(each.name for each in schema if is_text(each.type)) - NOT_ATTRIBUTES


def residual_names(table: pa.Table) -> frozenset[str]:
    """Return the attributes that live in the residual column and queries read under their names."""
    names = residual_tags(table, RESIDUAL) if has_residual(table.schema) else ()
    return frozenset(name for name in names if name.casefold() not in _TAKEN and _can_be_column(name))


def series_tags(table: pa.Table) -> tuple[str, ...]:
    """Return what tells the series of a metric apart: its attributes, wherever they live, the bucket and the quantile.

    With `residual=RESIDUAL` they are the tags for `windrow.model.timeseries.timeseries_ids`. An attribute that is named
    like another column of a point, such as `unit`, is not among them: a tag is looked up in its column first.
    """
    rare = frozenset(residual_tags(table, RESIDUAL)) - NOT_ATTRIBUTES
    return tuple(sorted(_TELL_SERIES_APART | promoted_attributes(table.schema) | rare))


def _can_be_column(name: str) -> bool:
    """The metastore keeps the names of columns; one that is empty, endless or unprintable stays in its map."""
    return 0 < len(name) <= _LONGEST_NAME and name.isprintable()
