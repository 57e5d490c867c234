"""How the rows of a split are cut."""

from __future__ import annotations

__all__ = ["GRANULE_ROWS", "ROW_GROUP_ROWS"]

ROW_GROUP_ROWS = 128 * 1024
GRANULE_ROWS = 4096
"""Rows of a page, in every column alike."""
