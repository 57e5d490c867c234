"""An address space that grows: where row groups, runs of pages and null chunks of many files are in a virtual file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from windrow.parquet import chunk as c
from windrow.parquet.converted import lacks_converted_type
from windrow.parquet.page_index import OffsetIndex
from windrow.parquet.placement import (
    FIRST_ADDRESS,
    PageRun,
    VirtualSchema,
    cut_run,
    misleading_flags,
    null_chunk,
    null_record,
    page_run,
    shifted,
)
from windrow.parquet.schema import Leaf, PhysicalType
from windrow.planning.data_files import DataFile
from windrow.planning.virtual_schema import positions_in, schema_of
from windrow.sidecar import Sidecar
from windrow.sidecar.granules import GranuleIndex
from windrow.sidecar.restore import restore_chunks

__all__ = ["AddressSpace", "Groups", "Part", "Piece", "RowCut", "RunOfRows", "Segment"]

_PLAIN_NUMBERS = frozenset({PhysicalType.BOOLEAN, PhysicalType.INT32, PhysicalType.INT64})
_PLAIN_MEANINGS = frozenset({"STRING", "DECIMAL"})

# Filters are asked while planning. Behind their addresses an engine would find nothing.
_NOT_MAPPED = c.HAS_BLOOM_OFFSET | c.HAS_BLOOM_LENGTH


class RunOfRows(NamedTuple):
    """Rows of one column: whole pages of its chunk, maybe none, and what is left of the pages at both ends."""

    pages: OffsetIndex
    """All pages of the chunk."""
    whole: range
    before: bytes
    behind: bytes


@dataclass(frozen=True, slots=True, eq=False)
class RowCut:
    """Some rows of a row group, whose columns have their pages at other rows."""

    rows: range
    runs: Mapping[int, RunOfRows]
    """By the position of the column in the file; only columns that are read have one."""


class Piece(NamedTuple):
    """A row group of a file that is read, or granules `first` to `stop` of it, or rows; `stop` None is all of it."""

    file: int
    unit: int
    """The position of the row group in the sidecar, or bundle of sidecars, of its part."""
    group: int
    """The position of the row group in its file."""
    first: int = 0
    stop: int | None = None
    cut: RowCut | None = None

    @property
    def is_whole(self) -> bool:
        """Whether it is all of a row group."""
        return self.stop is None and self.cut is None


@dataclass(frozen=True, slots=True)
class Part:
    """Pieces of files whose columns are the same, and the sidecar, or bundle, that describes them."""

    sidecar: Sidecar
    pieces: Sequence[Piece]


class Segment(NamedTuple):
    """Bytes of a file at an address."""

    address: int
    file: int
    offset: int
    length: int


class Groups(NamedTuple):
    """Row groups of the virtual file, as arrays."""

    places: NDArray[np.int64]
    """The file of each, its row group and rows there, as `Placed` has them: they are read in this order."""
    rows: NDArray[np.int64]
    chunks: NDArray[np.void]
    """By row group and leaf."""
    is_null: NDArray[np.bool_]
    """Chunks that are in no file; their addresses count from the first of them."""
    statistics: Sequence[bytes | memoryview]
    """The bytes that hold the bounds of each."""


class AddressSpace:
    """Addresses are given out from the first one on; a file that is read whole is mapped whole."""

    def __init__(self, files: Sequence[DataFile], schema: VirtualSchema) -> None:
        self._files = files
        self._schema = schema
        self.end = FIRST_ADDRESS
        """The first address that is free."""
        self.mapped: list[Segment] = []
        """All segments, in order of addresses."""
        self.held: list[tuple[int, bytes]] = []
        """Addresses of pages that are in no file, and their bytes, in order of addresses."""
        self._whole_files: dict[int, Segment] = {}
        self._nulls = bytearray()
        # No two columns share a null chunk: DuckDB refuses row groups whose chunks overlap.
        self._null_places: dict[tuple[int, int], int] = {}
        self._groups: list[Groups] = []
        self._has_plain_columns = all(map(_is_plain, schema.leaves))
        self._hides = False
        self.whole = 0
        """How many row groups make all rows of the files; no number of them, where only granules of one are in it."""

    def place(self, part: Part) -> None:
        """Add the pieces of one part."""
        footer = schema_of(part.sidecar)
        positions = positions_in(footer, self._schema)
        assert positions is not None  # noqa: S101 (the plan puts only such parts together)
        misleading = misleading_flags(footer, self._schema)
        hidden = np.uint32(misleading | _NOT_MAPPED)
        self._hides |= bool(misleading) or any(lacks_converted_type(footer.leaves[at].element) for at in positions)
        # A row group of which only some granules are read can be no whole one.
        self.whole += part.sidecar.row_group_count if all(piece.is_whole for piece in part.pieces) else -1
        there = [leaf for leaf, position in enumerate(positions) if position >= 0]
        units = [piece.unit for piece in part.pieces]
        found = restore_chunks(part.sidecar, units, [positions[leaf] for leaf in there])
        found["flags"] &= ~hidden
        rows = part.sidecar.row_counts[units].astype(np.int64)
        whole = [place for place, piece in enumerate(part.pieces) if piece.is_whole]
        self._place_whole(part, there, found[whole], rows[whole], [part.pieces[place] for place in whole])
        for place, piece in enumerate(part.pieces):
            if not piece.is_whole:
                self._place_run(part, positions, there, found[place], piece)

    @property
    def nulls(self) -> bytes:
        """The null chunks so far."""
        return bytes(self._nulls)

    @property
    def is_plain(self) -> bool:
        """Whether an engine may be shown the files themselves, but for chunks that are in none."""
        return self._has_plain_columns and not self._hides

    def taken(self) -> list[Groups]:
        """The row groups that were added since this was last asked."""
        groups, self._groups = self._groups, []
        return groups

    def _place_whole(
        self,
        part: Part,
        there: Sequence[int],
        found: NDArray[np.void],
        rows: NDArray[np.int64],
        pieces: Sequence[Piece],
    ) -> None:
        if not pieces:
            return
        bases = np.array([self.segment_of(piece.file).address for piece in pieces], np.int64)
        placed = np.zeros((len(pieces), len(self._schema.leaves)), c.FOOTER_CHUNK)
        placed[:, there] = shifted(found, bases[:, None])
        is_null = _all_null(placed, self._schema.leaves)
        is_null[:, np.setdiff1d(np.arange(is_null.shape[1]), there)] = True
        for group, leaf in np.argwhere(is_null).tolist():
            placed[group, leaf] = self._null(self._schema.leaves[leaf], int(rows[group]))
        places = np.array([(piece.file, piece.group, -1, -1, 0) for piece in pieces], np.int64)
        self._groups.append(Groups(places, rows, placed, is_null, [_bytes(part.sidecar)] * len(pieces)))

    def _place_run(
        self, part: Part, positions: Sequence[int], there: Sequence[int], found: NDArray[np.void], piece: Piece
    ) -> None:
        rows, place, run_of = _rows_of(part, piece)
        placed = np.zeros(len(self._schema.leaves), c.FOOTER_CHUNK)
        is_null = np.ones(len(placed), bool)
        is_null[there] = _all_null(found, [self._schema.leaves[leaf] for leaf in there])
        chunks = dict(zip(there, found, strict=True))
        for leaf in self._schema.leaves:
            if is_null[leaf.index]:
                placed[leaf.index] = self._null(leaf, rows)
            else:
                run = run_of(positions[leaf.index], chunks[leaf.index])
                placed[leaf.index] = run.at(self._map_run(piece.file, run))
        places = np.array([(piece.file, piece.group, *place)], np.int64)
        found_rows = np.array([rows], np.int64)
        self._groups.append(Groups(places, found_rows, placed[None], is_null[None], [_bytes(part.sidecar)]))

    def _map_run(self, file: int, run: PageRun) -> int:
        """Give a run of pages addresses of its own, its dictionary before it; the first of them."""
        address = self.end
        for part in run.parts:
            if isinstance(part, range):
                self._map(file, part.start, len(part))
            else:
                self.held.append((self.end, part))
                self.end += len(part)
        return address

    def segment_of(self, file: int) -> Segment:
        """Where a file is, which is mapped whole."""
        if file not in self._whole_files:
            self._whole_files[file] = self._map(file, 0, self._files[file].identity.size)
        return self._whole_files[file]

    def _map(self, file: int, offset: int, length: int) -> Segment:
        self.mapped.append(Segment(self.end, file, offset, length))
        self.end += length
        return self.mapped[-1]

    def _null(self, leaf: Leaf, rows: int) -> NDArray[np.void]:
        """The record of a null chunk; its address counts from the first of them."""
        key = leaf.index, rows
        if key not in self._null_places:
            self._null_places[key] = len(self._nulls)
            self._nulls += null_chunk(leaf, rows)
        return null_record(leaf, rows, at=self._null_places[key])


_RunOf: TypeAlias = Callable[[int, NDArray[np.void]], PageRun]
"""Gives the run of a column, by its position in the file and the record of its chunk."""


def _rows_of(part: Part, piece: Piece) -> tuple[int, tuple[int, int, int], _RunOf]:
    """Of a piece that is not whole: how many rows it has, which, and the run of each column."""
    if piece.cut is not None:
        # Numbers of granules are never below -1.
        place = piece.cut.rows.start, -2 - piece.cut.rows.stop, piece.cut.rows.start
        return len(piece.cut.rows), place, partial(_run_of_rows, piece.cut)
    granules = part.sidecar.extensions.granules(piece.unit)
    assert granules is not None  # noqa: S101 (the plan cuts only row groups that have granules)
    assert piece.stop is not None  # noqa: S101 (else it is whole)
    rows = int(granules.rows[piece.first : piece.stop].sum())
    place = piece.first, piece.stop, int(granules.first_rows[piece.first])
    return rows, place, partial(_run_of_granules, granules, piece.first, piece.stop)


def _run_of_rows(cut: RowCut, column: int, chunk: NDArray[np.void]) -> PageRun:
    pages, whole, before, behind = cut.runs[column]
    return cut_run(chunk, pages, whole, len(cut.rows), before, behind)


def _run_of_granules(granules: GranuleIndex, first: int, stop: int, column: int, chunk: NDArray[np.void]) -> PageRun:
    offsets, sizes = (numbers[column].astype(np.int64) for numbers in (granules.page_offsets, granules.page_sizes))
    index, values = OffsetIndex(offsets, sizes, granules.first_rows), _values(granules, column, first, stop)
    return page_run(chunk, index, first, stop, group_rows=int(granules.rows.sum()), values=values)


def _is_plain(leaf: Leaf) -> bool:
    """Whether every engine takes a column for the same, and its bounds for no more than they are.

    Bounds of floats leave NaN out, and bytes may mean something to an engine that knows more of the file.
    """
    element = leaf.element
    if leaf.max_repetition or leaf.max_definition > 1 or element.physical_type is None:
        return False
    if element.physical_type in _PLAIN_NUMBERS:
        return True
    return element.meaning is not None and element.meaning.name in _PLAIN_MEANINGS


def _all_null(chunks: NDArray[np.void], leaves: Sequence[Leaf]) -> NDArray[np.bool_]:
    """Chunks that hold nothing but nulls: they need not be fetched."""
    known = (chunks["flags"] & c.HAS_NULL_COUNT) != 0
    # Of a repeated column an empty list counts as a null too, and is not one.
    plain = np.array([leaf.max_repetition == 0 and leaf.max_definition == 1 for leaf in leaves], bool)
    all_null: NDArray[np.bool_] = known & plain & (chunks["null_count"] == chunks["num_values"])
    return all_null


def _values(granules: GranuleIndex, column: int, first: int, stop: int) -> int | None:
    """How many values a run holds of a nested column; None where it is as many as rows."""
    nested, values = granules.nested_columns, granules.nested_values
    if nested is None or values is None:
        return None
    found = np.flatnonzero(nested == column)
    return int(values[found[0], first:stop].sum()) if len(found) else None


def _bytes(sidecar: Sidecar) -> bytes | memoryview:
    buffer = sidecar.buffer
    return buffer if isinstance(buffer, bytes) else memoryview(buffer)
