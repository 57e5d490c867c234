"""Modules are loaded without a search for garbage between them.

What it buys: a fifth of the CPU of a process until its first answer (0.94 seconds without, 0.73 with; a third of the
rest is not ours). Loading a thousand modules makes many objects that stay, and the collector looks through all of
them again and again.

The trick is `gc.disable()`, which holds for the whole process while the modules are loaded: another thread's garbage in
cycles waits for half a second. A collector that is off already stays so. With the trick off, nothing is changed.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

from windrow.tricks import Trick, is_on

__all__ = ["loading"]


@contextmanager
def loading() -> Iterator[None]:
    """For a block that loads many modules."""
    if not (is_on(Trick.QUIET_LOADING) and gc.isenabled()):
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
