"""The first answers of a fresh process: a simple query over one local table, by SQLite and DuckDB alone."""
