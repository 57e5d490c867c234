"""What a task tells the driver of a merge: the splits that came of it, or what went wrong and who is to blame."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from windrow.model.split import SplitMetadata

__all__ = ["MergeReport"]


@dataclass(frozen=True, slots=True)
class MergeReport:
    """The end of one attempt at a merge."""

    commit_id: str
    attempt: int
    seconds: float
    splits: tuple[SplitMetadata, ...] = ()
    problem: str | None = None
    """What went wrong; None when the splits are stored."""
    retryable: bool = False
    culprits: Mapping[str, str] = field(default_factory=dict)
    """Inputs that cannot be merged, by their ids, with the reasons."""

    def to_text(self) -> str:
        """Return text that travels."""
        return json.dumps(
            {
                "commit_id": self.commit_id,
                "attempt": self.attempt,
                "seconds": self.seconds,
                "splits": [split.to_dict() for split in self.splits],
                "problem": self.problem,
                "retryable": self.retryable,
                "culprits": dict(self.culprits),
            }
        )

    @classmethod
    def from_text(cls, text: str) -> MergeReport:
        """Read what `to_text` wrote."""
        data = json.loads(text)
        return cls(**data | {"splits": tuple(map(SplitMetadata.from_dict, data["splits"]))})
