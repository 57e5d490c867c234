"""Which signatures of a kernel are compiled already, out of the index of numba's cache.

What it buys: a daemon of Spark loads all kernels once, and the workers that it forks find them ready, instead of
loading each at its first call (4 ms, half a second of a worker that uses a hundred); and a plan says how long a
first merge will compile. numba has no public way to list its cache. Where a version keeps it in another way, nothing
counts as compiled: kernels are loaded at their first call, as they are with the trick off.
"""

from __future__ import annotations

from typing import Any

from windrow.tricks import Trick, is_on

__all__ = ["cached_signatures"]


def cached_signatures(kernel: Any) -> list[Any]:
    """The signatures of a kernel in the compiler's cache; none where it cannot be read."""
    if not is_on(Trick.KERNEL_INDEX):
        return []
    try:
        return [key[0] for key in kernel._cache._cache_file._load_index()]  # noqa: SLF001
    except AttributeError:
        return []
