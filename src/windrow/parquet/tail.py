"""The end of a Parquet file: read once where the footer is small, and a second time where it is not."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from windrow.errors import Damaged
from windrow.parquet.footer import TAIL_SIZE, footer_length

__all__ = ["FIRST_READ", "Tail", "complete_tail"]

FIRST_READ = 64 * 2**10
"""Bytes of the first read of a file, from its end; most footers, and small files, fit in."""


class Tail(NamedTuple):
    """The end of a Parquet file."""

    data: bytes
    """As far as it was read: with the footer, and what came along before it."""
    footer: bytes
    """Metadata, its length and the magic."""

    @property
    def metadata(self) -> bytes:
        """The footer alone."""
        return self.footer[:-TAIL_SIZE]


def complete_tail(data: bytes, size: int, read: Callable[[int, int], bytes], *, name: str) -> Tail:
    """The tail of a file of `size` bytes that ends with `data`; `read` gives bytes by offset and length."""
    if len(data) < TAIL_SIZE:
        raise Damaged(f"{name}: {size} bytes are no Parquet file; the smallest has more")
    needed = footer_length(data[-TAIL_SIZE:], name)
    if needed > size:
        raise Damaged(f"{name}: the footer claims {needed} bytes, the file has {size}; it is damaged")
    if needed > len(data):
        data = read(size - needed, needed - len(data)) + data
    return Tail(data, data[-needed:])
