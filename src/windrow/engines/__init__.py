"""Who executes a plan: DuckDB, Spark, Polars, Arrow."""
