"""How points come in: cut at windows, sorted, written by Spark's tasks, visible by one commit."""
