"""The headers of pages: read where a chunk holds them, and what a page of nulls is made of."""

from __future__ import annotations

from typing import NamedTuple

from windrow.errors import Damaged, InvalidInput
from windrow.parquet import thrift as t
from windrow.parquet.chunk import Encoding
from windrow.parquet.page_grammar import DATA_PAGE, DATA_PAGE_V2, DICTIONARY_PAGE, PAGE_GRAMMAR, PROTECTED
from windrow.parquet.schema import Leaf

__all__ = ["DATA_PAGE", "DATA_PAGE_V2", "DICTIONARY_PAGE", "PageHeader", "null_page", "read_page_header"]

MAX_PAGE_VALUES = (1 << 31) - 1


class PageHeader(NamedTuple):
    """What a page says of itself; its bytes follow the header."""

    type: int
    header_size: int
    compressed_size: int
    uncompressed_size: int
    num_values: int
    encoding: int
    crc: int | None = None
    """The CRC-32 of the bytes behind the header, where it states one."""


def read_page_header(data: bytes | memoryview, *, name: str) -> PageHeader:
    """Read the header that `data` begins with; `name` is what an error calls the file."""
    walked = PAGE_GRAMMAR.walk(bytes(data), name=name)
    flags, kind, uncompressed, compressed, values, encoding, *_, crc = walked.tables["page"][0].tolist()
    if compressed < 0 or uncompressed < 0 or values < 0:
        raise Damaged(f"{name}: page header, a size or a count is negative; write the file again")
    checksum = crc & 0xFFFFFFFF if flags & PROTECTED else None
    return PageHeader(kind, walked.end, compressed, uncompressed, values, encoding, checksum)


def null_page(leaf: Leaf, rows: int) -> bytes:
    """A data page, header included, in which a column is null in all rows; it is not compressed."""
    if leaf.max_definition == 0:
        raise InvalidInput(f"column {'.'.join(leaf.path)!r} is required and cannot be null; write it into the file")
    if not 0 <= rows <= MAX_PAGE_VALUES:
        raise InvalidInput(f"a page of {rows} rows: it can have at most {MAX_PAGE_VALUES}; use smaller row groups")
    levels = _zero_levels(leaf.max_repetition, rows) + _zero_levels(leaf.max_definition, rows)
    header = t.struct(
        t.i32(1, rows),
        t.i32(2, Encoding.PLAIN),
        t.i32(3, Encoding.RLE),
        t.i32(4, Encoding.RLE),
    )
    return t.struct(t.i32(1, DATA_PAGE), t.i32(2, len(levels)), t.i32(3, len(levels)), t.nested(5, header)) + levels


def _zero_levels(highest: int, count: int) -> bytes:
    """`count` levels, all zero, as one run with its length before it; nothing for levels that do not exist."""
    if not highest:
        return b""
    width = (highest.bit_length() + 7) // 8
    run = t.varint(count << 1) + bytes(width) if count else b""
    return len(run).to_bytes(4, "little") + run
