"""From one version of a sidecar to the next, without the Parquet file.

A rewrite takes one snapshot apart and writes it as a new file: older footers, dead blocks and sections of features that
this version does not know are gone. Sections that the file did not have are filled with values for "absent". No byte of
the Parquet file is needed, so a partition in cold storage stays there.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from windrow.sidecar import layout
from windrow.sidecar.blocks import RowGroups
from windrow.sidecar.extensions import snapshot_entries
from windrow.sidecar.granules import encode_granules
from windrow.sidecar.layout import Side, SnapshotCode
from windrow.sidecar.reader import Sidecar
from windrow.sidecar.stored_bounds import LongBounds, far_places
from windrow.sidecar.writer import Columns, SnapshotFields, create

__all__ = ["Parts", "Sections", "long_bounds", "put_together", "rewrite", "take_apart"]


class Sections(StrEnum):
    """Which feature sections a rewritten sidecar has."""

    KEEP = "keep"
    """Those that the file has and this version understands."""
    WINDROW = "windrow"
    """Ours too: filled from the file where it has them, else with what stands for absent."""
    QUESTDB = "questdb"
    """Those of QuestDB alone."""


@dataclass(frozen=True, eq=False)
class Parts:
    """One snapshot, as the writer takes it."""

    columns: Columns
    groups: RowGroups
    snapshot: SnapshotFields


def rewrite(sidecar: Sidecar, sections: Sections = Sections.KEEP) -> bytes:
    """A file that holds this snapshot alone, in the layout of today.

    A file that is in that layout already comes back byte for byte.
    """
    return put_together(take_apart(sidecar, sections))


def put_together(parts: Parts) -> bytes:
    """The sidecar of these parts."""
    return create(parts.columns, parts.groups, parts.snapshot)


def take_apart(sidecar: Sidecar, sections: Sections = Sections.KEEP) -> Parts:
    """The parts of a snapshot; a bound that no reader could find is left out."""
    return Parts(_columns(sidecar, sections), _row_groups(sidecar, sections), _snapshot(sidecar, sections))


def _columns(sidecar: Sidecar, sections: Sections) -> Columns:
    descriptors = sidecar.descriptors.copy()
    descriptors["reserved"] = 0
    return Columns(
        names=sidecar.names,
        descriptors=descriptors,
        designated_timestamp=sidecar.header.designated_timestamp,
        sorting=sidecar.sorting,
        squash_tracker=sidecar.header_sections.squash_tracker,
        bloom_columns=sidecar.bloom_columns.tolist(),
        bloom_external=sidecar.header.bloom_external,
        windrow=_schema_section(sidecar, sections),
    )


def _schema_section(sidecar: Sidecar, sections: Sections) -> bytes | None:
    place = sidecar.header_sections.windrow
    if sections == Sections.QUESTDB:
        return None
    if place is not None:
        return bytes(sidecar.content.read(place[0], place[1] - place[0]))
    if sections == Sections.KEEP:
        return None
    # Orders and hashes follow from the descriptors; the schema itself is absent.
    orders = bytes(sidecar.order(position) for position in range(sidecar.column_count))
    hashes = np.array([zlib.crc32(name.encode()) for name in sidecar.names], "<u4")
    return orders + hashes.tobytes()


def _row_groups(sidecar: Sidecar, sections: Sections) -> RowGroups:
    chunks = sidecar.chunks.copy()
    chunks["reserved"] = 0
    ours = _has_snapshot_section(sidecar, sections)
    return RowGroups(
        rows=sidecar.row_counts.copy(),
        chunks=chunks,
        long_bounds=long_bounds(sidecar, chunks),
        blooms=_blooms(sidecar),
        external_blooms=_external_blooms(sidecar),
        pages=_pages(sidecar) if ours else None,
        granules=_granules(sidecar) if ours else None,
    )


def long_bounds(sidecar: Sidecar, chunks: NDArray[np.void]) -> LongBounds:
    """The long bounds of chunk records, out of their file. Those outside of the blocks lose their flags and slots."""
    starts, lengths = np.zeros((2, *chunks.shape, len(layout.SIDES)), np.int64)
    for number, side in enumerate(layout.SIDES):
        starts[..., number], lengths[..., number] = _out_of_line(chunks, side, sidecar)
    return LongBounds(bytes(sidecar.buffer[: sidecar.footer.offset]), starts, lengths)


def _out_of_line(chunks: NDArray[np.void], side: Side, sidecar: Sidecar) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    referring = (chunks["stat_flags"] & (side.present | side.inlined)) == side.present
    starts, lengths = far_places(chunks, side, sidecar.regions)
    readable = referring & (lengths > 0) & (starts + lengths <= sidecar.footer.offset)
    lost = referring & ~readable
    chunks["stat_flags"][lost] &= np.uint8(~(side.present | side.exact) & 0xFF)
    chunks[side.slot][lost] = 0
    return np.where(readable, starts, 0), np.where(readable, lengths, 0)


def _blooms(sidecar: Sidecar) -> dict[tuple[int, int], bytes]:
    if sidecar.header.bloom_external:
        return {}
    places = [(group, column) for group in range(sidecar.row_group_count) for column in sidecar.bloom_columns.tolist()]
    blooms = {place: sidecar.bloom(*place) for place in places}
    return {place: bytes(bits) for place, bits in blooms.items() if bits is not None}


def _external_blooms(sidecar: Sidecar) -> dict[tuple[int, int], tuple[int, int]]:
    if not sidecar.header.bloom_external:
        return {}
    places = [(group, column) for group in range(sidecar.row_group_count) for column in sidecar.bloom_columns.tolist()]
    slots = {place: sidecar.external_bloom(*place) for place in places}
    return {place: slot for place, slot in slots.items() if slot is not None}


def _pages(sidecar: Sidecar) -> NDArray[np.void] | None:
    """The page records, where every row group has them."""
    table = sidecar.extensions.tables[SnapshotCode.PAGES]
    if table is None or not table.all():
        return None
    pages = np.zeros((sidecar.row_group_count, sidecar.column_count), layout.PAGES)
    for group in range(sidecar.row_group_count):
        pages[group] = sidecar.extensions.page_records(group)
    return pages


def _granules(sidecar: Sidecar) -> list[bytes | None] | None:
    if sidecar.extensions.tables[SnapshotCode.GRANULES] is None:
        return None
    indexes = [sidecar.extensions.granules(group) for group in range(sidecar.row_group_count)]
    return [None if index is None else encode_granules(index) for index in indexes]


def _snapshot(sidecar: Sidecar, sections: Sections) -> SnapshotFields:
    footer = sidecar.footer
    return SnapshotFields(
        footer.parquet_footer_offset,
        footer.parquet_footer_length,
        footer.unused_bytes,
        sidecar.seq_txn,
        sidecar.scratchpad,
        _snapshot_entries(sidecar) if _has_snapshot_section(sidecar, sections) else None,
    )


def _has_snapshot_section(sidecar: Sidecar, sections: Sections) -> bool:
    if sections == Sections.KEEP:
        return sidecar.footer_sections.windrow is not None
    return sections == Sections.WINDROW


def _snapshot_entries(sidecar: Sidecar) -> Mapping[int, bytes]:
    ours = sidecar.extensions
    entries = snapshot_entries(
        created_by=ours.created_by, version=ours.version or 0, key_value=ours.key_value or {}, etag=ours.etag
    )
    return {code: content for code, content in entries.items() if code != SnapshotCode.VERSION or ours.version}
