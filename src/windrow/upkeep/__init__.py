"""What keeps a table well: garbage collection, retention, checks and repair."""
