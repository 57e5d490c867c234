"""N sorted splits become M sorted splits with the same rows: merge runs, not rows."""
