"""QuestDB's tables on disk: `_txn`, and partitions whose Parquet files grow in place under many readers."""
