"""From the footer of a Parquet file of any writer to the file's sidecar.

What a chunk record can hold is taken over as it is. What it cannot hold, but a reader would otherwise open the footer
for, goes into our own sections; `extensions=False` leaves them out and gives the bytes that QuestDB's converter writes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from windrow.errors import Incompatible, InvalidInput
from windrow.parquet import chunk as parquet
from windrow.parquet.bloom import find_bits, read_bloom
from windrow.parquet.codecs import Codec
from windrow.parquet.footer import ParquetFooter, SortingColumn
from windrow.parquet.schema import Leaf, PhysicalType, Repetition
from windrow.sidecar import layout, types
from windrow.sidecar.blocks import RowGroups
from windrow.sidecar.extensions import schema_section, snapshot_entries
from windrow.sidecar.granules import GranuleIndex, encode_granules
from windrow.sidecar.layout import ColumnFlag, EncodingBit, Order, PageFlag, StatFlag
from windrow.sidecar.questdb_key import ColumnNote, Notes, read_notes
from windrow.sidecar.reader import Sidecar
from windrow.sidecar.stored_bounds import LongBounds, Spans, joined, place_bounds
from windrow.sidecar.writer import Columns, SnapshotFields, Update, create, update

Read = Callable[[int, int], bytes]
"""Bytes of a Parquet file, by offset and length."""

ENCODINGS = (
    (parquet.Encoding.PLAIN, EncodingBit.PLAIN),
    (parquet.Encoding.PLAIN_DICTIONARY, EncodingBit.RLE_DICTIONARY),
    (parquet.Encoding.RLE_DICTIONARY, EncodingBit.RLE_DICTIONARY),
    (parquet.Encoding.DELTA_BINARY_PACKED, EncodingBit.DELTA_BINARY_PACKED),
    (parquet.Encoding.DELTA_LENGTH_BYTE_ARRAY, EncodingBit.DELTA_LENGTH_BYTE_ARRAY),
    (parquet.Encoding.DELTA_BYTE_ARRAY, EncodingBit.DELTA_BYTE_ARRAY),
    (parquet.Encoding.BYTE_STREAM_SPLIT, EncodingBit.BYTE_STREAM_SPLIT),
)
"""Parquet's encodings, and the bit of a chunk record for each."""
PAGE_FLAGS = (
    (parquet.HAS_DICTIONARY_OFFSET, PageFlag.HAS_DICTIONARY_OFFSET),
    (parquet.HAS_STATISTICS, PageFlag.HAS_STATISTICS),
    (parquet.NAN_FREE, PageFlag.NAN_FREE),
    (parquet.UNKNOWN_ENCODING, PageFlag.UNKNOWN_ENCODING),
)
"""The flags of a chunk in a Parquet footer, and the bit of a `PAGES` record for each."""
COUNTS = (
    ("null_count", parquet.HAS_NULL_COUNT, StatFlag.NULL_COUNT_PRESENT),
    ("distinct_count", parquet.HAS_DISTINCT_COUNT, StatFlag.DISTINCT_COUNT_PRESENT),
)
"""Counts of a chunk, with the flag of each in a Parquet footer and in a chunk record."""
_CHUNKS_AT_ONCE = 4096
_BLOOM_HEADER = 64
"""More bytes than the header of a split-block filter has."""
_TYPE_DEFINED_ORDER = 1
_TOTAL_FLOAT_ORDER = 2


@dataclass(frozen=True, eq=False)
class Source:
    """A Parquet file to be described."""

    footer: ParquetFooter
    parquet_size: int
    """Bytes of the file."""
    name: str = "Parquet"
    """What an error calls it."""
    read: Read | None = None
    """Gives bytes of the file; without it bloom filters are not taken over."""
    etag: str | None = None
    """The object store's mark of this version of the file."""
    granules: Sequence[GranuleIndex | None] | None = None
    """The granule index of every row group, where pages are cut at the same rows in all columns."""


def convert(source: Source, *, extensions: bool = True, external_blooms: bool = False, unused_bytes: int = 0) -> bytes:
    """The sidecar of a Parquet file; `unused_bytes` of it are in no row group.

    With `external_blooms`, bloom filters stay in that file and are referred to.
    """
    notes = read_notes(source.footer.key_value, len(source.footer.leaves), source.name)
    columns = describe_columns(source, notes, extensions=extensions)
    columns = replace(columns, bloom_external=external_blooms)
    groups = describe_row_groups(source, extensions=extensions, external_blooms=external_blooms)
    seq_txn = None if notes is None else notes.seq_txn
    snapshot = _snapshot(source, seq_txn=seq_txn, extensions=extensions, unused_bytes=unused_bytes)
    return create(columns, groups, snapshot)


