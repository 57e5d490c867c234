"""Where the parts of a sidecar are: header, footer chain and feature sections, every offset checked before use."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from windrow.errors import Damaged, Incompatible, NotFound
from windrow.sidecar import layout
from windrow.sidecar.content import Content
from windrow.sidecar.layout import Feature, FooterFeature


def damaged(name: str, field: str, offset: int, problem: str) -> Damaged:
    """The one error of bytes that cannot be a sidecar: which file, which field, where, and what to do."""
    return Damaged(f"{name}: {field} at byte {offset}: {problem}; rebuild the sidecar from its Parquet file")


class Header(NamedTuple):
    """The fixed part of the header, and where the parts after it start."""

    committed_size: int
    feature_flags: int
    designated_timestamp: int
    sorting_column_count: int
    column_count: int
    reserved: int
    sorting_offset: int
    names_offset: int
    block_size: int
    """Bytes of a row group's block without its out-of-line region."""

    @property
    def bloom_external(self) -> bool:
        """Whether bloom filters stay in the Parquet file."""
        return bool(self.feature_flags & Feature.BLOOM_FILTERS_EXTERNAL)


class Footer(NamedTuple):
    """The fixed part of one footer and its place: it starts at `offset`, its trailer ends at `size`."""

    offset: int
    length: int
    size: int
    parquet_footer_offset: int
    parquet_footer_length: int
    row_group_count: int
    unused_bytes: int
    previous_size: int
    feature_flags: int

    @property
    def parquet_size(self) -> int:
        """The size of the Parquet file that this snapshot describes."""
        return self.parquet_footer_offset + self.parquet_footer_length + layout.PARQUET_TAIL

    @property
    def entries_offset(self) -> int:
        """Where the row group entries start."""
        return self.offset + layout.FOOTER_SIZE

    @property
    def sections_offset(self) -> int:
        """Where the feature sections start: after the row group entries."""
        return self.offset + layout.FOOTER_SIZE + self.row_group_count * layout.ENTRY_SIZE

    @property
    def crc_offset(self) -> int:
        """Where the CRC is: the feature sections end here."""
        return self.size - layout.TRAILER_SIZE - layout.CRC_SIZE


class HeaderSections(NamedTuple):
    """The sections of the header's feature flags. `windrow` is the byte range of our own section."""

    bloom_columns: NDArray[np.uint32]
    squash_tracker: int
    windrow: tuple[int, int] | None
    facts: bytes | bytearray
    """What our section begins with: the order of every column, then the hash of every name."""


class FooterSections(NamedTuple):
    """The sections of a footer's feature flags. `windrow` is the byte range of our own section."""

    bloom_offset: int
    seq_txn: int
    scratchpad: tuple[tuple[int, bytes], ...]
    windrow: tuple[int, int] | None


_NO_SECTIONS = HeaderSections(np.empty(0, "<u4"), layout.NONE, None, b"")
_SECTIONED = Feature.BLOOM_FILTERS | Feature.SQUASH_TRACKER | Feature.WINDROW_SCHEMA


def read_header(content: Content, name: str) -> Header:
    """The fixed part of the header, checked; the committed size is the only boundary that later reads may use."""
    if content.size < layout.HEADER_SIZE:
        raise damaged(name, "header", 0, f"the file has {content.size} bytes, a header has {layout.HEADER_SIZE}")
    fields = layout.HEADER_STRUCT.unpack(content.read(0, layout.HEADER_SIZE))
    # An update may have been published since it was read how much is committed.
    committed = fields[0] if content.committed is None else min(fields[0], content.committed)
    sorting_offset = layout.HEADER_SIZE + fields[4] * layout.DESCRIPTOR_SIZE
    names_offset = sorting_offset + fields[3] * layout.SORTING_SIZE
    block_size = layout.ROWS_SIZE + fields[4] * layout.CHUNK_SIZE
    header = Header._make((committed, *fields[1:], sorting_offset, names_offset, block_size))
    _refuse_required(header.feature_flags, name, "FEATURE_FLAGS", 8)
    if not layout.SMALLEST_FILE <= header.committed_size <= content.size:
        problem = f"{header.committed_size} bytes are committed, the file has {content.size}"
        raise damaged(name, "PARQUET_META_FILE_SIZE", 0, problem)
    _check_header(header, name)
    return header


