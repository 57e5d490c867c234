"""The noun `table.upkeep`: what keeps a table well, each verb with a plan and a run."""

from __future__ import annotations

from dataclasses import dataclass

from windrow.context import Context
from windrow.upkeep.gc import GarbageCollection
from windrow.upkeep.retention import Retention

__all__ = ["Upkeep"]


@dataclass(frozen=True, slots=True)
class Upkeep:
    """Upkeep of one table."""

    context: Context
    name: str

    @property
    def expire(self) -> Retention:
        """Take windows out of the table that are older than it keeps them."""
        return Retention(self.context, self.name)

    @property
    def gc(self) -> GarbageCollection:
        """Delete files that nobody can need any more."""
        return GarbageCollection(self.context, self.name)
