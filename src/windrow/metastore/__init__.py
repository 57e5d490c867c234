"""What a table is: versions, splits, commits, pins and checkpoints, in SQLite or PostgreSQL."""

from windrow.metastore.commits import PUBLISH_STEPS
from windrow.metastore.protocol import Metastore
from windrow.metastore.records import (
    MOST_ATTRIBUTES,
    Candidate,
    Changes,
    Checkpoint,
    CommitKind,
    CommitRecord,
    CommitState,
    GroupSummary,
    LostTable,
    Orphans,
    Pin,
    Published,
    Quarantined,
    Retired,
    RunRecord,
    RunState,
    SplitQuery,
    TableColumn,
    TableRecord,
    WindowSummary,
)
from windrow.metastore.sql import SqlMetastore

__all__ = [
    "MOST_ATTRIBUTES",
    "PUBLISH_STEPS",
    "Candidate",
    "Changes",
    "Checkpoint",
    "CommitKind",
    "CommitRecord",
    "CommitState",
    "GroupSummary",
    "LostTable",
    "Metastore",
    "Orphans",
    "Pin",
    "Published",
    "Quarantined",
    "Retired",
    "RunRecord",
    "RunState",
    "SplitQuery",
    "SqlMetastore",
    "TableColumn",
    "TableRecord",
    "WindowSummary",
]
