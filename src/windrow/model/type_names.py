"""Types of columns as people write them: double, int64, string, decimal(10, 2), timestamp[us, tz=UTC]."""

from __future__ import annotations

import re

import pyarrow as pa

from windrow.errors import InvalidInput

__all__ = ["parse_type"]

_DECIMAL = re.compile(r"decimal(?:128)?\((\d+), ?(\d+)\)")
_TIMESTAMP = re.compile(r"timestamp\[(s|ms|us|ns), ?tz=([\w/+:-]+)\]")


def parse_type(text: str | pa.DataType) -> pa.DataType:
    """Return the type that a text names; one that is a type already stays as it is.

    >>> parse_type("timestamp[us, tz=UTC]")
    TimestampType(timestamp[us, tz=UTC])
    """
    if isinstance(text, pa.DataType):
        return text
    try:
        name = text.strip()
        if match := _DECIMAL.fullmatch(name):
            return pa.decimal128(int(match[1]), int(match[2]))
        if match := _TIMESTAMP.fullmatch(name):
            return pa.timestamp(match[1], match[2])
        return pa.type_for_alias(name)
    except (ValueError, TypeError, AttributeError):
        raise InvalidInput(
            f"{text!r} is no type; write bool, int8 to int64, uint8 to uint64, float, double, decimal(10, 2), string, "
            "binary, date32, timestamp[us] or timestamp[us, tz=UTC]"
        ) from None
