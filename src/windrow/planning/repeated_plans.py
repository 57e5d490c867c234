"""Plans of questions that come again: the same question to the same files has the same plan, unless more was learnt.

A plan is taken again once it was made twice with the same result, and for some seconds: by then the first scan has
brought files into memory, where pages can be looked at, and other processes have stored what they learnt.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from windrow.bounded import BoundedCache
from windrow.planning.scan_plan import ScanPlan
from windrow.questions.naming import Question

__all__ = ["RepeatedPlans"]

_MOST = 8
_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class _Made:
    plan: ScanPlan
    revision: int
    at: float
    is_steady: bool
    """Whether the one before it was the same."""


class RepeatedPlans:
    """The last plans for some files. Threads may share them."""

    def __init__(self, revision: Callable[[], int], clock: Callable[[], float] = time.monotonic) -> None:
        """`revision` is another number whenever more is known of the files."""
        self._revision = revision
        self._clock = clock
        self._made: BoundedCache[Question, _Made] = BoundedCache("repeated plans", _MOST)

    def plan(self, question: Question, make: Callable[[], ScanPlan]) -> ScanPlan:
        """The plan of a question, made where it is not known to be the same as before."""
        before, revision, now = self._made.get(question), self._revision(), self._clock()
        is_alike = before is not None and before.revision == revision
        if before is not None and is_alike and before.is_steady and now - before.at < _SECONDS:
            return before.plan
        plan = make()
        is_steady = before is not None and is_alike and _names(before.plan) == _names(plan)
        self._made.put(question, _Made(plan, revision, now, is_steady))
        return plan


def _names(plan: ScanPlan) -> list[str]:
    return [each.name for each in plan.virtual]
