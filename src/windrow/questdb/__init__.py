"""QuestDB's tables on disk: `_txn`, and partitions whose Parquet files grow in place under many readers."""

from windrow.questdb.database import Database, DatabaseTable, open_database, open_table
from windrow.questdb.snapshot import Snapshot

__all__ = ["Database", "DatabaseTable", "Snapshot", "open_database", "open_table"]