def _check_header(header: Header, name: str) -> None:
    flags, timestamp = header.feature_flags, header.designated_timestamp
    if header.names_offset > header.committed_size:
        problem = f"{header.column_count} columns and {header.sorting_column_count} sorting columns do not fit"
        raise damaged(name, "COLUMN_COUNT", 24, problem)
    if header.bloom_external and not flags & Feature.BLOOM_FILTERS:
        raise damaged(name, "FEATURE_FLAGS", 8, "BLOOM_FILTERS_EXTERNAL is set without BLOOM_FILTERS")
    if not layout.NONE <= timestamp < header.column_count:
        problem = f"{timestamp} is no column of {header.column_count}"
        raise damaged(name, "DESIGNATED_TIMESTAMP", 16, problem)
    if flags & Feature.SORTING_IS_DTS_ASC and (timestamp < 0 or header.sorting_column_count):
        problem = "SORTING_IS_DTS_ASC needs a designated timestamp and no sorting columns"
        raise damaged(name, "FEATURE_FLAGS", 8, problem)


def _refuse_required(flags: int, name: str, field: str, offset: int) -> None:
    required = flags & ~layout.OPTIONAL_BITS
    if required:
        problem = f"{name}: {field} at byte {offset}: unknown required features {required:#x}"
        raise Incompatible(f"{problem}; read it with a newer Windrow, or rebuild the sidecar from its Parquet file")


def footer_chain(content: Content, header: Header, name: str) -> Iterator[Footer]:
    """All footers, the newest one first."""
    size = header.committed_size
    for _ in range(layout.LONGEST_CHAIN):
        footer = _footer_at(content, size, header, name)
        yield footer
        if footer.previous_size == 0:
            return
        if footer.previous_size >= size:
            problem = f"{footer.previous_size} is not before {size}, the chain of footers would not end"
            raise damaged(name, "PREV_PARQUET_META_FILE_SIZE", footer.offset + 24, problem)
        size = footer.previous_size
    raise damaged(name, "PREV_PARQUET_META_FILE_SIZE", size, f"more than {layout.LONGEST_CHAIN} footers in the chain")


def _footer_at(content: Content, size: int, header: Header, name: str) -> Footer:
    trailer = size - layout.TRAILER_SIZE
    if size < layout.SMALLEST_FILE:
        problem = f"a snapshot of {size} bytes, the smallest one has {layout.SMALLEST_FILE}"
        raise damaged(name, "PREV_PARQUET_META_FILE_SIZE", max(trailer, 0), problem)
    (length,) = layout.U32.unpack(content.read(trailer, layout.U32.size))
    offset = trailer - length
    if length < layout.SMALLEST_FOOTER or offset < header.names_offset:
        problem = f"a footer of {length} bytes does not fit between header and trailer"
        raise damaged(name, "FOOTER_LENGTH", trailer, problem)
    footer = Footer(offset, length, size, *layout.FOOTER_STRUCT.unpack(content.read(offset, layout.FOOTER_SIZE)))
    if footer.parquet_size >= 2**64:
        raise damaged(name, "PARQUET_FOOTER_OFFSET", offset, "the size of the Parquet file is beyond 64 bits")
    return footer


def choose_footer(content: Content, header: Header, name: str, parquet_size: int | None) -> Footer:
    """The latest footer, or the one that describes a Parquet file of `parquet_size` bytes; its own fields are checked.

    Footers on the way are not judged: a newer one with unknown required features does not hide an older one.
    """
    footer = _footer_at(content, header.committed_size, header, name)
    if parquet_size is not None and footer.parquet_size != parquet_size:
        footer = _older_footer(content, header, name, parquet_size)
    check_footer(footer, name)
    return footer


