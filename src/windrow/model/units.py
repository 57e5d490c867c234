"""Durations, sizes and moments as people write them: 90s, 15m, 1h, 30d; 64KiB, 256MiB, 1GB; 2026-01-31T12:00Z."""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta

from windrow.errors import InvalidInput
from windrow.model.moments import microseconds

__all__ = [
    "format_bytes",
    "format_count",
    "format_seconds",
    "format_units",
    "is_size",
    "parse_bytes",
    "parse_moment",
    "parse_seconds",
]

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
_BYTES = {"": 1, "B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
_SIZES = ("bytes", "budget", "target", "target_split_size")
"""Fields that count bytes and do not say so in their name, or say nothing else."""


def parse_seconds(value: str | int | timedelta, what: str) -> int:
    """Return whole seconds, zero or more; `what` names the setting in the error."""
    if isinstance(value, timedelta):
        value = f"{value.total_seconds():g}s" if value.microseconds else int(value.total_seconds())
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    match = re.fullmatch(r"(\d+)([smhdw])", value.strip()) if isinstance(value, str) else None
    if match is None:
        raise InvalidInput(f"{what}: {value!r} is not a duration; write seconds as a number, or 90s, 15m, 1h, 30d, 2w")
    return int(match[1]) * _SECONDS[match[2]]


def parse_bytes(value: str | int, what: str) -> int:
    """Return a number of bytes; `what` names the setting in the error."""
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    match = re.fullmatch(r"(\d+) ?([A-Za-z]*)", value.strip()) if isinstance(value, str) else None
    if match is None or match[2] not in _BYTES:
        raise InvalidInput(f"{what}: {value!r} is not a size; write bytes as a number, or 64KiB, 256MiB, 1GiB, 500MB")
    return int(match[1]) * _BYTES[match[2]]


def parse_moment(value: str | int | date, what: str) -> int:
    """Return microseconds since the epoch, of a time, a date or ISO text; a time without a zone is UTC.

    >>> parse_moment("1970-01-01T01:00+01:00", "timestamp")
    0
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    try:
        moment = datetime.fromisoformat(value.strip()) if isinstance(value, str) else value
        return microseconds(moment)  # type: ignore[arg-type]
    except (ValueError, TypeError, AttributeError):
        raise InvalidInput(
            f"{what}: {value!r} is no moment; give a datetime, a date, ISO text such as 2026-01-31T12:00:00Z (UTC "
            "unless a zone is given), or microseconds since the epoch"
        ) from None


def format_seconds(seconds: int) -> str:
    """Return the shortest exact writing: 900 is 15m, 3600 is 1h.

    >>> format_seconds(5400)
    '90m'
    """
    for unit in ("w", "d", "h", "m"):
        if seconds and seconds % _SECONDS[unit] == 0:
            return f"{seconds // _SECONDS[unit]}{unit}"
    return f"{seconds}s"


def is_size(name: str) -> bool:
    """Whether a field of this name counts bytes.

    >>> [name for name in ("size_bytes", "bytes_in", "rows") if is_size(name)]
    ['size_bytes', 'bytes_in']
    """
    return name in _SIZES or name.endswith("_bytes") or name.startswith("bytes_")


def format_count(count: int, noun: str) -> str:
    """Return a count of things for people.

    >>> format_count(1, "split"), format_count(2_000, "split")
    ('1 split', '2,000 splits')
    """
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def format_units(count: int, units: str) -> str:
    """Return a count with its unit for people.

    >>> format_units(4975, "bytes"), format_units(4975, "rows")
    ('4.9 KiB', '4,975 rows')
    """
    return format_bytes(count) if units == "bytes" else f"{count:,} {units}"


def format_bytes(count: float) -> str:
    """Return a size for people, in binary units with one decimal."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(count) < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} TiB"
