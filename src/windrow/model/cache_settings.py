"""How much of a lake may be cached, and where."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

__all__ = ["CacheSettings"]

_MIB = 2**20


@dataclass(frozen=True, slots=True)
class CacheSettings:
    """How much may be cached where."""

    memory_bytes: int = 256 * _MIB
    """For bytes, in memory."""
    parsed_bytes: int = 256 * _MIB
    """For what was parsed from them, in memory, by its real footprint."""
    decoded_bytes: int = 128 * _MIB
    """For columns of local files that queries read again and again, decoded, in memory; 0 caches none."""
    disk_bytes: int = 10 * 1024 * _MIB
    """For bytes of remote files, on the disk; 0 keeps none."""
    folder: Path | None = None
    """Where on the disk; None is `windrow` in the user's cache folder."""