def check_footer(footer: Footer, name: str) -> None:
    """A footer that is about to be used has no unknown required features, and its row groups fit."""
    _refuse_required(footer.feature_flags, name, "FOOTER_FEATURE_FLAGS", footer.offset + 32)
    if footer.sections_offset > footer.crc_offset:
        problem = f"{footer.row_group_count} row groups do not fit in a footer of {footer.length} bytes"
        raise damaged(name, "ROW_GROUP_COUNT", footer.offset + 12, problem)


def _older_footer(content: Content, header: Header, name: str, parquet_size: int) -> Footer:
    for footer in footer_chain(content, header, name):
        if footer.parquet_size == parquet_size:
            return footer
    problem = f"{name}: no footer describes a Parquet file of {parquet_size} bytes"
    raise NotFound(f"{problem}; the sidecar is stale, rebuild it")


def check_blocks(entries: NDArray[np.int64], header: Header, footer: Footer, name: str) -> None:
    """Every row group's block lies between the header and the footer."""
    if not len(entries):
        return
    last = footer.offset - header.block_size
    if len(entries) * header.block_size > footer.offset - header.names_offset:
        problem = f"{len(entries)} blocks of {header.block_size} bytes do not fit between header and footer"
        raise damaged(name, "ROW_GROUP_COUNT", footer.offset + 12, problem)
    first = header.names_offset
    # The ufuncs' own reductions: the array methods cost a multiple for the few row groups of an ordinary file.
    if np.minimum.reduce(entries) * layout.WORD < first or np.maximum.reduce(entries) * layout.WORD > last:
        bad = np.flatnonzero((entries * layout.WORD < first) | (entries * layout.WORD > last))[0]
        place = footer.entries_offset + int(bad) * layout.ENTRY_SIZE
        problem = f"a block at byte {int(entries[bad]) * layout.WORD} is not between header and footer"
        raise damaged(name, f"BLOCK_OFFSET of row group {bad}", place, problem)


def read_header_sections(content: Content, header: Header, names_end: int, limit: int, name: str) -> HeaderSections:
    """The sections after the names; they end before `limit`."""
    flags, position = header.feature_flags, names_end
    bloom_columns, squash_tracker, windrow, facts = _NO_SECTIONS
    if not flags & _SECTIONED:
        return _NO_SECTIONS
    if flags & Feature.BLOOM_FILTERS:
        bloom_columns = _bloom_columns(content, header, position, limit, name)
        position += layout.U32.size * (1 + len(bloom_columns))
    if flags & Feature.SQUASH_TRACKER:
        _need(position, layout.I64.size, limit, "SQUASH_TRACKER", name)
        (squash_tracker,) = layout.I64.unpack(content.read(position, layout.I64.size))
        position += layout.I64.size
    # Sections are in bit order: behind one of unknown length the place of ours is lost, and it is left unused.
    if flags & Feature.WINDROW_SCHEMA and not unknown_features(header, None):
        count = header.column_count * (layout.ORDER_SIZE + layout.NAME_HASH_SIZE)
        _need(position, layout.U32.size + count, limit, "WINDROW_SCHEMA", name)
        section = content.read(position, layout.U32.size + count)
        (length,) = layout.U32.unpack_from(section)
        position += layout.U32.size
        _need(position, length, limit, "WINDROW_SCHEMA", name)
        windrow, facts = (position, position + length), section[layout.U32.size :]
    return HeaderSections(bloom_columns, squash_tracker, windrow, facts)


def _bloom_columns(content: Content, header: Header, position: int, limit: int, name: str) -> NDArray[np.uint32]:
    _need(position, layout.U32.size, limit, "BLOOM_COL_COUNT", name)
    (count,) = layout.U32.unpack(content.read(position, layout.U32.size))
    if not 0 < count <= header.column_count:
        raise damaged(name, "BLOOM_COL_COUNT", position, f"{count} bloom columns of {header.column_count} columns")
    position += layout.U32.size
    _need(position, count * layout.U32.size, limit, "BLOOM_FILTER_COLUMNS", name)
    columns = np.frombuffer(content.read(position, count * layout.U32.size), "<u4")
    if int(columns[-1]) >= header.column_count or (columns[1:] <= columns[:-1]).any():
        raise damaged(name, "BLOOM_FILTER_COLUMNS", position, "not ascending column positions without repetition")
    return columns


