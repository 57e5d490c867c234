"""The digest of a file: its CRC-32, as text with the name of the method in front.

Checksums of pieces join to that of the whole. So a merge, which reads a file by row groups and in any order, has
compared every byte of it with what was written when it is done.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from windrow.storage import BytesLike, pieces

__all__ = ["checksum", "digest_of", "joined_digest"]

_METHOD = "crc32:"


def checksum(data: BytesLike) -> int:
    """The CRC-32 of some bytes."""
    from windrow.kernels.checksums import crc32

    array = np.frombuffer(data, np.uint8)
    return crc32(0, array, 0, array.size)


def digest_of(data: BytesLike) -> str:
    """The digest of a file, given its bytes."""
    return joined_digest((checksum(piece), len(piece)) for piece in pieces(data))


def joined_digest(pieces: Iterable[tuple[int, int]]) -> str:
    """The digest of a file, given checksum and length of pieces that lie behind each other."""
    from windrow.kernels.checksums import joined

    whole = 0
    for crc, length in pieces:
        whole = joined(whole, crc, length)
    return _text(whole)


def _text(crc: int) -> str:
    return f"{_METHOD}{crc:08x}"
