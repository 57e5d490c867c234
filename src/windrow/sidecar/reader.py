"""Reading a sidecar: open it, choose a snapshot, and look at any part of it as arrays over the file's own bytes.

Opening reads the header, one footer and the row group entries; everything else is read on demand. The cost
of a question therefore follows what it touches, not the size of the file.
"""

from __future__ import annotations

import mmap
import os
import zlib
from collections.abc import Iterator
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from windrow.errors import InvalidInput, NotFound
from windrow.sidecar import layout, structure
from windrow.sidecar.columns import ColumnChunks
from windrow.sidecar.content import Buffer, Content, Held, open_content
from windrow.sidecar.extensions import Extensions, parse_schema
from windrow.sidecar.layout import ColumnFlag, Feature, Order
from windrow.sidecar.structure import Footer, FooterSections, Header, HeaderSections, damaged
from windrow.sidecar.types import is_designated, order_of

if TYPE_CHECKING:
    from windrow.parquet.footer import ParquetFooter

_BOUND_BYTES = len(layout.BOUND_WORDS) * layout.WORD
_ORDERS = tuple(Order)


class Sidecar:
    """One snapshot of a sidecar.

    With `verify` (the default) the CRC and every section are checked when it is opened, which reads the whole file
    once. Without it nothing is read ahead, for files that were verified before; no access leaves the file either way.
    """

    def __init__(self, content: Content, name: str, header: Header, footer: Footer) -> None:
        self.content = content
        self.name = name
        self.header = header
        self.footer = footer
        self._header_sections: HeaderSections | None = None
        self._bounds_start: int | None = None
        self._described: tuple[int, tuple[int, ...]] | None = None
        self.judged: dict[Any, Any] = {}
        """What pruning worked out of columns of this snapshot, to be met again by the next question."""

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, parquet_size: int | None = None, verify: bool = True) -> Sidecar:
        """The sidecar in a local file: its latest snapshot, or the one of a Parquet file of `parquet_size` bytes."""
        name = os.fspath(path)
        return cls._of(open_content(name), name, parquet_size, verify=verify)

    @classmethod
    def of(
        cls,
        buffer: bytes | bytearray | memoryview | mmap.mmap,
        *,
        name: str = "sidecar",
        parquet_size: int | None = None,
        committed: int | None = None,
        verify: bool = True,
    ) -> Sidecar:
        """The sidecar in bytes that were read from elsewhere; `name` is what errors call it.

        `committed` is how many bytes were committed before they were read; an update since then is passed over.
        """
        held = Held(bytes(buffer) if isinstance(buffer, memoryview) else buffer, committed)
        return cls._of(held, name, parquet_size, verify=verify)

    @classmethod
    def _of(cls, content: Content, name: str, parquet_size: int | None, *, verify: bool) -> Sidecar:
        header = structure.read_header(content, name)
        sidecar = cls(content, name, header, structure.choose_footer(content, header, name, parquet_size))
        if verify:
            sidecar.verify()
        return sidecar

    def snapshots(self) -> Iterator[Sidecar]:
        """All snapshots of the file, the newest one first, none of them verified."""
        for footer in structure.footer_chain(self.content, self.header, self.name):
            structure.check_footer(footer, self.name)
            yield Sidecar(self.content, self.name, self.header, footer)

    def verify(self) -> None:
        """Check the CRC of this snapshot, then names and sections; raises `Damaged`."""
        stored, computed = self.checksums()
        if stored != computed:
            problem = f"stored {stored:#010x}, the bytes give {computed:#010x}"
            raise damaged(self.name, "CHECKSUM", self.footer.crc_offset, problem)
        self._check_descriptors()
        _ = self.entries, self.sorting, self.footer_sections
        self.extensions.check()
        _ = self._bounds_offset

    def checksums(self) -> tuple[int, int]:
        """The CRC that the footer holds, and the one of the bytes that it covers."""
        (stored,) = layout.U32.unpack_from(self.buffer, self.footer.crc_offset)
        return stored, zlib.crc32(memoryview(self.buffer)[layout.CRC_START : self.footer.crc_offset])

    # ---- the snapshot

    @property
    def buffer(self) -> Buffer:
        """All bytes of the file."""
        return self.content.buffer

    @cached_property
    def words(self) -> NDArray[np.uint64]:
        """All bytes before the footer."""
        return np.frombuffer(self.buffer, "<u8", self.footer.offset // layout.WORD)

    @cached_property
    def entries(self) -> NDArray[np.int64]:
        """The word at which each row group's block starts."""
        raw = self.content.read(self.footer.entries_offset, self.row_group_count * layout.ENTRY_SIZE)
        entries = np.frombuffer(raw, "<u4").astype(np.int64)
        structure.check_blocks(entries, self.header, self.footer, self.name)
        return entries

    @property
    def column_count(self) -> int:
        """Leaf columns of the Parquet file."""
        return self.header.column_count

    @property
    def row_group_count(self) -> int:
        """Row groups of this snapshot."""
        return self.footer.row_group_count

    @property
    def parquet_size(self) -> int:
        """The size of the Parquet file that this snapshot describes."""
        return self.footer.parquet_size

    @property
    def designated_timestamp(self) -> int | None:
        """The position of the designated timestamp."""
        position = self.header.designated_timestamp
        return None if position == layout.NONE else position

    @property
    def from_questdb(self) -> bool:
        """Whether QuestDB wrote the Parquet file: every column is then what its type says, and none is a struct."""
        position = self.designated_timestamp
        return position is not None and is_designated(self.descriptor(position)[2])

    @property
    def spans_files(self) -> bool:
        """Whether the row groups are those of several files."""
        return False

    @cached_property
    def sorting(self) -> tuple[int, ...]:
        """Positions of the columns by which rows are sorted, the first one first."""
        if self.header.feature_flags & Feature.SORTING_IS_DTS_ASC:
            return (self.header.designated_timestamp,)
        count, start = self.header.sorting_column_count, self.header.sorting_offset
        sorting = np.frombuffer(self.content.read(start, count * layout.SORTING_SIZE), "<u4").tolist()
        if sorting and max(sorting) >= self.column_count:
            raise damaged(self.name, "SORTING_COLUMNS", start, f"{max(sorting)} is no column of {self.column_count}")
        return tuple(sorting)

    @property
    def bloom_columns(self) -> NDArray[np.uint32]:
        """Positions of the columns that may have bloom filters."""
        return self.header_sections.bloom_columns

    @property
    def squash_tracker(self) -> int | None:
        """QuestDB's squash tracker."""
        return _set_or_none(self.header_sections.squash_tracker)

    @property
    def seq_txn(self) -> int | None:
        """QuestDB's sequencer transaction of this snapshot."""
        return _set_or_none(self.footer_sections.seq_txn)

    @property
    def scratchpad(self) -> tuple[tuple[int, bytes], ...]:
        """Opaque (code, content) entries of this snapshot; of equal codes the first one counts."""
        return self.footer_sections.scratchpad

    @cached_property
    def extensions(self) -> Extensions:
        """What Windrow adds to the format; every part of it may be absent."""
        return Extensions(
            self.name,
            self.words,
            self.buffer,
            self.header,
            self.footer,
            self.header_sections.windrow,
            self.footer_sections.windrow,
        )

    @cached_property
    def schema(self) -> ParquetFooter | None:
        """The schema as a footer without rows: as our section has it, or as it follows from QuestDB's column types."""
        if self.extensions.schema_bytes is not None:
            return self.extensions.schema
        from windrow.sidecar.plain_schema import plain_schema

        schema = plain_schema(self)
        return None if schema is None else parse_schema(schema, None, self.name)

    def describes(self, size: int, etag: str | None = None) -> bool:
        """Whether a file of this size and etag can be the described one; an etag counts where both have one."""
        own = self.extensions.etag
        return size == self.parquet_size and (etag is None or own is None or etag == own)

    # ---- columns

    @cached_property
    def descriptors(self) -> NDArray[np.void]:
        """One record per column."""
        return np.frombuffer(self.buffer, layout.DESCRIPTOR, self.column_count, layout.HEADER_SIZE)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The column names; leaves of one nested column share its name."""
        return tuple(self.column_name(i) for i in range(self.column_count))

    def column_name(self, position: int) -> str:
        """The name of one column."""
        offset, *_, length = self.descriptor(position)[:6]
        if not self.header.names_offset <= offset <= offset + length <= self.footer.offset:
            raise self._bad_name(position, offset, f"of {length} bytes is not between header and footer")
        try:
            return str(self.content.read(offset, length), "utf-8")
        except UnicodeDecodeError as error:
            raise self._bad_name(position, offset, "is not UTF-8") from error

    def column_position(self, name: str) -> int:
        """The position of the first column of this name."""
        positions = self.column_positions(name)
        if not positions:
            raise NotFound(f"{self.name}: no column {name!r}; `names` lists the columns")
        return positions[0]

    def column_positions(self, name: str) -> list[int]:
        """The positions of all columns of this name: the leaves of a nested column share one."""
        return self._hashed_positions(name.encode()) or self._positions.get(name, [])

    def column(self, column: int | str, row_groups: NDArray[np.int64] | None = None) -> ColumnChunks:
        """One column over all row groups, or over those at the given positions."""
        position = self.column_position(column) if isinstance(column, str) else column
        return ColumnChunks(self, position, row_groups)

    def descriptor(self, position: int) -> tuple[int, ...]:
        """The fields of one column's `DESCRIPTOR`."""
        if not 0 <= position < self.header.column_count:
            raise InvalidInput(f"{self.name}: no column at position {position}; there are {self.column_count}")
        # A column is looked for by its name, and then looked at.
        described = self._described
        if described is None or described[0] != position:
            raw = self.content.read(self._descriptor_offset(position), layout.DESCRIPTOR_SIZE)
            self._described = described = position, layout.DESCRIPTOR_STRUCT.unpack(raw)
        return described[1]

    def order(self, position: int) -> Order:
        """How the bounds of a column compare."""
        fields, sections = self.descriptor(position), self.header_sections
        if sections.windrow is None:
            return order_of(fields[2], fields[6], from_questdb=self.from_questdb)
        code = sections.facts[position]
        if code > layout.LAST_ORDER:
            place = sections.windrow[0] + position
            raise damaged(self.name, f"order of column {position}", place, f"{code} is no known one")
        return _ORDERS[code]

    # ---- row groups

    @property
    def row_counts(self) -> NDArray[np.uint64]:
        """The rows of every row group."""
        return self.words[self.entries]

    @property
    def chunks(self) -> NDArray[np.void]:
        """All chunk records, by row group and column; a view of the file where blocks are evenly spaced."""
        groups, columns = self.row_group_count, self.column_count
        gaps = np.diff(self.entries)
        if groups and columns and (gaps == gaps[:1]).all() and (gaps >= 0).all():
            stride = int(gaps[0]) * layout.WORD if len(gaps) else self.header.block_size
            first = int(self.entries[0]) * layout.WORD + layout.ROWS_SIZE
            strides = (stride, layout.CHUNK_SIZE)
            return np.ndarray((groups, columns), layout.CHUNK, self.buffer, first, strides)
        words = self.words[(self.entries + 1)[:, None] + np.arange(columns * layout.CHUNK_WORDS)]
        chunks: NDArray[np.void] = words.reshape(-1).view(layout.CHUNK).reshape(groups, columns)
        return chunks

    @property
    def bounds_by_column(self) -> NDArray[np.uint64] | None:
        """By column and row group, the `BOUND_WORDS` of every chunk; wide files of ours have it."""
        if not self._bounds_offset:
            return None
        shape = (self.column_count, self.row_group_count, len(layout.BOUND_WORDS))
        first = self._bounds_offset // layout.WORD
        return self.words[first : first + prod(shape)].reshape(shape)

    def column_bounds(self, position: int) -> NDArray[np.uint64] | None:
        """One column of `bounds_by_column`: all its bounds in one place, not one for each row group."""
        start, size = self._bounds_offset, self.footer.row_group_count * _BOUND_BYTES
        if not start:
            return None
        bounds = np.frombuffer(self.content.read(start + position * size, size), "<u8")
        return bounds.reshape(-1, len(layout.BOUND_WORDS))

    @property
    def _bounds_offset(self) -> int:
        """Where the bounds by column are; 0 for nowhere."""
        if self._bounds_start is None:
            self._bounds_start = self._find_bounds()
        return self._bounds_start

    def _find_bounds(self) -> int:
        if not layout.is_wide(self.column_count, self.row_group_count):
            return 0
        section = structure.snapshot_section(self.content, self.footer, self.name)
        if section is None:
            return 0
        (word,) = layout.U32.unpack(self.content.read(section[0], layout.U32.size))
        offset: int = word * layout.WORD
        size = self.column_count * self.row_group_count * _BOUND_BYTES
        if word and not self.header.names_offset <= offset <= self.footer.offset - size:
            problem = f"{size} bytes from {offset} on are not between header and footer"
            raise damaged(self.name, "bounds by column", section[0], problem)
        return offset

    @property
    def regions(self) -> NDArray[np.int64]:
        """Where the out-of-line region of every block begins, as a column of numbers."""
        return (self.entries * layout.WORD + self.header.block_size)[:, None]

    def out_of_line(self, row_group: int, offset: int, length: int) -> bytes:
        """Bytes of a block's out-of-line region; none where they would be outside of the blocks."""
        start = int(self.entries[row_group]) * layout.WORD + self.header.block_size + offset
        return bytes(self.content.read(start, length)) if start + length <= self.footer.offset else b""

    def bloom(self, row_group: int, column: int) -> memoryview | None:
        """The bitset of a bloom filter that lies in the sidecar."""
        slot = self._bloom_slot(row_group, column)
        if slot is None or self.header.bloom_external:
            return None
        offset = int(slot) * layout.WORD
        start = offset + layout.I32.size
        if offset < self.header.names_offset or start > self.footer.offset:
            return None
        (length,) = layout.I32.unpack_from(self.buffer, offset)
        if length <= 0 or start + length > self.footer.offset:
            return None
        return memoryview(self.buffer)[start : start + length]

    def external_bloom(self, row_group: int, column: int) -> tuple[int, int] | None:
        """Offset and length in the Parquet file of a bloom filter that lies there."""
        slot = self._bloom_slot(row_group, column)
        if slot is None or not self.header.bloom_external:
            return None
        offset, length = slot.tolist()
        return (offset, length) if (offset, length) != (0, 0) else None

    @cached_property
    def bloom_slots(self) -> NDArray[Any]:
        """The bloom matrix by row group and bloom column: word positions, or places in the Parquet file."""
        shape = (self.row_group_count, len(self.bloom_columns))
        dtype = structure.bloom_slot(external=self.header.bloom_external)
        offset = self.footer_sections.bloom_offset
        return np.frombuffer(self.buffer, dtype, shape[0] * shape[1], offset).reshape(shape)

    # ---- inside

    @property
    def header_sections(self) -> HeaderSections:
        """The sections of the header's feature flags."""
        # Cached by hand: the lock of a cached property costs more than all of this.
        sections = self._header_sections
        if sections is None:
            end, limit = self._names_end(), self.footer.offset
            sections = structure.read_header_sections(self.content, self.header, end, limit, self.name)
            self._header_sections = sections
        return sections

    @cached_property
    def footer_sections(self) -> FooterSections:
        """The sections of the footer's feature flags."""
        count = len(self.bloom_columns)
        return structure.read_footer_sections(self.content, self.header, self.footer, count, self.name)

    def _names_end(self) -> int:
        if not self.column_count:
            return self.header.names_offset
        last = self.column_count - 1
        offset, length = self._name_place(last)
        if not self.header.names_offset <= offset <= offset + length <= self.footer.offset:
            raise self._bad_name(last, offset, f"of {length} bytes is not between header and footer")
        return offset + length

    def _check_descriptors(self) -> None:
        offsets, flags = self.descriptors["name_offset"], self.descriptors["flags"]
        ends = offsets + self.descriptors["name_length"]
        # The names follow each other, so this meets an offset outside of the file and an end that wrapped around too.
        astray = offsets[1:] != ends[:-1]
        if len(offsets) and (offsets[0] != self.header.names_offset or astray.any()):
            position = 0 if offsets[0] != self.header.names_offset else 1 + int(np.argmax(astray))
            raise self._bad_name(position, int(offsets[position]), "does not follow the one before")
        repetition = flags & layout.REPETITION_MASK
        if (repetition == layout.REPETITION_MASK).any():
            position = int(np.argmax(repetition))
            place = self._descriptor_offset(position) + 16
            raise damaged(self.name, f"FIELD_REPETITION of column {position}", place, "3 is no repetition")
        implicit = self.header.feature_flags & Feature.SORTING_IS_DTS_ASC
        if implicit and flags[self.header.designated_timestamp] & ColumnFlag.DESCENDING:
            raise damaged(self.name, "FEATURE_FLAGS", 8, "SORTING_IS_DTS_ASC with a descending timestamp")

    def _bad_name(self, position: int, offset: int, problem: str) -> Exception:
        place = self._descriptor_offset(position)
        return damaged(self.name, f"NAME_OFFSET of column {position}", place, f"the name at byte {offset} {problem}")

    @staticmethod
    def _descriptor_offset(position: int) -> int:
        return layout.HEADER_SIZE + position * layout.DESCRIPTOR_SIZE

    def _name_place(self, position: int) -> tuple[int, int]:
        raw = self.content.read(self._descriptor_offset(position), layout.NAME_PLACE.size)
        place: tuple[int, int] = layout.NAME_PLACE.unpack(raw)
        return place

    @cached_property
    def _positions(self) -> dict[str, list[int]]:
        positions: dict[str, list[int]] = {}
        for position, name in enumerate(self.names):
            positions.setdefault(name, []).append(position)
        return positions

    def _hashed_positions(self, wanted: bytes) -> list[int]:
        """The columns of a name, by its hash; a column that this misses may still be there."""
        sections, count = self.header_sections, self.header.column_count
        if sections.windrow is None:
            return []
        hashes = np.frombuffer(sections.facts, "<u4", count, count * layout.ORDER_SIZE)
        hits = (hashes == zlib.crc32(wanted)).nonzero()[0].tolist()
        return [position for position in hits if self._has_name(position, wanted)]

    def _has_name(self, position: int, wanted: bytes) -> bool:
        offset, _, _, _, _, length = self.descriptor(position)[:6]
        fits = length == len(wanted) and offset + length <= self.footer.offset
        return fits and self.content.read(offset, length) == wanted

    def _bloom_slot(self, row_group: int, column: int) -> Any:
        if not 0 <= row_group < self.row_group_count:
            raise InvalidInput(f"{self.name}: no row group {row_group}; there are {self.row_group_count}")
        position = int(np.searchsorted(self.bloom_columns, column))
        if position == len(self.bloom_columns) or self.bloom_columns[position] != column:
            return None
        return self.bloom_slots[row_group, position]


def _set_or_none(value: int) -> int | None:
    return None if value == layout.NONE else value
