"""What a task tells the driver: the splits that it wrote, and what it did with the rows that it read."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, astuple, dataclass
from functools import reduce
from operator import or_

from windrow.ingest.dead_letter import DeadLetters
from windrow.model.split import SplitMetadata

__all__ = ["Report", "Reports", "RowCounts", "WrittenNames", "parse_reports", "split_of", "text_of"]


@dataclass(frozen=True, slots=True)
class RowCounts:
    """Rows, counted."""

    read: int = 0
    late: int = 0
    """Dropped: older than the acceptance window when they arrived."""
    future: int = 0
    """Dropped: too far ahead of their arrival."""
    conflicting: int = 0
    """Dropped: of types that the table cannot have."""
    unfit: int = 0
    """Dropped: a value that a point needs is null, or a time is out of range."""
    rounded: int = 0
    """Written with a time that lost digits."""

    def __add__(self, other: RowCounts) -> RowCounts:
        return RowCounts(*(sum(pair) for pair in zip(astuple(self), astuple(other), strict=True)))

    @property
    def dropped(self) -> int:
        """Rows that were read and not written."""
        return self.late + self.future + self.conflicting + self.unfit


@dataclass(frozen=True, slots=True)
class WrittenNames:
    """What the written rows have, by name."""

    columns: frozenset[str] = frozenset()
    attributes: frozenset[str] = frozenset()
    """Attributes that live in the residual column."""

    def __or__(self, other: WrittenNames) -> WrittenNames:
        return WrittenNames(self.columns | other.columns, self.attributes | other.attributes)


@dataclass(frozen=True, slots=True)
class Reports:
    """What all tasks of a run reported."""

    splits: tuple[SplitMetadata, ...]
    counts: RowCounts
    names: WrittenNames
    dead_letters: tuple[DeadLetters, ...]


Report = SplitMetadata | RowCounts | WrittenNames | DeadLetters


def text_of(report: Report) -> str:
    """Return a report as text that travels."""
    if isinstance(report, RowCounts):
        return json.dumps({"counts": asdict(report)})
    if isinstance(report, DeadLetters):
        return json.dumps({"dead_letters": asdict(report)})
    if isinstance(report, WrittenNames):
        return json.dumps({"names": {name: sorted(values) for name, values in asdict(report).items()}})
    return json.dumps({"split": report.to_dict()})


def split_of(text: str) -> SplitMetadata | None:
    """Return the split that a text reports, None when it reports something else."""
    data = json.loads(text)
    return SplitMetadata.from_dict(data["split"]) if "split" in data else None


def parse_reports(texts: Iterable[str]) -> Reports:
    """Return what texts report, put together."""
    reports = [json.loads(text) for text in texts]
    names = (each["names"] for each in reports if "names" in each)
    return Reports(
        splits=tuple(SplitMetadata.from_dict(each["split"]) for each in reports if "split" in each),
        counts=sum((RowCounts(**each["counts"]) for each in reports if "counts" in each), RowCounts()),
        names=reduce(
            or_,
            (WrittenNames(**{kind: frozenset(some) for kind, some in each.items()}) for each in names),
            WrittenNames(),
        ),
        dead_letters=tuple(DeadLetters(**each["dead_letters"]) for each in reports if "dead_letters" in each),
    )
