"""Time windows: spans of equal duration, aligned to the epoch, that every split belongs to exactly one of.

A window holds the points from its start up to, but not with, its end. Points without a timestamp lie in the overflow
window of their own, which shares no row with the window that really starts at the epoch. A cold window is longer than
an hour: whole hours, so that it holds windows of every other duration whole; a split lies in one window of either kind.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from windrow.errors import InvalidInput
from windrow.model.units import parse_seconds

__all__ = [
    "COLD_HOURS",
    "TICKS_PER_SECOND",
    "TIMESTAMP_UNITS",
    "VALID_MINUTES",
    "Window",
    "cold_duration",
    "ticks_of",
    "time_bounds_us",
    "window_duration",
    "window_start",
    "window_starts",
]

VALID_MINUTES = (1, 2, 3, 4, 5, 6, 10, 12, 15, 20, 30, 60)
"""The durations that divide an hour evenly, so that windows line up with hours and days."""

COLD_HOURS = range(2, 7 * 24 + 1)
"""How long a cold window may be: two hours to a week."""

_VALID_SECONDS = frozenset(60 * minutes for minutes in VALID_MINUTES)
_HOUR = 3600
_SECONDS_IN = {"s": 1, "m": 60, "h": 3600}
TICKS_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
"""How many of each unit make a second."""
TIMESTAMP_UNITS = tuple(TICKS_PER_SECOND)
"""What an integer timestamp may count."""

_SECONDS_IN_DAY = 86_400
_INT64 = range(-(2**63), 2**63)


def window_duration(value: str | int | timedelta) -> int:
    """Return a window duration in seconds, from "15m", "1h", "900s", 900 or a timedelta.

    >>> window_duration("15m")
    900
    """
    seconds = _seconds(value)
    if seconds not in _VALID_SECONDS:
        problem = "does not divide an hour evenly" if _is_duration(value) else "is not a duration"
        valid = ", ".join(f"{minutes}m" for minutes in VALID_MINUTES)
        raise InvalidInput(f"window duration {value!r} {problem}; use one of {valid}")
    return seconds


def cold_duration(value: str | int | timedelta) -> int:
    """Return the duration of a cold window in seconds, from "12h", "1d", 86400 or a timedelta.

    >>> cold_duration("1d")
    86400
    """
    seconds = parse_seconds(value, "cold_window")
    if not _is_cold(seconds):
        raise InvalidInput(
            f"cold_window: {value!r} is not a whole number of hours from 2 to {COLD_HOURS[-1]} (7d), so that it could "
            "not hold windows of every duration whole; write for example 6h, 12h, 1d or 7d, or off"
        )
    return seconds


def _is_cold(seconds: object) -> bool:
    return type(seconds) is int and seconds % _HOUR == 0 and seconds // _HOUR in COLD_HOURS


def _check_duration(seconds: int) -> None:
    """Refuse what is the duration of no window."""
    if not _is_cold(seconds):
        window_duration(seconds)


def _is_duration(value: object) -> bool:
    """Whether a value is a duration, though perhaps none of a window."""
    if not isinstance(value, str):
        return type(value) is int or isinstance(value, timedelta)
    return re.fullmatch(r"[1-9][0-9]*[smhdw]", value) is not None


def _seconds(value: object) -> int:
    """Return whole seconds, or 0 for what is no duration."""
    if isinstance(value, timedelta):
        return 0 if value.microseconds else value // timedelta(seconds=1)
    if isinstance(value, str):
        match = re.fullmatch(r"([1-9][0-9]{0,3})([smh])", value)
        return int(match[1]) * _SECONDS_IN[match[2]] if match else 0
    return value if type(value) is int else 0


def window_start(t_seconds: int, duration: int) -> int:
    """Return the start of the window that a second lies in; before the epoch too, it is never after the second."""
    _check_duration(duration)
    return t_seconds - t_seconds % duration


@dataclass(frozen=True, slots=True, order=True)
class Window:
    """One window, by its start in seconds since the epoch."""

    start: int
    duration: int
    overflow: bool = False
    """Holds the points without a timestamp, and only those; `start` is 0 and says nothing then."""

    def __post_init__(self) -> None:
        _check_duration(self.duration)
        if type(self.start) is not int or self.start % self.duration or self.start not in _INT64:
            raise InvalidInput(
                f"window start {self.start!r} is not a 64-bit integer that {self.duration} seconds divide evenly; "
                "build the window with Window.of"
            )
        if self.overflow and self.start:
            raise InvalidInput(f"overflow window with start {self.start}: it starts at 0; use Window.overflow_of")
        if self.overflow and self.is_cold:
            raise InvalidInput(f"overflow window of {self.duration} s: points without a timestamp are never gathered")

    @classmethod
    def of(cls, t_seconds: int, duration: int) -> Window:
        """Return the window that a second lies in."""
        return cls(window_start(t_seconds, duration), duration)

    @classmethod
    def overflow_of(cls, duration: int) -> Window:
        """Return the window of the points without a timestamp."""
        return cls(0, duration, overflow=True)

    @property
    def end(self) -> int:
        """The first second after the window."""
        return self.start + self.duration

    @property
    def is_cold(self) -> bool:
        """Whether it is one of the longer windows, into which several are gathered."""
        return self.duration > _HOUR

    def holds(self, other: Window) -> bool:
        """Whether all of another window lies in this one; the windows of a duration that divides it do, or none of it.

        >>> Window(0, 7200).holds(Window(3600, 3600))
        True
        """
        if self.overflow or other.overflow:
            return self == other
        return self.duration % other.duration == 0 and self.start <= other.start < self.end

    def __str__(self) -> str:
        # numpy prints years that datetime cannot hold
        start = "overflow" if self.overflow else f"{np.datetime64(self.start, 's')}Z"
        return f"{start}/PT{self.duration // 60}M"


def window_starts(
    timestamps: pa.Array | pa.ChunkedArray, duration: int, *, unit: str | None = None
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Return the start in seconds of every point's window, and which points have no timestamp (their start is 0).

    `unit` ("s", "ms", "us", "ns") says what an integer column counts; Arrow's own timestamps and dates need none, and
    those without a time zone are UTC.
    """
    _check_duration(duration)
    ticks, per_second = ticks_of(timestamps, unit)
    is_null = np.asarray(pc.is_null(ticks), dtype=np.bool_)
    windows = np.asarray(pc.fill_null(ticks, 0), dtype=np.int64) // (per_second * duration)
    if windows.size and int(windows.min()) * duration not in _INT64:
        raise InvalidInput("timestamps: a value lies before the first window that 64 bits can hold; check the unit")
    return windows * duration, is_null


