"""What queries report of themselves for the learner: which plans they carried out, and the CPU that they used.

Reporting is on the way of every query. It takes no lock, and calls nothing of ours: queues of the standard library are
appended to, and what is too much falls out of them.
"""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass, field
from typing import NamedTuple

from windrow.planning.scan_plan import ScanPlan
from windrow.questions.naming import Question
from windrow.statistics.catalog import Catalog
from windrow.statistics.layout import FileId

__all__ = ["QueryCpu", "QueryLog", "ReportedScan", "ScannedRelation"]

_MOST_SCANS = 128
_MOST_QUERIES = 4096


class QueryCpu(NamedTuple):
    """The CPU that a query used, by the clock of the process."""

    began: float
    ended: float
    used: float
    """No more than between the two: a stream rests between its batches."""


@dataclass(slots=True, eq=False)
class QueryLog:
    """The reports of the queries of one lake; the learner takes them out."""

    scans: deque[ReportedScan] = field(default_factory=lambda: deque(maxlen=_MOST_SCANS))
    cpu: deque[QueryCpu] = field(default_factory=lambda: deque(maxlen=_MOST_QUERIES))
    running: list[None] = field(default_factory=list)
    """One entry for each query that is being worked on."""
    news: threading.Event = field(default_factory=threading.Event)
    """Set when there is a report."""


@dataclass(slots=True, eq=False)
class ScannedRelation:
    """Files that queries name together, of which something can be learnt."""

    log: QueryLog
    catalog: Catalog
    """Where statistics of the files are stored."""
    settled: set[tuple[str, ...] | None] = field(default_factory=set)
    """Sets of columns of which there is nothing to learn, in any of the files."""
    known: dict[tuple[str, ...] | None, set[FileId]] = field(default_factory=dict)
    """By set of columns, files of which there is nothing to learn."""


class ReportedScan(NamedTuple):
    """A plan that a query carried out."""

    relation: ScannedRelation
    plan: ScanPlan
    question: Question
