"""Which strings are keys: the same on every store, and none that leads out of a store's root.

A key is taken literally. Percent signs, spaces and non-ASCII letters mean themselves, so no decoding anywhere can turn
one key into another.
"""

from __future__ import annotations

import re

from windrow.bounded import memo
from windrow.errors import InvalidInput

__all__ = ["RESERVED", "check_key", "check_prefix", "key_problem", "uri_of"]

RESERVED = ".windrow-"
"""How the names of files start that a store is still writing; no segment of a key may."""

# The tightest limits among the stores: a key in S3, a file name on Linux.
_MOST_KEY_BYTES = 1024
_MOST_SEGMENT_BYTES = 255

# Control characters, the backslash, and surrogates, which no encoding can write.
_FORBIDDEN = re.compile(r"[\x00-\x1f\x7f-\x9f\\\ud800-\udfff]")


def uri_of(url: str, key: str) -> str:
    """The address of an object in the store at a URL.

    >>> uri_of("s3://bucket/lake", "a.parquet")
    's3://bucket/lake/a.parquet'
    """
    return f"{url}{key}" if url.endswith("/") else f"{url}/{key}"


def check_key(key: str) -> str:
    """Give the key back if every store can hold it, else raise `InvalidInput`."""
    problem = key_problem(key)
    if problem is not None:
        raise InvalidInput(f"storage key {key[:_MOST_KEY_BYTES]!r}: {problem}")
    return key


def check_prefix(prefix: str) -> str:
    """The folder that a prefix names, without the slash at its end; the empty string is the root."""
    folder = prefix.removesuffix("/")
    return check_key(folder) if prefix else folder


@memo("checked keys", 8192)
def key_problem(key: str) -> str | None:
    """Why a string cannot be a key, or None."""
    if not key:
        return "it is empty; name an object"
    forbidden = _FORBIDDEN.search(key)
    if forbidden:
        return f"character {forbidden.group()!r} at position {forbidden.start()} is not allowed; leave it out"
    if len(key.encode()) > _MOST_KEY_BYTES:
        return f"it is longer than {_MOST_KEY_BYTES} bytes; shorten it"
    return next(filter(None, map(_segment_problem, key.split("/"))), None)


def _segment_problem(segment: str) -> str | None:
    if not segment:
        return "it has an empty segment; take away the leading, trailing or double slash"
    if segment in {".", ".."}:
        return f"segment {segment!r} is a way and not a name; write the key relative to the store's root"
    if segment.startswith(RESERVED):
        return f"names that start with {RESERVED!r} are kept for unfinished files; take another name"
    if len(segment.encode()) > _MOST_SEGMENT_BYTES:
        return f"segment {segment[:20] + '...'!r} is longer than {_MOST_SEGMENT_BYTES} bytes; shorten it"
    return None
