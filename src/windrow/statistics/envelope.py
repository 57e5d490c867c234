"""What records of statistics have in common: who wrote them, a checksum, and the file that they are about.

magic (4 bytes), version (1 byte), 3 bytes of zero, blake2b of all that follows (16 bytes), digest of the file (16
bytes), one zstd frame
"""

from __future__ import annotations

import hashlib

import zstandard

from windrow.errors import Damaged
from windrow.statistics.layout import FileId

__all__ = ["DIGEST_BYTES", "opened", "sealed", "unreadable"]

DIGEST_BYTES = 16
_START = 8 + 2 * DIGEST_BYTES
_MOST_CONTENT = 4 * 2**20
"""No statistics have more bytes before compression."""
_LEVEL = 3


def sealed(magic: bytes, version: int, file: FileId, content: bytes) -> bytes:
    """A record of some content about a file."""
    body = file.digest + zstandard.ZstdCompressor(_LEVEL).compress(content)
    return b"".join([magic, bytes([version, 0, 0, 0]), _digest(body), body])


def opened(magic: bytes, version: int, data: bytes, file: FileId, name: str) -> bytes | None:
    """The content of a record; None where it is about another content of the file; or `Damaged`."""
    if data[:5] != magic + bytes([version]):
        raise Damaged(f"{name}: these are no statistics that this version reads; they are collected anew")
    if data[8 : 8 + DIGEST_BYTES] != _digest(data[8 + DIGEST_BYTES :]):
        raise Damaged(f"{name}: the checksum of the statistics is wrong; they are collected anew")
    if data[8 + DIGEST_BYTES : _START] != file.digest:
        return None
    try:
        return zstandard.decompress(data[_START:], max_output_size=_MOST_CONTENT)
    except zstandard.ZstdError as error:
        raise unreadable(name, error) from error


def unreadable(name: str, error: Exception) -> Damaged:
    """The error about a record whose content makes no sense."""
    return Damaged(f"{name}: the statistics cannot be read: {error}; they are collected anew")


def _digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=DIGEST_BYTES).digest()
