"""The files at the top of a lake."""

__all__ = ["BESIDE", "MARKER", "MARKER_FORMAT"]

MARKER = "_windrow.json"
MARKER_FORMAT = 1
BESIDE = "windrow.db"
"""The metastore in the lake's own folder: it moves with the lake, so its address is its name."""
