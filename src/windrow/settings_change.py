"""`table.change`: the settings of a table change while it lives.

    metrics.change.plan(window="5m")    # what would differ
    metrics.change.run(window="5m")

New splits use the new values, old ones keep theirs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from windrow.context import Context
from windrow.metastore import TableRecord
from windrow.model.settings import (
    UNCHANGED,
    Duration,
    Names,
    PolicySettings,
    TableSettings,
    Unchanged,
    Verify,
)
from windrow.model.sort_schema import SortSchema

__all__ = ["ChangeSettings", "SettingChange", "SettingsChange"]


@dataclass(frozen=True, slots=True)
class SettingChange:
    """A setting whose value differs; those of the policy have names such as `policy.merge_factor`."""

    setting: str
    before: Any
    after: Any


@dataclass(frozen=True, slots=True)
class SettingsChange:
    """What a change of settings makes different."""

    table: str
    changes: tuple[SettingChange, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {"table": self.table, "changes": [asdict(each) for each in self.changes]}


@dataclass(frozen=True, slots=True)
class ChangeSettings:
    """Changes of the settings of one table. What is not given stays as it is; `policy` is given as a whole."""

    context: Context
    name: str

    def plan(  # noqa: PLR0913 - each is a setting
        self,
        *,
        sort: str | SortSchema | Unchanged = UNCHANGED,
        window: Duration | Unchanged = UNCHANGED,
        timestamp: str | Unchanged = UNCHANGED,
        timestamp_unit: str | Unchanged | None = UNCHANGED,
        timestamp_precision: str | Unchanged = UNCHANGED,
        tags: Names | Unchanged | None = UNCHANGED,
        partition_by: Names | Unchanged = UNCHANGED,
        bloom_filters: Names | Unchanged = UNCHANGED,
        compaction_start_time: int | Unchanged = UNCHANGED,
        late_data_acceptance_window: Duration | Unchanged = UNCHANGED,
        retention: Duration | Unchanged | None = UNCHANGED,
        target_split_size: str | int | Unchanged = UNCHANGED,
        mirror: bool | Unchanged = UNCHANGED,
        verify: Verify | Unchanged = UNCHANGED,
        policy: PolicySettings | dict[str, Any] | Unchanged = UNCHANGED,
    ) -> SettingsChange:
        """Say what would differ, or refuse the change as `run` would; nothing is written."""
        given = {name: value for name, value in locals().items() if name != "self"}
        record, after = self._changed(given)
        return _difference(record, after)

    def run(  # noqa: PLR0913 - each is a setting
        self,
        *,
        sort: str | SortSchema | Unchanged = UNCHANGED,
        window: Duration | Unchanged = UNCHANGED,
        timestamp: str | Unchanged = UNCHANGED,
        timestamp_unit: str | Unchanged | None = UNCHANGED,
        timestamp_precision: str | Unchanged = UNCHANGED,
        tags: Names | Unchanged | None = UNCHANGED,
        partition_by: Names | Unchanged = UNCHANGED,
        bloom_filters: Names | Unchanged = UNCHANGED,
        compaction_start_time: int | Unchanged = UNCHANGED,
        late_data_acceptance_window: Duration | Unchanged = UNCHANGED,
        retention: Duration | Unchanged | None = UNCHANGED,
        target_split_size: str | int | Unchanged = UNCHANGED,
        mirror: bool | Unchanged = UNCHANGED,
        verify: Verify | Unchanged = UNCHANGED,
        policy: PolicySettings | dict[str, Any] | Unchanged = UNCHANGED,
    ) -> SettingsChange:
        """Change settings, and return what differs now."""
        given = {name: value for name, value in locals().items() if name != "self"}
        record, after = self._changed(given)
        self.context.metastore.change_settings(record.table_id, after)
        return _difference(record, after)

    def _changed(self, given: Mapping[str, Any]) -> tuple[TableRecord, TableSettings]:
        record = self.context.metastore.table(self.name)
        values = {name: value for name, value in given.items() if value is not UNCHANGED}
        return record, record.settings.changed(**values)


def _difference(record: TableRecord, after: TableSettings) -> SettingsChange:
    old, new = _by_name(record.settings), _by_name(after)
    changes = (SettingChange(name, old[name], new[name]) for name in old if old[name] != new[name])
    return SettingsChange(record.name, tuple(changes))


def _by_name(settings: TableSettings) -> dict[str, Any]:
    """Return the settings by name; those of the policy stand where the policy does."""
    plain = settings.to_dict()
    policy = {f"policy.{name}": value for name, value in plain.pop("policy").items()}
    return plain | policy
