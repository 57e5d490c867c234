"""Lakes whose reads are made to take one source each, and what they took."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from windrow.lake import Lake, open_lake
from windrow.model.sources import SourceKind
from windrow.reading.forcing import Forcing

WAYS = ["as chosen", "without pruning", *SourceKind]
"""How a lake is read."""


@dataclass
class Way:
    """A lake that is read one way."""

    name: str
    lake: Lake
    forcing: Forcing
    served: Counter = field(default_factory=Counter)
    """Queries, and those of which the forced source served a table at least."""

    @classmethod
    def open(cls, name, folder, cache):
        forcing = Forcing(name if isinstance(name, SourceKind) else None)
        lake = open_lake(folder, cache=cache, prune=name != "without pruning", forcing=forcing)
        return cls(str(name), lake, forcing)

    def ask(self, query):
        """The rows of a query, which is counted."""
        before = self.forcing.taken[self.forcing.kind]
        found = self.lake.sql(query).to_arrow()
        self.served["queries"] += 1
        self.served["served"] += self.forcing.taken[self.forcing.kind] > before
        return found

    def __str__(self):
        return f"{self.name}: {self.served['queries']} queries, {self.served['served']} served by it; {self._taken()}"

    def _taken(self):
        return ", ".join(f"{kind} {count}" for kind, count in sorted(self.forcing.taken.items()))
