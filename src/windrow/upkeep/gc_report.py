"""What garbage collection would do, and what it did."""

from __future__ import annotations

from dataclasses import dataclass

from windrow.model.shown import ShownByField

__all__ = ["GcPlan", "GcResult"]


@dataclass(frozen=True, slots=True, repr=False)
class GcPlan(ShownByField):
    """What garbage collection would delete."""

    table: str
    grace_seconds: int
    oldest_version: int
    """The oldest version that can be read now."""
    oldest_version_then: int
    """The oldest version that could be read afterwards."""
    held_by: tuple[str, ...]
    """What keeps older versions readable than the grace period asks for."""
    expired_commits: int
    """Commits that are open although their lease ran out."""
    retired_splits: int
    """Splits that no readable version shows."""
    retired_bytes: int
    orphan_files: int
    """Files without a split, of commits that have ended."""
    orphan_bytes: int
    young_files: int
    """Files without a split that are younger than the grace period; they stay."""
    unknown_files: int
    """Files without a split, of commits that the metastore does not know; they stay."""


@dataclass(frozen=True, slots=True, repr=False)
class GcResult(ShownByField):
    """What garbage collection deleted, and what it left."""

    table: str
    grace_seconds: int
    oldest_version: int
    """The oldest version that can be read now."""
    ended_commits: tuple[str, ...]
    retired_splits: int
    retired_bytes: int
    orphan_files: int
    orphan_bytes: int
    young_files: int
    unknown_files: int
    unfinished_files: int
    """Hidden files that crashed writers left on a local disk."""
    failed_files: int
    """Files that the store did not let go of; the next run tries again."""
    problems: tuple[str, ...]
    """What the store reported, the first of it."""
