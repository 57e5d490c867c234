"""What Windrow adds to a sidecar: sections of our own, behind optional feature bits that other readers pass over.

The header's section (bit 31) holds what is true of all snapshots: the Parquet schema and how each column compares. The
footer's section (bit 31) holds what is true of one: which file it describes, and where each row group keeps its page
records and its granule index. Both are lists of entries (code, length, content) and every entry may be absent;
docs/sidecar-extensions.md says what is done without it.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from windrow.sidecar import layout
from windrow.sidecar.content import Buffer
from windrow.sidecar.granules import GranuleIndex, decode_granules
from windrow.sidecar.layout import Order, SchemaCode, SnapshotCode
from windrow.sidecar.structure import Footer, Header, damaged

if TYPE_CHECKING:
    from windrow.parquet.footer import ParquetFooter

_ABSENT_VALUE = 2**32 - 1
_SCHEMA_CODES = frozenset(map(int, SchemaCode))
_SNAPSHOT_CODES = frozenset(map(int, SnapshotCode))
_PAGE_FIELDS = np.arange(layout.PAGES_WORDS)


_MOST_GRANULES = 256
"""Indexes that one sidecar keeps decoded."""


class Extensions:
    """The Windrow sections of one snapshot, read on demand; what is not there is `None`."""

    def __init__(
        self,
        name: str,
        words: NDArray[np.uint64],
        buffer: Buffer,
        header: Header,
        footer: Footer,
        schema_section: tuple[int, int] | None,
        snapshot_section: tuple[int, int] | None,
    ) -> None:
        self._name = name
        self._words = words
        self._buffer = buffer
        self._header = header
        self._footer = footer
        self._schema_section = schema_section
        self._snapshot_section = snapshot_section

    # ---- true of all snapshots

    @property
    def schema_bytes(self) -> bytes | None:
        """The list of schema elements, as the Parquet footer has it."""
        return self._content(self._schema, SchemaCode.SCHEMA)

    @property
    def column_orders_bytes(self) -> bytes | None:
        """The list of column orders, as the Parquet footer has it."""
        return self._content(self._schema, SchemaCode.COLUMN_ORDERS)

    @property
    def orders(self) -> NDArray[np.uint8] | None:
        """How the bounds of every column compare: an `Order` each."""
        if self._schema_section is None:
            return None
        return np.frombuffer(self._buffer, "u1", self._header.column_count, self._schema_section[0])

    @cached_property
    def schema(self) -> ParquetFooter | None:
        """The schema, parsed: the footer of a file that has it and no rows."""
        if self.schema_bytes is None:
            return None
        footer = parse_schema(self.schema_bytes, self.column_orders_bytes, self._name)
        return replace(footer, created_by=self.created_by)

    # ---- true of this snapshot

    @cached_property
    def etag(self) -> str | None:
        """The etag of the file that was described."""
        return self._text(SnapshotCode.ETAG)

    @cached_property
    def created_by(self) -> str | None:
        """Who wrote the Parquet file; readers judge its statistics by that."""
        return self._text(SnapshotCode.CREATED_BY)

    @cached_property
    def version(self) -> int | None:
        """The version number of the Parquet footer."""
        content = self._content(self._snapshot, SnapshotCode.VERSION)
        if content is not None and len(content) != layout.I32.size:
            raise self._damaged("VERSION", self._snapshot[SnapshotCode.VERSION][0], "not a 32-bit number")
        return None if content is None else int.from_bytes(content, "little", signed=True)

    @cached_property
    def key_value(self) -> dict[str, str | None] | None:
        """The key-value metadata of the Parquet file."""
        content = self._content(self._snapshot, SnapshotCode.KEY_VALUE)
        if content is None:
            return None
        pairs = _decode_pairs(content)
        if pairs is None:
            raise self._damaged("KEY_VALUE", self._snapshot[SnapshotCode.KEY_VALUE][0], "a key or value is cut off")
        return pairs

    def pages(self, column: int) -> tuple[NDArray[np.void], NDArray[np.bool_]] | None:
        """The `PAGES` records of one column in all row groups, and which row groups have one."""
        table = self.tables[SnapshotCode.PAGES]
        if table is None:
            return None
        # Where there is no record any place inside of the file will do: the mask leaves it out.
        first = np.where(table > 0, table + column * layout.PAGES_WORDS, 0)
        words = self._words[first[:, None] + np.where(table[:, None] > 0, _PAGE_FIELDS, 0)]
        return words.view(layout.PAGES)[:, 0], table > 0

    def page_records(self, row_group: int) -> NDArray[np.void] | None:
        """The `PAGES` records of all columns in one row group."""
        table = self.tables[SnapshotCode.PAGES]
        if table is None or not table[row_group]:
            return None
        start = int(table[row_group]) * layout.WORD
        return np.frombuffer(self._buffer, layout.PAGES, self._header.column_count, start)

    @cached_property
    def granule_counts(self) -> NDArray[np.int64]:
        """How many granules every row group has; 0 where there is no index."""
        table = self.tables[SnapshotCode.GRANULES]
        if table is None:
            return np.zeros(self._footer.row_group_count, np.int64)
        # An index begins with its number of granules, in half a word.
        counts = self._words[table] & np.uint64(0xFFFFFFFF)
        return np.where(table > 0, counts, 0).astype(np.int64)

    def granules(self, row_group: int) -> GranuleIndex | None:
        """The granule index of one row group."""
        table = self.tables[SnapshotCode.GRANULES]
        if table is None or not table[row_group]:
            return None
        decoded = self._decoded_granules
        if row_group not in decoded:
            if len(decoded) >= _MOST_GRANULES:
                decoded.clear()
            start = int(table[row_group]) * layout.WORD
            columns = self._header.column_count
            decoded[row_group] = decode_granules(self._buffer, start, self._footer.offset, columns, self._name)
        return decoded[row_group]

    @cached_property
    def _decoded_granules(self) -> dict[int, GranuleIndex]:
        """The indexes in use: a plan comes back to the same ones again and again."""
        return {}

    @cached_property
    def tables(self) -> dict[SnapshotCode, NDArray[np.int64] | None]:
        """The word at which each row group keeps its page records and its granule index; 0 for none."""
        pages = self._table(SnapshotCode.PAGES, self._header.column_count * layout.PAGES_SIZE)
        granules = self._table(SnapshotCode.GRANULES, layout.GRANULES.itemsize)
        return {SnapshotCode.PAGES: pages, SnapshotCode.GRANULES: granules}

    def check(self) -> None:
        """Look at all entries and places once; raises `Damaged`. Contents are looked at when they are used."""
        section, orders = self._schema_section, self.orders
        if section is not None and orders is not None and orders.max(initial=0) > layout.LAST_ORDER:
            position = int(orders.argmax())
            problem = f"{orders[position]} is no known one"
            raise self._damaged(f"order of column {position}", section[0] + position, problem)
        if self._schema or self._snapshot:
            _ = self.tables

    # ---- inside

    @cached_property
    def _schema(self) -> dict[int, tuple[int, int]]:
        facts = self._header.column_count * (layout.ORDER_SIZE + layout.NAME_HASH_SIZE)
        return self._entries(self._schema_section, facts, _SCHEMA_CODES)

    @cached_property
    def _snapshot(self) -> dict[int, tuple[int, int]]:
        return self._entries(self._snapshot_section, layout.U32.size, _SNAPSHOT_CODES)

    def _entries(
        self, section: tuple[int, int] | None, before: int, codes: frozenset[int]
    ) -> dict[int, tuple[int, int]]:
        """Where the entries of these codes are in a section; `before` is how many of its bytes are not entries."""
        places: dict[int, tuple[int, int]] = {}
        if section is None:
            return places
        position, end = section[0] + before, section[1]
        while position < end:
            start = position + layout.U32_PAIR.size
            if start > end:
                raise self._damaged("Windrow section", position, "an entry is cut off")
            code, length = layout.U32_PAIR.unpack_from(self._buffer, position)
            position = start + length
            if position > end:
                raise self._damaged("Windrow section", start, f"entry {code} of {length} bytes is cut off")
            if code in codes:
                places.setdefault(code, (start, position))
        return places

    def _content(self, entries: dict[int, tuple[int, int]], code: int) -> bytes | None:
        place = entries.get(code)
        return None if place is None else bytes(self._buffer[slice(*place)])

    def _text(self, code: SnapshotCode) -> str | None:
        content = self._content(self._snapshot, code)
        return None if content is None else _text(content)

    def _table(self, code: SnapshotCode, size: int) -> NDArray[np.int64] | None:
        place = self._snapshot.get(code)
        if place is None:
            return None
        start, end = place
        count = self._footer.row_group_count
        if end - start != count * layout.ENTRY_SIZE:
            raise self._damaged(code.name, start, f"not one place for each of {count} row groups")
        table = np.frombuffer(self._buffer, "<u4", count, start).astype(np.int64)
        places = table[table > 0] * layout.WORD
        if len(places) and not (
            places.min() >= self._header.names_offset and places.max() + size <= self._footer.offset
        ):
            raise self._damaged(code.name, start, "a place that is not between header and footer")
        return table

    def _damaged(self, field: str, offset: int, problem: str) -> Exception:
        return damaged(self._name, field, offset, problem)


def parse_schema(schema: bytes, column_orders: bytes | None, name: str) -> ParquetFooter:
    """The footer of a file without rows that has these lists of schema elements and column orders."""
    from windrow.parquet.footer import parse_footer

    return parse_footer(_empty_file(schema, column_orders), name=name)


def schema_section(names: Sequence[str], orders: Sequence[Order], schema: bytes, column_orders: bytes | None) -> bytes:
    """The content of the header's Windrow section."""
    entries: dict[int, bytes] = {SchemaCode.SCHEMA: schema}
    if column_orders is not None:
        entries[SchemaCode.COLUMN_ORDERS] = column_orders
    hashes = np.array([zlib.crc32(name.encode()) for name in names], "<u4")
    return bytes(orders) + hashes.tobytes() + encode_entries(entries)