def time_bounds_us(timestamps: pa.Array | pa.ChunkedArray, *, unit: str | None = None) -> tuple[int, int] | None:
    """Return the least and the greatest timestamp in microseconds, both rounded down, None when all are null.

    Rounding down keeps order, so a time that matches a question still lies within the bounds of its own microsecond,
    and a point just before the end of a window does not seem to lie in the next one.
    """
    ticks, per_second = ticks_of(timestamps, unit)
    extremes = pc.min_max(ticks).as_py()
    if extremes["min"] is None:
        return None
    low, high = (extremes[name] * 10**6 // per_second for name in ("min", "max"))
    if low not in _INT64 or high not in _INT64:
        raise InvalidInput(
            f"timestamps: {low} to {high} microseconds do not fit into 64 bits; check the unit of the column"
        )
    return low, high


def ticks_of(timestamps: Any, unit: str | None) -> tuple[Any, int]:
    """Return a time column as int64 counts since the epoch, and how many counts make a second."""
    kind = timestamps.type
    if pa.types.is_timestamp(kind):
        return timestamps.cast(pa.int64()), TICKS_PER_SECOND[kind.unit]
    if pa.types.is_date64(kind):
        return timestamps.cast(pa.int64()), TICKS_PER_SECOND["ms"]
    if pa.types.is_date32(kind):
        return pc.multiply(timestamps.cast(pa.int32()).cast(pa.int64()), _SECONDS_IN_DAY), 1
    if not pa.types.is_integer(kind):
        raise InvalidInput(f"timestamps: a column of type {kind} tells no time; use a timestamp, a date or an integer")
    if unit not in TICKS_PER_SECOND:
        units = ", ".join(TIMESTAMP_UNITS)
        raise InvalidInput(
            f"timestamps: an integer column with the unit {unit!r}; set timestamp_unit to one of {units}"
        )
    return _as_int64(timestamps), TICKS_PER_SECOND[unit]


def _as_int64(integers: Any) -> Any:
    try:
        return integers.cast(pa.int64())
    except pa.ArrowInvalid as error:
        raise InvalidInput(f"timestamps: unsigned values above 2**63 - 1 are no timestamps: {error}") from None
