"""How much statistics may cost."""

from __future__ import annotations

import math
from dataclasses import dataclass

from windrow.errors import InvalidInput

__all__ = ["MOST_SYNOPSES", "NOTHING_LEARNT", "LearningSettings"]

MOST_SYNOPSES = 100
"""Synopses of a column in one file."""


@dataclass(frozen=True, slots=True)
class LearningSettings:
    """What may be spent on statistics while queries run; `windrow analyze` is not bound by it."""

    share: float = 0.15
    """Of the CPU seconds that queries use, so large a share may be spent on statistics; with 0 none are collected."""
    seconds_at_close: float = 0.0
    """Closing a lake waits so long for work that queries have paid for; what is left is for later queries."""
    only_dictionaries: bool = False
    """Whether all is passed over but columns whose values are in small dictionaries."""

    synopses: int = MOST_SYNOPSES
    """Of a column in one file there are at most so many synopses; of more row groups several share one."""

    def __post_init__(self) -> None:
        if self.synopses < 1:
            raise InvalidInput(f"statistics: {self.synopses} synopses of a column; give a whole number from 1 on")
        if not (0 <= self.share < math.inf and 0 <= self.seconds_at_close < math.inf):
            raise InvalidInput(
                f"statistics: a share of {self.share} and {self.seconds_at_close} seconds when a lake is closed; "
                "give numbers from 0 on, such as a share of 0.15"
            )

    @classmethod
    def of(cls, given: LearningSettings | float) -> LearningSettings:
        """The settings, where a share alone is given."""
        return given if isinstance(given, LearningSettings) else cls(float(given))


NOTHING_LEARNT = LearningSettings(0.0)
