"""Which bytes answer a question: from a snapshot of a table to a scan plan."""
