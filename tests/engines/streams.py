"""Streams that are read to the end."""

from __future__ import annotations


def streamed(lake, query, params=None, *, tables=None):
    """All batches of a stream, as a table."""
    with lake.stream(query, params, tables=tables) as batches:
        return batches.read_all()