def convert_changes(
    sidecar: Sidecar,
    changed: Source,
    targets: Sequence[int],
    *,
    footer_length: int,
    unused_bytes: int,
    seq_txn: int | None = None,
) -> Update:
    """What is appended to a sidecar after row groups were added to its Parquet file, or replaced.

    The footer of `changed` has only these row groups, which become those at `targets`: the cost does not grow with the
    file. `footer_length` is the length of the whole file's footer. Our own sections go on where they are, and
    bloom filters stay where those of the sidecar are.
    """
    extensions = bool(sidecar.header.feature_flags & layout.Feature.WINDROW_SCHEMA)
    _check_same_columns(sidecar, changed)
    snapshot = _snapshot(changed, seq_txn=seq_txn, extensions=extensions, unused_bytes=unused_bytes)
    offset = changed.parquet_size - layout.PARQUET_TAIL - footer_length
    snapshot = replace(snapshot, parquet_footer_offset=offset, parquet_footer_length=footer_length)
    groups = describe_row_groups(changed, extensions=extensions, external_blooms=sidecar.header.bloom_external)
    return update(sidecar, groups, targets, snapshot)


def describe_columns(source: Source, notes: Notes | None, *, extensions: bool = True) -> Columns:
    """The header of the sidecar."""
    footer = source.footer
    sorting = _sorting(footer, notes)
    descending = {column.column for column in sorting if column.descending}
    records = [_descriptor(leaf, None if notes is None else notes.columns[leaf.index]) for leaf in footer.leaves]
    descriptors = np.array(records, layout.DESCRIPTOR)
    descriptors["flags"][list(descending)] |= int(ColumnFlag.DESCENDING)
    names = [leaf.root.name for leaf in footer.leaves]
    section = None
    if extensions:
        orders = [_order(footer, leaf) for leaf in footer.leaves]
        section = schema_section(names, orders, footer.schema_bytes, footer.column_orders_bytes)
    return Columns(
        names=names,
        descriptors=descriptors,
        designated_timestamp=_designated_timestamp(footer, notes, sorting),
        sorting=[column.column for column in sorting],
        squash_tracker=layout.NONE if notes is None else notes.squash_tracker,
        windrow=section,
    )


def describe_row_groups(source: Source, *, extensions: bool = True, external_blooms: bool = False) -> RowGroups:
    """The blocks of the sidecar."""
    footer, stored = source.footer, source.footer.chunks
    chunks = np.zeros(stored.shape, layout.CHUNK)
    pages = np.zeros(stored.shape, layout.PAGES) if extensions else None
    long_bounds = []
    for part in _parts(*stored.shape):
        long_bounds.append(_describe_chunks(chunks[part], stored[part], footer.metadata, source.name))
        if pages is not None:
            _describe_pages(pages[part], stored[part])
    return RowGroups(
        rows=np.maximum(footer.row_group_rows, 0).astype("<u8"),
        chunks=chunks,
        long_bounds=joined(long_bounds),
        blooms={} if external_blooms else _blooms(source),
        external_blooms=_external_blooms(source) if external_blooms else {},
        pages=pages,
        granules=_encoded(source.granules) if extensions else None,
    )


