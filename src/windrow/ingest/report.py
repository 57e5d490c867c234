"""What a task tells the driver: the splits that it wrote, and what it did with the rows that it read."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from functools import reduce
from operator import or_

from windrow.model.split import SplitMetadata

__all__ = ["Counts", "Names", "Report", "counts_of", "names_of", "split_of", "text_of"]


@dataclass(frozen=True, slots=True)
class Counts:
    """Rows, counted."""

    read: int = 0
    late: int = 0
    """Dropped: older than the acceptance window when they arrived."""
    future: int = 0
    """Dropped: too far ahead of their arrival."""

    def __add__(self, other: Counts) -> Counts:
        return Counts(self.read + other.read, self.late + other.late, self.future + other.future)

    @property
    def dropped(self) -> int:
        """Rows that were read and not written."""
        return self.late + self.future


@dataclass(frozen=True, slots=True)
class Names:
    """What the written rows have, by name."""

    columns: frozenset[str] = frozenset()
    attributes: frozenset[str] = frozenset()
    """Attributes that live in the residual column."""

    def __or__(self, other: Names) -> Names:
        return Names(self.columns | other.columns, self.attributes | other.attributes)


Report = SplitMetadata | Counts | Names


def text_of(report: Report) -> str:
    """Return a report as text that travels."""
    if isinstance(report, Counts):
        return json.dumps({"counts": asdict(report)})
    if isinstance(report, Names):
        return json.dumps({"names": {name: sorted(values) for name, values in asdict(report).items()}})
    return json.dumps({"split": report.to_dict()})


def split_of(text: str) -> SplitMetadata | None:
    """Return the split that a text reports, None when it reports something else."""
    data = json.loads(text)
    return SplitMetadata.from_dict(data["split"]) if "split" in data else None


def counts_of(texts: Iterable[str]) -> Counts:
    """Return the sum of all counts that texts report."""
    told = (json.loads(text) for text in texts)
    return sum((Counts(**each["counts"]) for each in told if "counts" in each), Counts())


def names_of(texts: Iterable[str]) -> Names:
    """Return all names that texts report."""
    told = (json.loads(text).get("names", {}) for text in texts)
    return reduce(or_, (Names(**{kind: frozenset(names) for kind, names in each.items()}) for each in told), Names())