def read_footer_sections(
    content: Content, header: Header, footer: Footer, bloom_column_count: int, name: str
) -> FooterSections:
    """The sections between the row group entries and the CRC."""
    flags, limit = footer.feature_flags, footer.crc_offset
    bloom_offset = footer.sections_offset
    bloom_bytes = footer.row_group_count * bloom_column_count * bloom_slot(external=header.bloom_external).itemsize
    _need(bloom_offset, bloom_bytes, limit, "bloom filter slots", name)
    position = bloom_offset + bloom_bytes
    seq_txn = layout.NONE
    if flags & FooterFeature.SEQ_TXN:
        _need(position, layout.I64.size, limit, "SEQ_TXN", name)
        (seq_txn,) = layout.I64.unpack(content.read(position, layout.I64.size))
        position += layout.I64.size
    scratchpad: tuple[tuple[int, bytes], ...] = ()
    if flags & FooterFeature.SCRATCHPAD:
        scratchpad, position = _scratchpad(content, position, limit, name)
    windrow = snapshot_section(content, footer, name)
    end = limit if windrow is None else windrow[0]
    if position > end:
        raise damaged(name, "WINDROW_SNAPSHOT", end, "the section begins inside of another one")
    if position != end and not unknown_features(header, footer):
        raise damaged(name, "footer sections", position, f"{end - position} bytes that no feature flag announces")
    return FooterSections(bloom_offset, seq_txn, scratchpad, windrow)


def bloom_slot(*, external: bool) -> np.dtype[Any]:
    """What one slot of a footer's bloom matrix is: a place in the Parquet file, or a word of the sidecar."""
    return layout.EXTERNAL_BLOOM if external else np.dtype("<u4")


def unknown_features(header: Header, footer: Footer | None) -> int:
    """Optional features that this version does not know; their sections cannot be measured."""
    unknown = header.feature_flags & layout.OPTIONAL_BITS & ~layout.KNOWN_FEATURES
    if footer is not None:
        unknown |= footer.feature_flags & layout.OPTIONAL_BITS & ~layout.KNOWN_FOOTER_FEATURES
    return unknown


def _scratchpad(content: Content, start: int, limit: int, name: str) -> tuple[tuple[tuple[int, bytes], ...], int]:
    field = "SCRATCHPAD"
    _need(start, layout.U32.size, limit, field, name)
    (count,) = layout.U32.unpack(content.read(start, layout.U32.size))
    if count == 0:
        raise damaged(name, field, start, "the section is announced but has no entries")
    limit = min(limit, start + layout.LARGEST_SCRATCHPAD)
    position = start + layout.U32.size
    entries = []
    for _ in range(count):
        _need(position, layout.U32_PAIR.size, limit, field, name)
        code, length = layout.U32_PAIR.unpack(content.read(position, layout.U32_PAIR.size))
        position += layout.U32_PAIR.size
        _need(position, length, limit, field, name)
        entries.append((code, bytes(content.read(position, length))))
        position += length
    return tuple(entries), position


def snapshot_section(content: Content, footer: Footer, name: str) -> tuple[int, int] | None:
    """The byte range of our own section of a footer: the place of the bounds by column, then entries.

    It is the section of the highest optional bit, so it ends before the CRC, behind sections of later versions.
    """
    if not footer.feature_flags & FooterFeature.WINDROW_SNAPSHOT:
        return None
    end = footer.crc_offset - layout.U32.size
    if end >= footer.sections_offset:
        (length,) = layout.U32.unpack(content.read(end, layout.U32.size))
        if layout.U32.size <= length <= end - footer.sections_offset:
            return end - length, end
    raise damaged(name, "WINDROW_SNAPSHOT", max(end, footer.sections_offset), "the section does not fit before the CRC")


def _need(position: int, count: int, limit: int, field: str, name: str) -> None:
    if position + count > limit:
        raise damaged(name, field, position, f"{count} bytes do not fit before byte {limit}")
