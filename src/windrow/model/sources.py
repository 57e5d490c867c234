"""The four ways in which the rows of a read arrive."""

from __future__ import annotations

from enum import StrEnum

__all__ = ["SourceKind"]


class SourceKind(StrEnum):
    """Where rows come from, in the order in which a read tries them; the last one serves every plan."""

    METADATA = "answer from metadata"
    DECODED = "decoded rows"
    PATHS = "plain paths"
    VIRTUAL = "virtual file"
