"""What an ingest did."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

__all__ = ["IngestResult"]


@dataclass(frozen=True, slots=True)
class IngestResult:
    """One published ingest, counted."""

    table: str
    commit_id: str
    version: int
    rows: int
    splits: int
    windows: int
    size_bytes: int
    null_timestamps: int
    """Rows without a timestamp, which lie in the overflow window."""
    late: int = 0
    """Rows that were dropped because they came too late."""
    future: int = 0
    """Rows that were dropped because they lie too far ahead."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self)
