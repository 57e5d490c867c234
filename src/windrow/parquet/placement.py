"""Row groups and runs of pages, placed in an address space, for a synthesised footer.

The address space is whatever the reader of the footer takes for the file: files one after the other, or a virtual
file that is put together from ranges. A placed chunk is a FOOTER_CHUNK record whose offsets are addresses; records
that did not come from a footer are as good. Addresses below FIRST_ADDRESS are not used: a file begins with its magic,
and many readers take an address of 0 for none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from windrow.errors import Damaged, Incompatible, InvalidInput
from windrow.kernels import rules as r
from windrow.parquet import chunk as c
from windrow.parquet import thrift as t
from windrow.parquet.arrow_schema import ARROW_SCHEMA
from windrow.parquet.footer import MAGIC, ParquetFooter
from windrow.parquet.grammar import Records
from windrow.parquet.page_headers import null_page
from windrow.parquet.page_index import OffsetIndex
from windrow.parquet.schema import Leaf, SchemaElement, subtree_end

__all__ = [
    "FIRST_ADDRESS",
    "PageRun",
    "VirtualRowGroup",
    "VirtualSchema",
    "cut_run",
    "leaf_positions",
    "misleading_flags",
    "null_chunk",
    "null_record",
    "page_run",
    "shifted",
]

FIRST_ADDRESS = len(MAGIC)

# Metadata that describes the columns of a file by position, and would describe the wrong ones after a choice of
# columns.
_BY_POSITION = frozenset({ARROW_SCHEMA, "pandas"})

_OWN_ENCODINGS = 1 << c.Encoding.PLAIN | 1 << c.Encoding.RLE
"""What pages that are in no file are written in."""

# What a run of pages takes over from its chunk; only all pages together have its statistics.
_KEPT_BY_RUN = c.HAS_META | c.UNKNOWN_ENCODING | c.NAN_FREE
_KEPT_BY_WHOLE_RUN = _KEPT_BY_RUN | c.STATISTICS_FLAGS


@dataclass(frozen=True, eq=False)
class VirtualSchema:
    """What all row groups of a synthesised file share."""

    elements: bytes
    """The schema list, header included."""
    leaves: tuple[Leaf, ...]
    column_orders: bytes | None = None
    """The list of column orders, header included; without it, readers trust few bounds."""
    created_by: str | None = None
    """Who wrote the pages; readers trust statistics by it."""
    key_value: Mapping[str, str | None] = field(default_factory=lambda: MappingProxyType({}))
    version: int = 2

    @classmethod
    def of(cls, footer: ParquetFooter, columns: Sequence[str] | None = None) -> VirtualSchema:
        """The schema of a file: all of it, or the top-level columns that are named, in that order."""
        if columns is None:
            orders, writer = footer.column_orders_bytes, footer.created_by
            return cls(footer.schema_bytes, footer.leaves, orders, writer, footer.key_value, footer.version)
        chosen = [leaf for name in columns for leaf in _leaves_of_column(footer, name)]
        return cls(
            _chosen_elements(footer, columns),
            tuple(leaf._replace(index=index) for index, leaf in enumerate(chosen)),
            _chosen_orders(footer, chosen),
            footer.created_by,
            {key: value for key, value in footer.key_value.items() if key not in _BY_POSITION},
            footer.version,
        )


def _leaves_of_column(footer: ParquetFooter, column: str) -> list[Leaf]:
    leaves = [leaf for leaf in footer.leaves if leaf.path[0] == column]
    if not leaves:
        names = ", ".join(sorted({leaf.path[0] for leaf in footer.leaves}))
        raise InvalidInput(f"column {column!r} does not exist; choose from {names}")
    return leaves


def _chosen_elements(footer: ParquetFooter, columns: Sequence[str]) -> bytes:
    """A schema list whose root is written anew and whose other elements are copied."""
    spans, at = {}, 1
    while at < len(footer.schema):
        end = subtree_end(footer.schema, at)
        spans[footer.schema[at].name], at = range(at, end), end
    places = footer.element_positions.tolist()
    root = t.struct(t.binary(4, footer.schema[0].name.encode()), t.i32(5, len(columns)))
    copied = [footer.metadata[places[index] : places[index + 1]] for name in columns for index in spans[name]]
    return t.list_of(2, r.RECORD, [root, *copied]).value


def _chosen_orders(footer: ParquetFooter, leaves: Sequence[Leaf]) -> bytes | None:
    if footer.column_orders is None:
        return None
    tags = [footer.column_orders[leaf.index] for leaf in leaves]
    orders = [t.struct(t.nested(tag, t.struct())) if tag else t.struct() for tag in tags]
    return t.list_of(7, r.RECORD, orders).value


@dataclass(frozen=True, eq=False)
class VirtualRowGroup:
    """A row group of a synthesised file."""

    rows: int
    chunks: Records
    """One FOOTER_CHUNK record for each leaf of the schema; its offsets are addresses."""
    statistics: bytes = b""
    """The bytes that the positions of bounds in the records count from."""


def leaf_positions(footer: ParquetFooter, schema: VirtualSchema) -> list[int]:
    """For each leaf of the schema its position in the file, -1 for a column that the file does not have.

    `Incompatible` tells of a column that cannot be read by this schema: of another type, or nested and there in part.
    """
    own = {leaf.path: leaf for leaf in footer.leaves}
    fields = {leaf.path[0] for leaf in footer.leaves}
    positions = []
    for leaf in schema.leaves:
        match = own.get(leaf.path)
        label = ".".join(leaf.path)
        if match is None and leaf.path[0] in fields:
            # The levels of the missing part depend on which rows have the rest: no bytes of ours can know that.
            raise Incompatible(f"column {label!r} is missing inside of a field that is there; rewrite the file")
        if match is not None and _type_of(match) != _type_of(leaf):
            raise Incompatible(f"column {label!r} has another type or nesting than the schema; rewrite the file")
        positions.append(-1 if match is None else match.index)
    return positions


def _type_of(leaf: Leaf) -> tuple[object, ...]:
    element: SchemaElement = leaf.element
    # Old files give a length to types that have none.
    return element.physical_type, element.type_length or 0, element.meaning, leaf.max_repetition, leaf.max_definition


def misleading_flags(footer: ParquetFooter, schema: VirtualSchema) -> int:
    """The flags of bounds that readers judge by what the file says of itself, and would misjudge by what we say."""
    misleading = 0
    if footer.created_by != schema.created_by:
        misleading |= c.HAS_OLD_MIN | c.HAS_OLD_MAX
    if footer.column_orders is None and schema.column_orders is not None:
        misleading |= c.HAS_MIN_VALUE | c.HAS_MAX_VALUE | c.MIN_EXACT_FALSE | c.MAX_EXACT_FALSE
    return misleading


def shifted(chunks: Records, base: int | NDArray[np.int64]) -> Records:
    """Chunks of a file with their offsets as addresses; of several files where `base` is an array."""
    if (chunks["flags"] & c.HAS_FILE_PATH).any():
        raise Incompatible("the file has its pages in another file; rewrite it into one")
    starts = c.chunk_starts(chunks)
    dictionary = starts != chunks["data_page_offset"]
    chunks["dictionary_page_offset"] = np.where(dictionary, starts + base, 0)
    chunks["flags"] &= ~np.uint32(c.HAS_DICTIONARY_OFFSET)
    chunks["flags"] |= np.where(dictionary, c.HAS_DICTIONARY_OFFSET, 0).astype(np.uint32)
    chunks["data_page_offset"] += base
    chunks["bloom_offset"] += base
    return chunks


def null_chunk(leaf: Leaf, rows: int) -> bytes:
    """The bytes of a chunk in which the column is null in all rows."""
    return null_page(leaf, rows)


def null_record(leaf: Leaf, rows: int, *, at: int) -> Records:
    """The record of a `null_chunk` at an address."""
    record = np.zeros((), c.FOOTER_CHUNK)
    record["physical_type"] = leaf.element.physical_type
    record["encodings"] = _OWN_ENCODINGS
    record["flags"] = c.HAS_META | c.HAS_STATISTICS | c.HAS_NULL_COUNT
    record["num_values"] = record["null_count"] = rows
    record["total_compressed_size"] = record["total_uncompressed_size"] = len(null_chunk(leaf, rows))
    record["data_page_offset"] = at
    return record


@dataclass(frozen=True, eq=False)
class PageRun:
    """Consecutive data pages of a chunk, and its dictionary page: laid one after the other, they are a chunk again."""

    dictionary: range
    """Where the dictionary page is in the file; empty if there is none."""
    pages: range
    """Where the data pages are in the file."""
    rows: int
    chunk: Records
    """The record of the run if it were at address 0."""
    before: bytes = b""
    """Pages that are in no file, between the dictionary and those of the file."""
    behind: bytes = b""
    """Pages that are in no file, behind those of the file."""

    def __len__(self) -> int:
        """How many bytes the run has."""
        return len(self.dictionary) + len(self.before) + len(self.pages) + len(self.behind)

    @property
    def parts(self) -> tuple[range | bytes, ...]:
        """What it is made of, in order: ranges of the file, and bytes that are in none."""
        own: tuple[range | bytes, ...] = (self.dictionary, self.before, self.pages, self.behind)
        return tuple(part for part in own if part)

    def at(self, address: int) -> Records:
        """The record of the run with its dictionary, or its first page if there is none, at an address."""
        record = self.chunk.copy()
        record["data_page_offset"] = address + len(self.dictionary)
        record["dictionary_page_offset"] = address if self.dictionary else 0
        return record


def page_run(
    chunk: np.void | Records, pages: OffsetIndex, first: int, stop: int, *, group_rows: int, values: int | None = None
) -> PageRun:
    """The pages from `first` to `stop` (excluded) of a chunk.

    `values` is how many values they hold, nulls included; needed only for a repeated column: else it is the rows.
    """
    if not 0 <= first < stop <= len(pages.offsets):
        raise InvalidInput(f"pages {first} to {stop} of a chunk that has {len(pages.offsets)}; give some that exist")
    dictionary = range(int(c.chunk_starts(chunk)), int(pages.offsets[0]))
    data = _range_of(pages, first, stop)
    bounds = np.append(pages.first_rows, group_rows)
    rows = int(bounds[stop] - bounds[first])
    whole = stop - first == len(pages.offsets)
    record = _run_record(chunk, len(dictionary) + len(data), rows if values is None else values, whole=whole)
    if dictionary:
        record["flags"] |= c.HAS_DICTIONARY_OFFSET
    return PageRun(dictionary, data, rows, record)


def cut_run(
    chunk: np.void | Records, pages: OffsetIndex, whole: range, rows: int, before: bytes, behind: bytes
) -> PageRun:
    """Some whole pages of a flat chunk, maybe none, between pages that are in no file."""
    dictionary = range(int(c.chunk_starts(chunk)), int(pages.offsets[0]))
    data = _range_of(pages, whole.start, whole.stop) if whole else range(0)
    length = len(dictionary) + len(before) + len(data) + len(behind)
    record = _run_record(chunk, length, rows, whole=False)
    record["encodings"] |= _OWN_ENCODINGS
    if dictionary:
        record["flags"] |= c.HAS_DICTIONARY_OFFSET
    return PageRun(dictionary, data, rows, record, before, behind)


def _range_of(pages: OffsetIndex, first: int, stop: int) -> range:
    """Where consecutive pages are."""
    ends = pages.offsets + pages.compressed_sizes
    if (ends[first : stop - 1] != pages.offsets[first + 1 : stop]).any():
        raise Damaged("the pages of a chunk do not follow each other without gaps; rewrite the file")
    return range(int(pages.offsets[first]), int(ends[stop - 1]))


def _run_record(chunk: np.void | Records, length: int, values: int, *, whole: bool) -> Records:
    record = np.array(chunk, c.FOOTER_CHUNK)
    record["flags"] &= np.uint32(_KEPT_BY_WHOLE_RUN if whole else _KEPT_BY_RUN)
    record["num_values"] = values
    # How large the pages are without compression is not in the index; nothing but estimates is made of it.
    share = length / max(int(chunk["total_compressed_size"]), 1)
    record["total_uncompressed_size"] = round(int(chunk["total_uncompressed_size"]) * share)
    record["total_compressed_size"] = length
    return record
