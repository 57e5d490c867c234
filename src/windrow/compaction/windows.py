"""Which windows are meant: a moment, a range of time, or the window of points without a timestamp."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from math import floor

from windrow.errors import InvalidInput
from windrow.model.window import Window

__all__ = ["wanted_windows"]

Wanted = Callable[[Window | None], bool]


def wanted_windows(text: str | None) -> Wanted:
    """Return the test of windows that a text stands for; None is all windows.

    A moment ("2026-11-15T10:07", or seconds since the epoch) is the window it lies in, "from/to" all windows that
    start in this range, "overflow" the window of points without a timestamp.

    >>> wanted_windows("1970-01-01T00:20")(Window(900, 900))
    True
    """
    if text is None:
        return lambda _: True
    if text == "overflow":
        return lambda window: window is not None and window.overflow
    first, slash, last = text.partition("/")
    low = _seconds(first)
    if not slash:
        return lambda window: _timed(window) and window.start <= low < window.end  # type: ignore[union-attr]
    high = _seconds(last)
    return lambda window: _timed(window) and low <= window.start < high  # type: ignore[union-attr]


def _timed(window: Window | None) -> bool:
    return window is not None and not window.overflow


def _seconds(text: str) -> int:
    if text.removeprefix("-").isdecimal():
        return int(text)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidInput(
            f"window: {text!r} is no moment; write 2026-11-15T10:00 (UTC unless a zone is given), seconds since the "
            "epoch, a range from/to, or overflow"
        ) from None
    return floor((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())
