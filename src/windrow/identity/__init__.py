"""Which lake a metastore serves, and which metastore a lake belongs to."""
