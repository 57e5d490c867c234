"""Proves that rows cannot match: from bounds to "may match", never a false skip."""
