"""The settings of a table: how its points are raked, sorted, merged and retained.

Settings may change while the table lives: new splits use the new values, old ones keep theirs. Only the timestamp
column, its unit and the precision of times are fixed: they decide which window a point is in, and what its columns are.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, fields, replace
from datetime import timedelta
from difflib import get_close_matches
from typing import Any, Literal, get_args

from windrow.errors import InvalidInput
from windrow.model.names import name_problems
from windrow.model.points import Signal, signal_of
from windrow.model.sort_schema import SortSchema
from windrow.model.units import parse_bytes, parse_seconds
from windrow.model.window import COLD_HOURS, TIMESTAMP_UNITS, Window, cold_duration, window_duration

__all__ = ["Duration", "Names", "PolicySettings", "TableSettings", "Verify", "verification"]

Verify = Literal["full", "sample"]
"""How much of a merge is compared."""

Duration = str | int | timedelta
"""A length of time as people write it: "15m", seconds, or a timedelta."""
Names = list[str] | tuple[str, ...]
"""Names of columns."""

_LEAST_COLD_START = -(2**63) + 3600 * COLD_HOURS[-1]
"""What begins before may lie in a cold window whose start 64 bits do not hold."""

_VERIFY: tuple[Verify, ...] = get_args(Verify)
_POLICIES = ("stable-log", "constant-write-amplification")
_PRECISIONS = ("us", "ns")
_FIXED = {
    "timestamp": "it decides the window of every point",
    "timestamp_unit": "it decides the window of every point",
    "timestamp_precision": "columns keep the unit that they were made with",
}
_NAMING = {"sort", "partition_by", "tags", "bloom_filters", "primary_key"}


@dataclass(frozen=True, slots=True)
class PolicySettings:
    """When splits of a window are merged."""

    name: str = "stable-log"
    """`stable-log` or `constant-write-amplification`."""
    merge_factor: int = 16
    """The fewest splits of a level that are worth a merge."""
    max_merge_factor: int = 20
    """The most splits in one merge."""
    max_merge_ops: int = 4
    """How often a row may be rewritten by `constant-write-amplification`, in windows of any age."""
    maturation_period: int = 48 * 3600
    """Seconds after which a split is left as it is, in a window that still grows."""
    rewrite_budget: int = 8
    """How often a row may be rewritten by `stable-log`, in windows of any age; late splits need most of it."""

    def __post_init__(self) -> None:
        if self.name not in _POLICIES:
            raise InvalidInput(f"policy.name: {self.name!r} is none of {', '.join(_POLICIES)}")
        _whole("policy.merge_factor", self.merge_factor, 2)
        _whole("policy.max_merge_factor", self.max_merge_factor, self.merge_factor)
        _whole("policy.max_merge_ops", self.max_merge_ops, 1)
        _whole("policy.maturation_period", self.maturation_period, 0)
        _whole("policy.rewrite_budget", self.rewrite_budget, 1)

    @property
    def rewrites_bound(self) -> int:
        """How often a row is rewritten at most: merges write no more than so many times the bytes that arrive."""
        return self.max_merge_ops if self.name == "constant-write-amplification" else self.rewrite_budget

    @classmethod
    def of(cls, value: Any) -> PolicySettings:
        """Build from a mapping with some of the fields."""
        if isinstance(value, cls):
            return value
        if not isinstance(value, dict):
            raise InvalidInput(f"policy: expected a mapping of {', '.join(_names(cls))}, found {value!r}")
        _refuse_unknown(value, _names(cls), "policy.")
        given = dict(value)
        if "maturation_period" in given:
            given["maturation_period"] = parse_seconds(given["maturation_period"], "policy.maturation_period")
        return cls(**given)


@dataclass(frozen=True, slots=True)
class TableSettings:
    """How a table is laid out. Build one with `TableSettings.of`, which reads what people write."""

    sort: SortSchema
    window: int = 900
    """Window duration in seconds."""
    cold_window: int | None = None
    """Seconds of the longer windows that closed ones are gathered into, whole hours; None gathers none."""
    timestamp: str = "timestamp"
    """The column that decides the window; it must be in the sort schema."""
    timestamp_unit: str | None = None
    """The unit of an integer timestamp column: s, ms, us or ns."""
    timestamp_precision: str = "us"
    """What columns of times are stored in: us, or ns for digits beyond, of the years 1677 to 2262 alone."""
    tags: tuple[str, ...] | None = None
    """The columns that name a series; None is every string column that is not declared otherwise."""
    partition_by: tuple[str, ...] = ()
    """The columns of the tenant key; rows of different tenants never share a split."""
    bloom_filters: tuple[str, ...] = ()
    """The columns that ingest gives a bloom filter in every row group; for values that bounds cannot tell apart."""
    primary_key: tuple[str, ...] = ()
    """The columns that tell rows apart, where that is so: joins are planned by it, and nothing checks it."""
    compaction_start_time: int = 0
    """Seconds since the epoch; windows before it are never merged. Below 0 for points from before 1970."""
    late_data_acceptance_window: int = 3600
    """Seconds; older points that arrive by a stream are dropped and counted."""
    retention: int | None = None
    """Seconds after which whole windows are dropped; None keeps them for ever."""
    target_split_size: int = 256 * 2**20
    """Bytes that a merge aims at."""
    mirror: bool = True
    """Whether the table is a Delta table too, for readers other than Windrow."""
    verify: Verify = "full"
    """How much of a merge is compared before it is published: `full`, every value of every row, or `sample`."""
    policy: PolicySettings = field(default_factory=PolicySettings)

    def __post_init__(self) -> None:
        names = self.sort.column_names
        if self.timestamp not in names:
            raise InvalidInput(
                f"timestamp: the sort schema {self.sort} does not name the column {self.timestamp!r}; "
                f"add it to the schema or set timestamp= to one of {', '.join(names)}"
            )
        if self.timestamp_unit is not None and self.timestamp_unit not in TIMESTAMP_UNITS:
            raise InvalidInput(f"timestamp_unit: {self.timestamp_unit!r} is none of {', '.join(TIMESTAMP_UNITS)}")
        if self.timestamp_precision not in _PRECISIONS:
            raise InvalidInput(f"timestamp_precision: {self.timestamp_precision!r} is none of {', '.join(_PRECISIONS)}")
        window_duration(self.window)
        if self.cold_window is not None:
            cold_duration(self.cold_window)
        _whole("compaction_start_time", self.compaction_start_time, -(2**63))
        _whole("late_data_acceptance_window", self.late_data_acceptance_window, 0)
        _whole("target_split_size", self.target_split_size, 2**20)
        if self.retention is not None:
            _whole("retention", self.retention, self.window)
        if not isinstance(self.mirror, bool):
            raise InvalidInput(f"mirror: expected true or false, found {self.mirror!r}")
        verification(self.verify)
        _column_names("partition_by", self.partition_by)
        _column_names("tags", self.tags or ())
        _column_names("bloom_filters", self.bloom_filters)
        _column_names("primary_key", self.primary_key)

    @property
    def gathers_into(self) -> int | None:
        """The duration of the cold windows that are written; None where none are.

        A table that drops its windows sooner than a cold window lasts has none: it would keep points longer by that.
        """
        is_kept = self.cold_window is not None and (self.retention is None or self.retention >= self.cold_window)
        return self.cold_window if is_kept else None

    def closed_before(self, now: int) -> int:
        """Return the second up to which no late points of streams are accepted any more, at a moment (microseconds)."""
        return now // 10**6 - self.late_data_acceptance_window

    def cold_window_of(self, window: Window, closed_before: int) -> Window | None:
        """Return the cold window that a window is gathered into, itself if it is that; None while there is none.

        A cold window that would hold windows from before and after the compaction start time is never written: what
        is before it is not merged.
        """
        duration = self.gathers_into
        if duration is None or window.overflow or duration % window.duration or window.start < _LEAST_COLD_START:
            return None
        cold = Window.of(window.start, duration)
        return None if cold.end > closed_before or cold.start < self.compaction_start_time < cold.end else cold

    @property
    def signal(self) -> Signal:
        """Metrics when the sort schema names a metric, events otherwise."""
        return signal_of(self.sort)

    @classmethod
    def of(cls, **values: Any) -> TableSettings:
        """Build from what people write: a schema string, "15m", "256MiB", lists.

        >>> TableSettings.of(sort="host|timestamp/V2", window="5m").window
        300
        """
        _refuse_unknown(values, _names(cls))
        if "sort" not in values:
            raise InvalidInput('sort: a table needs a sort schema, for example "metric_name|host|timestamp/V2"')
        return cls(**{name: _read(name, value) for name, value in values.items()})

    def changed(self, **values: Any) -> TableSettings:
        """Return the settings with some values changed, all of them checked anew."""
        _refuse_unknown(values, _names(type(self)))
        read = {name: _read(name, value) for name, value in values.items()}
        for name, reason in _FIXED.items():
            if name in read and read[name] != getattr(self, name):
                raise InvalidInput(
                    f"{name}: cannot change on a living table, since {reason}; create a new table instead"
                )
        changed = replace(self, **read)
        if read.keys() & _NAMING:
            changed.check_names()
        return changed

    def check_names(self) -> None:
        """Refuse settings that name a column in two spellings; tables that exist already may."""
        chosen = (*self.partition_by, *(self.tags or ()), *self.bloom_filters, *self.primary_key)
        named = [*self.sort.column_names, *chosen]
        for problem in name_problems(dict.fromkeys(named)):
            raise InvalidInput(f"the settings cannot name these columns: {problem}")

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that JSON can hold and `of` can read."""
        plain: dict[str, Any] = {name: getattr(self, name) for name in _names(type(self))}
        plain["sort"] = str(self.sort)
        plain["tags"] = None if self.tags is None else list(self.tags)
        plain["partition_by"] = list(self.partition_by)
        plain["bloom_filters"] = list(self.bloom_filters)
        plain["primary_key"] = list(self.primary_key)
        plain["policy"] = {name: getattr(self.policy, name) for name in _names(PolicySettings)}
        return plain

    def to_json(self) -> str:
        """Return `to_dict` as JSON text."""
        return json.dumps(self.to_dict(), ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> TableSettings:
        """Read what `to_json` wrote; tables that were made before there were cold windows have none."""
        return cls.of(**{"cold_window": None, **json.loads(text)})


def verification(value: object) -> Verify:
    """How much of a merge is compared, from what people write."""
    if value not in _VERIFY:
        raise InvalidInput(f"verify: {value!r} is none of {', '.join(_VERIFY)}")
    return value


def _read(name: str, value: Any) -> Any:
    """Turn what a person wrote for a setting into its value."""
    if name == "sort":
        return value if isinstance(value, SortSchema) else SortSchema.parse(value)
    if name == "window":
        return window_duration(value)
    if name == "cold_window":
        return None if value is None or value in ("off", "none") else cold_duration(value)
    if name == "policy":
        return PolicySettings.of(value)
    if name == "target_split_size":
        return parse_bytes(value, name)
    if name in ("late_data_acceptance_window", "retention") and isinstance(value, str | int | timedelta):
        return parse_seconds(value, name)
    if name in ("tags", "partition_by", "bloom_filters", "primary_key") and isinstance(value, list):
        return tuple(value)
    return value


def _names(cls: type) -> list[str]:
    return [each.name for each in fields(cls)]


def _refuse_unknown(values: dict[str, Any], names: list[str], prefix: str = "") -> None:
    for name in values:
        if name not in names:
            near = get_close_matches(name, names, 1)
            hint = f"did you mean {prefix}{near[0]}?" if near else f"known: {', '.join(names)}"
            raise InvalidInput(f"{prefix}{name} is not a setting of a table; {hint}")


def _whole(name: str, value: Any, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise InvalidInput(f"{name}: expected a whole number of at least {least}, found {value!r}")


def _column_names(name: str, value: Any) -> None:
    good = isinstance(value, tuple) and all(isinstance(column, str) and column for column in value)
    if not good or len(set(value)) != len(value):
        raise InvalidInput(f"{name}: expected a list of different column names, found {value!r}")
