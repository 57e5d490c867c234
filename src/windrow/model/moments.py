"""Moments as microseconds since the epoch, UTC: whole numbers, since a float of seconds cannot hold those of today."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta

__all__ = ["EPOCH", "MICROSECOND", "instant", "microseconds"]

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)


def microseconds(moment: date) -> int:
    """Return the microseconds from the epoch to a time, or to the first moment of a date; without a zone it is UTC.

    >>> microseconds(datetime(1970, 1, 1, 0, 0, 1))
    1000000
    """
    start = moment if isinstance(moment, datetime) else datetime.combine(moment, time())
    zoned = start if start.tzinfo else start.replace(tzinfo=UTC)
    # A missing time of pandas is no number here, and refused by `int`.
    return int((zoned - EPOCH) // MICROSECOND)


def instant(microseconds: int) -> datetime:
    """Return the moment so many microseconds after the epoch; OverflowError where there is no such date."""
    return EPOCH + timedelta(microseconds=microseconds)