def snapshot_entries(
    *, created_by: str | None, version: int, key_value: Mapping[str, str | None], etag: str | None
) -> dict[int, bytes]:
    """The entries of a footer's Windrow section that come from the Parquet file as a whole."""
    entries: dict[int, bytes] = {SnapshotCode.VERSION: layout.I32.pack(version)}
    if etag is not None:
        entries[SnapshotCode.ETAG] = _bytes(etag)
    if created_by is not None:
        entries[SnapshotCode.CREATED_BY] = _bytes(created_by)
    if key_value:
        entries[SnapshotCode.KEY_VALUE] = _encode_pairs(key_value)
    return entries


def encode_entries(entries: Mapping[int, bytes]) -> bytes:
    """A list of entries, ordered by code."""
    return b"".join(layout.U32_PAIR.pack(code, len(entries[code])) + entries[code] for code in sorted(entries))


def _bytes(text: str) -> bytes:
    """Text as a Parquet footer gave it: bytes that were no UTF-8 stay as they were."""
    return text.encode(errors="surrogateescape")


def _text(content: bytes) -> str:
    return content.decode(errors="surrogateescape")


def _encode_pairs(pairs: Mapping[str, str | None]) -> bytes:
    parts = []
    for key, value in pairs.items():
        raw, content = _bytes(key), b"" if value is None else _bytes(value)
        parts += [layout.U32_PAIR.pack(len(raw), _ABSENT_VALUE if value is None else len(content)), raw, content]
    return b"".join(parts)


def _decode_pairs(content: bytes) -> dict[str, str | None] | None:
    pairs: dict[str, str | None] = {}
    position = 0
    while position < len(content):
        if position + layout.U32_PAIR.size > len(content):
            return None
        key_length, value_length = layout.U32_PAIR.unpack_from(content, position)
        key_start = position + layout.U32_PAIR.size
        value_start = key_start + key_length
        present = value_length != _ABSENT_VALUE
        position = value_start + (value_length if present else 0)
        if position > len(content):
            return None
        pairs[_text(content[key_start:value_start])] = _text(content[value_start:position]) if present else None
    return pairs


def _empty_file(schema: bytes, column_orders: bytes | None) -> bytes:
    """The metadata of a Parquet file of this schema without row groups; the lists are embedded as they are."""
    version, schema_field, no_rows, no_row_groups = b"\x15\x02", b"\x19" + schema, b"\x16\x00", b"\x19\x0c"
    orders_field = b"" if column_orders is None else b"\x39" + column_orders
    return version + schema_field + no_rows + no_row_groups + orders_field + b"\x00"
