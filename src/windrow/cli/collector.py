"""The garbage collector of a command's process runs seldom.

What it buys: a seventh of the CPU of a short command (0.95 seconds without, 0.82 with). Loading a thousand modules
makes objects that stay, and the collector looks through all of them again and again.

The trick is `gc.set_threshold`, a setting of the whole process, made where that is a command's own. Garbage in cycles
waits for longer, some megabytes of it. With the trick off, the collector runs as Python has it.
"""

from __future__ import annotations

import gc

from windrow.tricks import Trick, is_on

__all__ = ["THRESHOLDS", "collect_seldom"]

THRESHOLDS = (100_000, 20, 50)


def collect_seldom() -> None:
    """Have the collector run after many more new objects than usual."""
    if is_on(Trick.RARE_COLLECTIONS):
        gc.set_threshold(*THRESHOLDS)