def _parts(groups: int, columns: int) -> Iterator[slice]:
    """Row groups whose records stay in the processor's cache while their fields are taken one after the other."""
    step = max(_CHUNKS_AT_ONCE // max(columns, 1), 1)
    return (slice(start, start + step) for start in range(0, groups, step))


def _describe_chunks(chunks: NDArray[np.void], stored: NDArray[np.void], metadata: bytes, name: str) -> LongBounds:
    flags = stored["flags"].copy()
    if (flags & parquet.HAS_FILE_PATH).any():
        raise Incompatible(f"{name}: chunks are in other files; merge them into one Parquet file first")
    chunks["codec"] = _codecs(stored, name)
    chunks["encodings"] = _mapped(stored["encodings"], [(1 << theirs, ours) for theirs, ours in ENCODINGS])
    has_dictionary = (flags & parquet.HAS_DICTIONARY_OFFSET) != 0
    starts = np.where(has_dictionary, stored["dictionary_page_offset"], stored["data_page_offset"])
    chunks["byte_range_start"] = np.maximum(starts, 0)
    chunks["num_values"] = np.maximum(stored["num_values"], 0)
    chunks["total_compressed"] = np.maximum(stored["total_compressed_size"], 0)
    counts = np.zeros(stored.shape, np.uint8)
    for field, theirs, ours in COUNTS:
        # A negative count says nothing; as 0 it would claim that there are no nulls, and prune by that.
        counted = ((flags & theirs) != 0) & (stored[field] >= 0)
        chunks[field] = np.where(counted, stored[field], 0)
        counts |= counted * np.uint8(ours)
    chunks["stat_flags"] = counts
    minimum = _spans(stored, flags, "min", parquet.HAS_MIN_VALUE, parquet.MIN_EXACT_FALSE)
    maximum = _spans(stored, flags, "max", parquet.HAS_MAX_VALUE, parquet.MAX_EXACT_FALSE)
    return place_bounds(chunks, metadata, minimum, maximum)


def _encoded(granules: Sequence[GranuleIndex | None] | None) -> list[bytes | None] | None:
    return None if granules is None else [None if index is None else encode_granules(index) for index in granules]


def _descriptor(leaf: Leaf, note: ColumnNote | None) -> tuple[int, ...]:
    element, root = leaf.element, leaf.root
    flags = (root.repetition or Repetition.REQUIRED) << layout.REPETITION_SHIFT
    column_id = root.field_id
    if note is None:
        column_type = types.infer_type(leaf)
    else:
        column_type = note.column_type
        column_id = note.id if note.id is not None and note.id >= 0 else column_id
        flags |= (ColumnFlag.LOCAL_KEY_IS_GLOBAL if note.local_key_is_global else 0) | (
            ColumnFlag.IS_ASCII if note.is_ascii else 0
        )
    physical = element.physical_type or PhysicalType.BOOLEAN
    length = element.type_length or 0 if physical == PhysicalType.FIXED_LEN_BYTE_ARRAY else 0
    column_id = layout.NONE if column_id is None else column_id
    return (0, column_id, column_type, flags, length, 0, physical, leaf.max_repetition, leaf.max_definition, 0)


def _order(footer: ParquetFooter, leaf: Leaf) -> Order:
    order = types.order_of_leaf(leaf)
    kind = _TYPE_DEFINED_ORDER if footer.column_orders is None else footer.column_orders[leaf.index]
    if kind == _TYPE_DEFINED_ORDER or (kind == _TOTAL_FLOAT_ORDER and order == Order.FLOAT):
        return order
    return Order.UNDEFINED


def _sorting(footer: ParquetFooter, notes: Notes | None) -> tuple[SortingColumn, ...]:
    """What the row groups are sorted by, as far as they say; nothing when they disagree or name no such column."""
    if notes is not None and notes.designated is not None:
        descending = notes.columns[notes.designated].descending
        return (SortingColumn(notes.designated, descending, nulls_first=False),)
    declared = {tuple((c.column, c.descending) for c in group) for group in footer.row_group_sorting if group}
    if len(declared) != 1:
        return ()
    columns = declared.pop()
    if any(not 0 <= column < len(footer.leaves) for column, _ in columns):
        return ()
    return tuple(SortingColumn(column, descending, nulls_first=False) for column, descending in columns)


def _designated_timestamp(footer: ParquetFooter, notes: Notes | None, sorting: Sequence[SortingColumn]) -> int:
    """The column by whose time the rows are sorted first, if it is one that QuestDB would call designated."""
    if notes is not None and notes.designated is not None:
        return notes.designated
    if not sorting or sorting[0].descending:
        return layout.NONE
    column = sorting[0].column
    element = footer.leaves[column].element
    if notes is not None:
        is_timestamp = notes.columns[column].column_type & types.TAG_MASK == types.Tag.TIMESTAMP
    else:
        is_timestamp = element.logical_type is not None and element.logical_type.name == "TIMESTAMP"
    return column if is_timestamp and element.repetition == Repetition.REQUIRED else layout.NONE


def _codecs(stored: NDArray[np.void], name: str) -> NDArray[np.int32]:
    codecs: NDArray[np.int32] = stored["codec"]
    unknown = np.argwhere((codecs < 0) | (codecs > max(Codec)))
    if len(unknown):
        group, column = unknown[0].tolist()
        problem = f"row group {group}, column {column} is compressed with the unknown codec {codecs[group, column]}"
        raise Incompatible(f"{name}: {problem}; write the file with another codec")
    return codecs


def _spans(
    stored: NDArray[np.void], flags: NDArray[np.uint32], side: Literal["min", "max"], present: int, inexact: int
) -> Spans:
    lengths = stored[f"{side}_length"]
    fits = ((flags & present) != 0) & (lengths <= layout.LONGEST_BOUND)
    return Spans(stored[f"{side}_offset"], np.where(fits, lengths, 0), (flags & inexact) == 0)


def _mapped(flags: NDArray[np.uint32], bits: Sequence[tuple[int, int]]) -> NDArray[np.uint8]:
    """Flags in other bits: each pair is a bit and what stands for it."""
    first = flags.flat[0] if flags.size else 0
    if (flags == first).all():  # as in nearly every file
        return np.full(flags.shape, _mapped_flag(int(first), bits), np.uint8)
    distinct, places = np.unique(flags, return_inverse=True)
    values = np.array([_mapped_flag(flag, bits) for flag in distinct.tolist()], np.uint8)
    return values[places].reshape(flags.shape)


def _mapped_flag(flag: int, bits: Sequence[tuple[int, int]]) -> int:
    return sum({ours for theirs, ours in bits if flag & theirs})


def _describe_pages(pages: NDArray[np.void], stored: NDArray[np.void]) -> None:
    pages["data_page_offset"] = stored["data_page_offset"]
    pages["uncompressed_size"] = stored["total_uncompressed_size"]
    for part in ("offset_index", "column_index", "bloom"):
        pages[f"{part}_offset"] = stored[f"{part}_offset"]
        pages[f"{part}_length"] = np.clip(stored[f"{part}_length"], 0, 2**31 - 1)
    pages["encodings"] = stored["encodings"]
    pages["flags"] = _mapped(stored["flags"], PAGE_FLAGS)


def _blooms(source: Source) -> dict[tuple[int, int], bytes]:
    """The filters that can be taken over: those with a length, which old writers leave out."""
    if source.read is None:
        return {}
    filters = {}
    for place, offset, length in _stored_blooms(source):
        bits = read_bloom(source.read(offset, length), name=source.name)
        if bits:
            filters[place] = bits
    return filters


def _external_blooms(source: Source) -> dict[tuple[int, int], tuple[int, int]]:
    """Offset and length of the bits of the same filters, which stay in the file: headers are read, and no bits."""
    if source.read is None:
        return {}
    filters = {}
    for place, offset, length in _stored_blooms(source):
        bits = find_bits(source.read(offset, min(length, _BLOOM_HEADER)), length, name=source.name)
        if bits:
            filters[place] = offset + bits.start, len(bits)
    return filters


def _stored_blooms(source: Source) -> Iterator[tuple[tuple[int, int], int, int]]:
    """Yield the row group and column of each filter, and where it is in the file, its header included."""
    offsets, lengths = source.footer.chunks["bloom_offset"], source.footer.chunks["bloom_length"]
    for group, column in np.argwhere((offsets > 0) & (lengths > 0)).tolist():
        yield (group, column), int(offsets[group, column]), int(lengths[group, column])


def _snapshot(source: Source, *, seq_txn: int | None, extensions: bool, unused_bytes: int = 0) -> SnapshotFields:
    footer, length = source.footer, len(source.footer.metadata)
    offset = source.parquet_size - layout.PARQUET_TAIL - length
    if offset < 0:
        raise InvalidInput(f"{source.name}: a file of {source.parquet_size} bytes cannot end with a footer of {length}")
    entries = None
    if extensions:
        entries = snapshot_entries(
            created_by=footer.created_by, version=footer.version, key_value=footer.key_value, etag=source.etag
        )
    return SnapshotFields(offset, length, unused_bytes, seq_txn, None, entries)


def _check_same_columns(sidecar: Sidecar, source: Source) -> None:
    leaves = source.footer.leaves
    names = tuple(leaf.root.name for leaf in leaves)
    physical = [leaf.element.physical_type for leaf in leaves]
    schema = sidecar.extensions.schema_bytes
    same_schema = schema is None or schema == source.footer.schema_bytes
    if sidecar.names != names or sidecar.descriptors["physical_type"].tolist() != physical or not same_schema:
        problem = f"its columns are not those of the sidecar {sidecar.name}"
        raise InvalidInput(f"{source.name}: {problem}; columns never change in a sidecar, write a new one")
