"""Freed memory: what one step of a merge frees the next one takes, and what is left at the end goes back."""

from __future__ import annotations

import ctypes
from contextlib import suppress
from functools import cache

import pyarrow as pa

__all__ = ["keep_freed_memory", "return_freed_memory"]

TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3
"""What the C library calls them."""
KEPT = 128 * 2**20
LARGEST = 32 * 2**20


@cache
def keep_freed_memory() -> bool:
    """Let the C library keep up to 128 MiB that were freed; whether it does.

    Every step of a merge takes some arrays of megabytes and frees them. Handed back to the system and asked for again,
    each of their pages is cleared and mapped anew, which takes a tenth of a merge. Arrays beyond 32 MiB still go back
    at once. A C library without this setting goes on as before.
    """
    try:
        setting = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return False
    return all(setting(name, value) for name, value in ((TRIM_THRESHOLD, KEPT), (MMAP_THRESHOLD, LARGEST)))


def return_freed_memory() -> None:
    """Hand what was freed back to the system, so that tasks do not keep for themselves what others could take."""
    pa.default_memory_pool().release_unused()
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
