"""QuestDB's tables on disk: `_txn`, and partitions whose Parquet files grow in place under many readers."""

from windrow.questdb.snapshot import Snapshot, open_snapshot

__all__ = ["Snapshot", "open_snapshot"]
