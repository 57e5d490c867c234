"""`table.change`: the settings of a table change while it lives.

    metrics.change.plan(window="5m")    # what would differ
    metrics.change.run(window="5m")

New splits use the new values, old ones keep theirs.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, TypedDict, Unpack

from windrow.context import Context
from windrow.metastore import TableRecord
from windrow.model.settings import Duration, Names, PolicySettings, TableSettings, Verify
from windrow.model.sort_schema import SortSchema

__all__ = ["ChangeSettings", "NewSettings", "SettingChange", "SettingsChange"]


class NewSettings(TypedDict, total=False):
    """The settings that a change gives, as `Lake.create_table` takes them; the others stay as they are."""

    sort: str | SortSchema
    window: Duration
    cold_window: Duration | None
    timestamp: str
    timestamp_unit: str | None
    timestamp_precision: str
    tags: Names | None
    partition_by: Names
    bloom_filters: Names
    primary_key: Names
    compaction_start_time: int
    late_data_acceptance_window: Duration
    retention: Duration | None
    target_split_size: str | int
    mirror: bool
    verify: Verify
    policy: PolicySettings | dict[str, Any]


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
    """Changes of the settings of one table; `policy` is given as a whole."""

    context: Context
    name: str

    def plan(self, **settings: Unpack[NewSettings]) -> SettingsChange:
        """Say what would differ, or refuse the change as `run` would; nothing is written."""
        return _difference(*self._changed(settings))

    def run(self, **settings: Unpack[NewSettings]) -> SettingsChange:
        """Change settings, and return what differs now."""
        record, after = self._changed(settings)
        self.context.metastore.change_settings(record.table_id, after)
        return _difference(record, after)

    def _changed(self, settings: NewSettings) -> tuple[TableRecord, TableSettings]:
        record = self.context.metastore.table(self.name)
        return record, record.settings.changed(**settings)


def _difference(record: TableRecord, after: TableSettings) -> SettingsChange:
    old, new = _by_name(record.settings), _by_name(after)
    changes = (SettingChange(name, old[name], new[name]) for name in old if old[name] != new[name])
    return SettingsChange(record.name, tuple(changes))


def _by_name(settings: TableSettings) -> dict[str, Any]:
    """Return the settings by name; those of the policy stand where the policy does."""
    plain = settings.to_dict()
    policy = {f"policy.{name}": value for name, value in plain.pop("policy").items()}
    return plain | policy
