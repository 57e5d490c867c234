"""Identifiers that sort by the time they were made: 48 bits of milliseconds, then 80 random bits, 26 characters."""

from __future__ import annotations

import re

__all__ = ["check_name", "time_ordered_id"]

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,127}")


def time_ordered_id(milliseconds: int, randomness: bytes) -> str:
    """Return the identifier for a moment and ten random bytes.

    >>> time_ordered_id(0, bytes(10))
    '00000000000000000000000000'
    """
    number = (milliseconds << 80) | int.from_bytes(randomness[:10], "big")
    return "".join(_ALPHABET[(number >> shift) & 31] for shift in range(125, -1, -5))


def check_name(name: str) -> str | None:
    """Say what is wrong with a table's name, or None: it is a folder on disk and a table in SQL."""
    if _NAME.fullmatch(name):
        return None
    return f"{name!r} is not a table name: use a letter, then letters, digits and underscores, 128 at most"
