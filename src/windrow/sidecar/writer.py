"""Writing a sidecar: a new file, or the bytes that an update appends. Bytes in, bytes out; `publish` has the files.

An update keeps the blocks of unchanged row groups and appends new blocks and a footer that refers to both. It starts
from one committed snapshot and is appended where the file's committed bytes end. After a crash these two may differ:
the dead footer between them stays where it is, covered by the new CRC and outside of the chain.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from windrow.errors import InvalidInput
from windrow.sidecar import layout
from windrow.sidecar.blocks import Blocks, RowGroups, lay_blocks
from windrow.sidecar.extensions import encode_entries
from windrow.sidecar.layout import ColumnFlag, Feature, FooterFeature, SnapshotCode
from windrow.sidecar.reader import Sidecar
from windrow.sidecar.structure import bloom_slot

_Tables = Mapping[SnapshotCode, NDArray[np.int64]]


@dataclass(frozen=True, eq=False)
class Columns:
    """What the header of a new sidecar says; it can never change in that file."""

    names: Sequence[str]
    descriptors: NDArray[np.void]
    """`DESCRIPTOR` records; the places of the names are filled in here."""
    designated_timestamp: int = layout.NONE
    sorting: Sequence[int] = ()
    squash_tracker: int = layout.NONE
    bloom_columns: Sequence[int] = ()
    """Columns that may have bloom filters; when none are named, those that have one."""
    bloom_external: bool = False
    windrow: bytes | None = None
    """The content of our own section."""

    def __post_init__(self) -> None:
        count = len(self.names)
        if len(self.descriptors) != count:
            raise InvalidInput(f"sidecar: {len(self.descriptors)} descriptors for {count} column names")
        for column in (*self.sorting, *self.bloom_columns):
            if not 0 <= column < count:
                raise InvalidInput(f"sidecar: sorting or bloom column {column}; there are {count} columns")
        if not layout.NONE <= self.designated_timestamp < count:
            raise InvalidInput(f"sidecar: designated timestamp {self.designated_timestamp}; there are {count} columns")


@dataclass(frozen=True)
class SnapshotFields:
    """What a footer says besides its row groups. In an update `None` takes over what the snapshot before says."""

    parquet_footer_offset: int
    parquet_footer_length: int
    unused_bytes: int = 0
    seq_txn: int | None = None
    scratchpad: Sequence[tuple[int, bytes]] | None = None
    windrow: Mapping[int, bytes] | None = None
    """Entries of our own section; never taken over, since they describe one version of the Parquet file."""


class Update(NamedTuple):
    """Bytes to be written at `base`; with them the file has `size` committed bytes."""

    base: int
    data: bytes
    size: int


def create(columns: Columns, groups: RowGroups, snapshot: SnapshotFields) -> bytes:
    """A whole sidecar."""
    if groups.chunks.shape[1] != len(columns.names):
        raise InvalidInput(f"sidecar: {groups.chunks.shape[1]} chunks a row group for {len(columns.names)} columns")
    bloom_columns = _bloom_columns(columns, groups)
    header = _header(columns, bloom_columns)
    blocks = lay_blocks(groups, len(header))
    slots = np.zeros((len(groups), len(bloom_columns)), bloom_slot(external=columns.bloom_external))
    _fill_slots(slots, bloom_columns, groups, blocks, range(len(groups)))
    end = len(header) + len(blocks.data)
    word, bounds = (0, b"") if snapshot.windrow is None else _bounds_by_column(blocks.chunks, end)
    footer = _footer(snapshot, blocks.entries, slots, _tables(blocks), previous_size=0, bounds_word=word)
    parts: list[bytes | memoryview] = [memoryview(header)[layout.CRC_START :], blocks.data.data, bounds, footer]
    crc = 0
    for part in parts:
        crc = zlib.crc32(part, crc)
    tail = _end(crc, len(footer))
    size = layout.CRC_START + sum(len(part) for part in parts) + len(tail)
    return b"".join([layout.U64.pack(size), *parts, tail])


def update(
    sidecar: Sidecar, groups: RowGroups, targets: Sequence[int], snapshot: SnapshotFields, *, base: int | None = None
) -> Update:
    """What is appended to a sidecar so that `groups` become its row groups `targets`, old or new ones.

    `sidecar` is the committed snapshot to start from. `base` is where the bytes go: the end of the file's committed
    bytes by default.
    """
    base = sidecar.header.committed_size if base is None else base
    _check_update(sidecar, groups, targets, base)
    blocks = lay_blocks(groups, base)
    entries = _extended(sidecar.entries, targets)
    entries[list(targets)] = blocks.entries
    slots = _extended(sidecar.bloom_slots, targets)
    _fill_slots(slots, sidecar.bloom_columns.tolist(), groups, blocks, targets)
    tables = _merged_tables(sidecar, _tables(blocks), targets)
    footer = _footer(_taken_over(snapshot, sidecar), entries, slots, tables, previous_size=sidecar.footer.size)
    body = blocks.data.tobytes() + footer
    # The stored CRC covers all bytes before it, so the new one goes on from there instead of reading the file again.
    (stored,) = layout.U32.unpack_from(sidecar.buffer, sidecar.footer.crc_offset)
    crc = zlib.crc32(memoryview(sidecar.buffer)[sidecar.footer.crc_offset : base], stored)
    data = body + _end(zlib.crc32(body, crc), len(footer))
    return Update(base, data, base + len(data))


def _header(columns: Columns, bloom_columns: Sequence[int]) -> bytes:
    """The header, with zero for the committed size."""
    implicit = _is_implicit(columns)
    sorting = [] if implicit else list(columns.sorting)
    raw = [_utf8(name) for name in columns.names]
    lengths = np.array([len(name) for name in raw], np.int64)
    names_offset = layout.HEADER_SIZE + len(raw) * layout.DESCRIPTOR_SIZE + len(sorting) * layout.SORTING_SIZE
    descriptors = columns.descriptors.copy()
    descriptors["name_offset"] = names_offset + np.cumsum(lengths) - lengths
    descriptors["name_length"] = lengths
    flags, sections = _header_sections(columns, bloom_columns)
    flags |= Feature.SORTING_IS_DTS_ASC if implicit else 0
    fixed = layout.HEADER_STRUCT.pack(0, flags, columns.designated_timestamp, len(sorting), len(raw), 0)
    return b"".join([fixed, descriptors.tobytes(), np.array(sorting, "<u4").tobytes(), *raw, sections])


def _utf8(name: str) -> bytes:
    try:
        return name.encode()
    except UnicodeEncodeError as error:
        raise InvalidInput(f"sidecar: column name {name!r} is no text; rename the column") from error


def _is_implicit(columns: Columns) -> bool:
    """Whether the order needs no list: by the designated timestamp alone, ascending."""
    timestamp = columns.designated_timestamp
    if timestamp < 0 or list(columns.sorting) != [timestamp]:
        return False
    return not columns.descriptors["flags"][timestamp] & ColumnFlag.DESCENDING


def _header_sections(columns: Columns, bloom_columns: Sequence[int]) -> tuple[int, bytes]:
    flags, parts = 0, []
    if bloom_columns:
        flags |= Feature.BLOOM_FILTERS | (Feature.BLOOM_FILTERS_EXTERNAL if columns.bloom_external else 0)
        parts.append(np.array([len(bloom_columns), *bloom_columns], "<u4").tobytes())
    if columns.squash_tracker != layout.NONE:
        flags |= Feature.SQUASH_TRACKER
        parts.append(_pack(layout.I64, "squash tracker", columns.squash_tracker))
    if columns.windrow is not None:
        flags |= Feature.WINDROW_SCHEMA
        parts.append(layout.U32.pack(len(columns.windrow)) + columns.windrow)
    return flags, b"".join(parts)


def _bloom_columns(columns: Columns, groups: RowGroups) -> list[int]:
    if columns.bloom_columns:
        return sorted(set(columns.bloom_columns))
    filters = groups.external_blooms if columns.bloom_external else groups.blooms
    return sorted({column for _, column in filters})


def _fill_slots(
    slots: NDArray[Any], bloom_columns: Sequence[int], groups: RowGroups, blocks: Blocks, targets: Sequence[int]
) -> None:
    """Note where the filters of new row groups are. One of a column that the header does not list has no slot."""
    positions = {column: position for position, column in enumerate(bloom_columns)}
    filters: Mapping[tuple[int, int], Any] = blocks.blooms if slots.dtype.names is None else groups.external_blooms
    for (group, column), place in filters.items():
        if column in positions:
            slots[targets[group], positions[column]] = place


def _bounds_by_column(chunks: NDArray[np.void], end: int) -> tuple[int, bytes]:
    """What bounds are made of, column by column, where the chunks of a column are far apart: its word, and bytes."""
    groups, columns = chunks.shape
    if not layout.is_wide(columns, groups):
        return 0, b""
    first = layout.aligned(end)
    words = np.ascontiguousarray(chunks).view("<u8").reshape(groups, columns, layout.CHUNK_WORDS)
    return first // layout.WORD, bytes(first - end) + words[:, :, layout.BOUND_WORDS].transpose(1, 0, 2).tobytes()


def _footer(
    snapshot: SnapshotFields,
    entries: NDArray[np.int64],
    slots: NDArray[Any],
    tables: _Tables,
    *,
    previous_size: int,
    bounds_word: int = 0,
) -> bytes:
    """A footer up to its CRC."""
    flags, parts = 0, []
    if snapshot.seq_txn not in (None, layout.NONE):
        flags |= FooterFeature.SEQ_TXN
        parts.append(_pack(layout.I64, "seq_txn", snapshot.seq_txn))
    if snapshot.scratchpad:
        flags |= FooterFeature.SCRATCHPAD
        parts.append(_scratchpad(snapshot.scratchpad))
    if snapshot.windrow is not None:
        flags |= FooterFeature.WINDROW_SNAPSHOT
        tabled: dict[int, bytes] = {code: table.astype("<u4").tobytes() for code, table in tables.items()}
        section = layout.U32.pack(bounds_word) + encode_entries({**snapshot.windrow, **tabled})
        parts.append(section + layout.U32.pack(len(section)))
    fixed = _pack(
        layout.FOOTER_STRUCT,
        "Parquet footer offset, length or unused bytes",
        snapshot.parquet_footer_offset,
        snapshot.parquet_footer_length,
        len(entries),
        snapshot.unused_bytes,
        previous_size,
        flags,
    )
    return b"".join([fixed, entries.astype("<u4").tobytes(), slots.tobytes(), *parts])


def _scratchpad(entries: Sequence[tuple[int, bytes]]) -> bytes:
    parts = [layout.U32.pack(len(entries))]
    for code, content in entries:
        parts += [_pack(layout.U32_PAIR, "scratchpad code", code, len(content)), content]
    section = b"".join(parts)
    if len(section) > layout.LARGEST_SCRATCHPAD:
        problem = f"a scratchpad of {len(section)} bytes"
        raise InvalidInput(f"sidecar: {problem}; keep it within {layout.LARGEST_SCRATCHPAD} bytes")
    return section


def _end(crc: int, footer_bytes: int) -> bytes:
    return layout.U32_PAIR.pack(crc, footer_bytes + layout.CRC_SIZE)


def _tables(blocks: Blocks) -> dict[SnapshotCode, NDArray[np.int64]]:
    """Where row groups keep their page records and granule indexes, for those kinds that there are."""
    tables = {SnapshotCode.PAGES: blocks.pages, SnapshotCode.GRANULES: blocks.granules}
    return {code: table for code, table in tables.items() if table.any()}


def _merged_tables(sidecar: Sidecar, new: _Tables, targets: Sequence[int]) -> dict[SnapshotCode, NDArray[np.int64]]:
    merged = {}
    for code, old in sidecar.extensions.tables.items():
        if old is None and code not in new:
            continue
        table = _extended(np.zeros(sidecar.row_group_count, np.int64) if old is None else old, targets)
        table[list(targets)] = new.get(code, 0)
        merged[code] = table
    return merged


def _extended(old: NDArray[Any], targets: Sequence[int]) -> NDArray[Any]:
    """A copy with room for all row groups after the update, and nothing at those that are written anew."""
    count = max(len(old), max(targets, default=-1) + 1)
    extended = np.zeros((count, *old.shape[1:]), old.dtype)
    extended[: len(old)] = old
    extended[list(targets)] = np.zeros((), old.dtype)
    return extended


def _taken_over(snapshot: SnapshotFields, sidecar: Sidecar) -> SnapshotFields:
    seq_txn = sidecar.seq_txn if snapshot.seq_txn is None else snapshot.seq_txn
    scratchpad = sidecar.scratchpad if snapshot.scratchpad is None else snapshot.scratchpad
    return replace(snapshot, seq_txn=seq_txn, scratchpad=scratchpad)


def _check_update(sidecar: Sidecar, groups: RowGroups, targets: Sequence[int], base: int) -> None:
    old = sidecar.row_group_count
    added = [target for target in targets if target >= old]
    if len(targets) != len(groups) or any(a >= b for a, b in pairwise(targets)):
        problem = f"targets {list(targets)} for {len(groups)} row groups"
        raise InvalidInput(f"{sidecar.name}: {problem}; give one each, ascending")
    if any(target < 0 for target in targets) or added != list(range(old, old + len(added))):
        raise InvalidInput(f"{sidecar.name}: targets {list(targets)}; replace among {old} row groups or add after them")
    if groups.chunks.shape[1] != sidecar.column_count:
        problem = f"{groups.chunks.shape[1]} chunks a row group for {sidecar.column_count} columns"
        raise InvalidInput(f"{sidecar.name}: {problem}; columns never change, write a new sidecar")
    if not sidecar.footer.size <= base <= len(sidecar.buffer):
        problem = f"cannot append at byte {base}"
        raise InvalidInput(f"{sidecar.name}: {problem}; use one from {sidecar.footer.size} to {len(sidecar.buffer)}")


def _pack(record: struct.Struct, what: str, *values: int | None) -> bytes:
    try:
        return record.pack(*values)
    except struct.error as error:
        raise InvalidInput(f"sidecar: {what} out of range in {values}: {error}") from error
