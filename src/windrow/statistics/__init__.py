"""Statistics of tables: what is known of columns, how many rows a condition or a join leaves, the order of joins."""
