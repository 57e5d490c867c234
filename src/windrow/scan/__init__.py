"""Which bytes answer a question."""
