"""Arrow types as bytes and as text, for databases and files."""

from __future__ import annotations

import base64

import pyarrow as pa

__all__ = ["type_from_bytes", "type_from_text", "type_to_bytes", "type_to_text"]


def type_to_bytes(kind: pa.DataType) -> bytes:
    """Return a type as Arrow serializes it."""
    stored: bytes = pa.schema([("", kind)]).serialize().to_pybytes()
    return stored


def type_from_bytes(stored: bytes) -> pa.DataType:
    """Return the type of some bytes."""
    return pa.ipc.read_schema(pa.py_buffer(stored)).field(0).type


def type_to_text(kind: pa.DataType) -> str:
    """Return a type as text."""
    return base64.b64encode(type_to_bytes(kind)).decode("ascii")


def type_from_text(text: str) -> pa.DataType:
    """Return the type of a text."""
    return type_from_bytes(base64.b64decode(text))
