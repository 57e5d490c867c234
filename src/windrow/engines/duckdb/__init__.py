"""SQL and conditions on DuckDB, over virtual files or decoded rows."""
