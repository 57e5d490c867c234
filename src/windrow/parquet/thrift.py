"""Thrift compact bytes, written: what footers and page headers of our own are made of.

A field is an id, a thrift type and the bytes of its value. A struct is its fields in the order of their ids:

    struct(i32(1, 7), binary(4, b"name"), nested(10, struct()))
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from windrow.kernels import rules as r

_BYTE = tuple(bytes([value]) for value in range(256))
STOP = b"\0"
"""The end of a struct."""


class Field(NamedTuple):
    """A field of a struct."""

    id: int
    type: int
    value: bytes


def varint(value: int) -> bytes:
    """An unsigned number, seven bits to a byte."""
    if value < 128:
        return _BYTE[value]
    groups = []
    while value >= 128:
        groups.append(value & 127 | 128)
        value >>= 7
    groups.append(value)
    return bytes(groups)


def zigzag(value: int) -> bytes:
    """A signed number of at most 64 bits; small ones take few bytes whatever their sign."""
    return varint(value << 1 if value >= 0 else (-value << 1) - 1)


def i32(field: int, value: int) -> Field:
    """A number of 32 bits."""
    return Field(field, r.I32, zigzag(value))


def i64(field: int, value: int) -> Field:
    """A number of 64 bits."""
    return Field(field, r.I64, zigzag(value))


def boolean(field: int, *, value: bool) -> Field:
    """A truth value, which is in the type and has no bytes."""
    return Field(field, r.TRUE if value else r.FALSE, b"")


def prefixed(value: bytes) -> bytes:
    """Bytes with their length before them: an element of a list of strings."""
    return varint(len(value)) + value


def binary(field: int, value: bytes) -> Field:
    """A string or binary."""
    return Field(field, r.BINARY, prefixed(value))


def nested(field: int, value: bytes) -> Field:
    """A struct, given as its bytes."""
    return Field(field, r.RECORD, value)


def list_of(field: int, element: int, values: Sequence[bytes]) -> Field:
    """A list of elements of one thrift type, given as their bytes."""
    count = len(values)
    size = _BYTE[min(count, 15) << 4 | element] + (varint(count) if count > 14 else b"")
    return Field(field, r.LIST, size + b"".join(values))


def verbatim(field: int, value: bytes) -> Field:
    """A list as it stands elsewhere, header included."""
    return Field(field, r.LIST, value)


def header(field: int, kind: int, *, after: int) -> bytes:
    """What stands before the value of a field that follows the field `after`."""
    step = field - after
    return _BYTE[step << 4 | kind] if 0 < step < 16 else _BYTE[kind] + zigzag(field)


def fields(*members: Field, after: int = 0) -> bytes:
    """The bytes of fields that follow the field `after`; without the end of the struct, so that more can follow."""
    out: list[bytes] = []
    for field, kind, value in members:
        out += header(field, kind, after=after), value
        after = field
    return b"".join(out)


def struct(*members: Field) -> bytes:
    """The bytes of a struct."""
    return fields(*members) + STOP
