"""What a table is: versions, splits, commits, pins and checkpoints, in SQLite or PostgreSQL."""

from windrow.metastore.commits import PUBLISH_STEPS
from windrow.metastore.protocol import Metastore
from windrow.metastore.records import (
    MOST_ATTRIBUTES,
    Changes,
    Checkpoint,
    CommitKind,
    CommitRecord,
    CommitState,
    Pin,
    Published,
    SplitQuery,
    TableColumn,
    TableRecord,
    WindowSummary,
)
from windrow.metastore.sql import SqlMetastore

__all__ = [
    "MOST_ATTRIBUTES",
    "PUBLISH_STEPS",
    "Changes",
    "Checkpoint",
    "CommitKind",
    "CommitRecord",
    "CommitState",
    "Metastore",
    "Pin",
    "Published",
    "SplitQuery",
    "SqlMetastore",
    "TableColumn",
    "TableRecord",
    "WindowSummary",
]
