"""The compatibility scope: what two splits must share before they may ever be merged."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

__all__ = ["DEFAULT_SOURCE", "CompactionScope"]

DEFAULT_SOURCE = "default"


@dataclass(frozen=True, slots=True, order=True)
class CompactionScope:
    """The six-part key of ADR-003; only splits that are equal in all six parts may merge."""

    index_uid: str
    """The table's immutable id."""
    source_id: str
    """The caller's stable name of a source; never one per run."""
    partition_id: int
    """Hash of the tenant key, 0 when the table has none."""
    doc_mapping_uid: int
    """The schema epoch, raised only by an incompatible change of a type."""
    sort_schema: str
    """Canonical sort schema; empty for a registered file, which never merges."""
    window_duration: int
    """Seconds; 0 for a registered file."""

    def to_dict(self) -> dict[str, Any]:
        """Return the parts by name."""
        return asdict(self)

    def differences(self, other: CompactionScope) -> list[str]:
        """Name the parts in which two scopes differ, with both values."""
        mine, theirs = self.to_dict(), other.to_dict()
        return [f"{part}: {mine[part]!r} and {theirs[part]!r}" for part in mine if mine[part] != theirs[part]]
