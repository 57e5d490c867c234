"""One virtual Parquet file for a whole scan: row groups and runs of pages of any number of files in one address space.

Addresses count like offsets in a file:

    PAR1 | files, and runs of pages, end to end | null chunks | padding | footer

Nothing is copied to make it: it is a list of segments, each of which says which bytes of which file are at its
addresses, and a footer of our own. Where an engine reads, `windrow.reading.virtual_reader` fetches.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from windrow.parquet import chunk as c
from windrow.parquet.converted import lacks_converted_type
from windrow.parquet.footer import MAGIC
from windrow.parquet.page_index import OffsetIndex
from windrow.parquet.placement import (
    FIRST_ADDRESS,
    VirtualSchema,
    misleading_flags,
    null_chunk,
    null_record,
    page_run,
    shifted,
)
from windrow.parquet.schema import Leaf, PhysicalType
from windrow.parquet.synthesis import assemble_footer, footer_of, row_group_bytes
from windrow.planning.data_files import DataFile
from windrow.planning.virtual_schema import positions_in, schema_of
from windrow.sidecar import Sidecar
from windrow.sidecar.granules import GranuleIndex
from windrow.sidecar.restore import restore_chunks

__all__ = ["KeptSpace", "Part", "Piece", "Placed", "Segment", "VirtualFile", "lay_out"]

TAIL_PADDING = 256 * 2**10
"""DuckDB reads up to so many bytes before the footer, which should be nobody's data."""

_PLAIN_NUMBERS = frozenset({PhysicalType.BOOLEAN, PhysicalType.INT32, PhysicalType.INT64})
_PLAIN_MEANINGS = frozenset({"STRING", "DECIMAL"})

_ROOM = 4
"""How many times as large as its files a space is that is kept."""

_Place = tuple[int, int, int, int]
"""A file, its row group there, and the granules, as `Placed` has them."""

# Filters are asked while planning. Behind their addresses an engine would find nothing.
_NOT_MAPPED = c.HAS_BLOOM_OFFSET | c.HAS_BLOOM_LENGTH


@dataclass(frozen=True, slots=True)
class Piece:
    """A row group of a file that is read, or granules `first` to `stop` of it; `stop` None is all of it."""

    file: int
    unit: int
    """The position of the row group in the sidecar, or bundle of sidecars, of its part."""
    group: int
    """The position of the row group in its file."""
    first: int = 0
    stop: int | None = None


@dataclass(frozen=True, slots=True)
class Part:
    """Pieces of files whose columns are the same, and the sidecar, or bundle, that describes them."""

    sidecar: Sidecar
    pieces: Sequence[Piece]


@dataclass(frozen=True, slots=True)
class Segment:
    """Bytes of a file at an address."""

    address: int
    file: int
    offset: int
    length: int


class Placed(NamedTuple):
    """The row groups of a virtual file, in the order in which they are read."""

    places: NDArray[np.int64]
    """The file of each, its row group there, and of which granules it is: from the first to before the last; -1 where
    it is whole."""
    rows: NDArray[np.int64]
    chunks: NDArray[np.void]
    """By row group and leaf; their offsets are addresses."""
    is_null: NDArray[np.bool_]
    """Chunks that are in no file, since all that they hold is null."""

    def take(self, places: Sequence[int]) -> Placed:
        """Some of the row groups."""
        return Placed(self.places[places], self.rows[places], self.chunks[places], self.is_null[places])

    def joined(self, more: Placed) -> Placed:
        """These row groups and others behind them."""
        places, rows = np.concatenate([self.places, more.places]), np.concatenate([self.rows, more.rows])
        is_null = np.concatenate([self.is_null, more.is_null])
        # As bytes: records would be copied field by field.
        chunks = b"".join([self.chunks.tobytes(), more.chunks.tobytes()])
        return Placed(places, rows, np.frombuffer(chunks, c.FOOTER_CHUNK).reshape(is_null.shape), is_null)


@dataclass(frozen=True, eq=False)
class VirtualFile:
    """A Parquet file that exists only as a list of segments."""

    schema: VirtualSchema
    files: Sequence[DataFile]
    segments: Sequence[Segment]
    """In order of addresses."""
    nulls: tuple[int, bytes]
    """The null chunks and their address."""
    placed: Placed
    encode: Callable[[], bytes]
    """Gives the footer: not every reader needs one."""
    footer_address: int
    is_plain: bool
    """Whether an engine that reads the files themselves finds no other values: nothing was made up or kept from it."""
    is_whole: bool
    """Whether all rows of the files are in it."""
    members: frozenset[int]
    """The files that have rows in it; there may be no bytes of them in it, where all that is read of them is null."""
    epoch: int | None = None
    """The schema epoch of its files, where columns have another type since."""

    @cached_property
    def rows(self) -> int:
        """How many rows it has."""
        return int(self.placed.rows.sum())

    @property
    def row_groups(self) -> int:
        """How many row groups it has."""
        return len(self.placed.rows)

    @cached_property
    def chunks(self) -> NDArray[np.int64]:
        """Address and length of every chunk that is in a file: what a reader of all columns needs."""
        real = self.placed.chunks[~self.placed.is_null]
        return np.stack([c.chunk_starts(real), real["total_compressed_size"]], axis=1)

    @cached_property
    def footer(self) -> bytes:
        """The footer, with its length and the magic behind it."""
        return self.encode()

    @property
    def size(self) -> int:
        """How many addresses there are."""
        return self.footer_address + len(self.footer)

    @property
    def memory(self) -> list[tuple[int, bytes]]:
        """Addresses whose bytes are in no file."""
        return [(0, MAGIC), self.nulls, (self.footer_address, self.footer)]

    @cached_property
    def name(self) -> str:
        """A name that only a file of the same bytes has."""
        digest = hashlib.blake2b(self.footer, digest_size=16)
        digest.update(repr([(file.uri, str(file.identity)) for file in self.files]).encode())
        digest.update(np.array([(s.address, s.file, s.offset, s.length) for s in self.segments], np.int64).tobytes())
        return f"{digest.hexdigest()}.parquet"


def lay_out(files: Sequence[DataFile], schema: VirtualSchema, parts: Sequence[Part]) -> VirtualFile:
    """Put the pieces of all parts into one address space."""
    space = _Space(files, schema)
    for part in parts:
        space.place(part)
    return space.finish()


class KeptSpace:
    """An address space of all files of a list, in which row groups and granules keep their addresses from scan to scan.

    A row group, or a single granule, is put into it when it is first asked for, and encoded when a footer first needs
    it. Of what is in it each virtual file shows what its scan needs. Where nobody looks may be anything, so it costs
    nothing that the space is large.
    """

    def __init__(self, files: Sequence[DataFile], schema: VirtualSchema) -> None:
        self.schema = schema
        self._files = files
        # Files are mapped whole once, and granules with their dictionaries as long as there is room.
        self._nulls_start = FIRST_ADDRESS + _ROOM * sum(file.identity.size for file in files)
        self._clear()

    def _clear(self) -> None:
        self._space = _Space(self._files, self.schema)
        self._slots: dict[_Place, int] = {}
        self._placed = Placed(*_no_groups(len(self.schema.leaves)))
        self._statistics: list[bytes | memoryview] = []
        self._encoded: dict[int, bytes] = {}
        self._segments: dict[int, list[Segment]] = {}

    def virtual(self, part: Part, row_groups: NDArray[np.int64]) -> VirtualFile | None:
        """A virtual file of row groups and granules; `row_groups` are how many each file of the list has.

        None where there are so many granules that they do not fit.
        """
        places = sorted(map(_place_of, part.pieces))
        missing = [piece for piece in part.pieces if _place_of(piece) not in self._slots] if self._lacks(places) else []
        if missing and not self._add(part.sidecar, missing):
            self._clear()
            return None
        slots = [self._slots[place] for place in places]
        placed, used = self._placed.take(slots), list(dict.fromkeys(place[0] for place in places))
        nulls, segments = self._space.nulls, {id(each): each for slot in slots for each in self._segments[slot]}
        is_whole = all(place[3] < 0 for place in places) and len(slots) == int(row_groups[used].sum())
        return VirtualFile(
            schema=self.schema,
            files=self._files,
            segments=sorted(segments.values(), key=lambda segment: segment.address),
            nulls=(self._nulls_start, nulls),
            placed=placed,
            encode=self._footer_of(slots, placed),
            footer_address=self._nulls_start + len(nulls) + TAIL_PADDING,
            is_plain=self._space.is_plain and not placed.is_null.any(),
            is_whole=is_whole,
            members=frozenset(used),
        )

    def _lacks(self, places: Sequence[_Place]) -> bool:
        return any(place not in self._slots for place in places)

    def _add(self, sidecar: Sidecar, pieces: Sequence[Piece]) -> bool:
        """Put row groups and granules into the space; whether there was room."""
        whole = [piece for piece in pieces if piece.stop is None]
        apart = [[piece] for piece in pieces if piece.stop is not None]
        for some in [whole, *apart] if whole else apart:
            before = len(self._space.mapped)
            self._space.place(Part(sidecar, some))
            for groups in self._space.taken():
                groups.chunks["data_page_offset"][groups.is_null] += self._nulls_start
                for file, number, first, stop in groups.places.tolist():
                    slot = self._slots[file, number, first, stop] = len(self._slots)
                    run = self._space.mapped[before:]
                    self._segments[slot] = run if stop >= 0 else [self._space.segment_of(file)]
                self._placed = self._placed.joined(Placed(groups.places, groups.rows, groups.chunks, groups.is_null))
                self._statistics += groups.statistics
        return self._space.end <= self._nulls_start

    def _footer_of(self, slots: Sequence[int], placed: Placed) -> Callable[[], bytes]:
        """What makes the footer, with what is in the space now."""
        encoded, statistics = self._encoded, self._statistics

        def footer() -> bytes:
            for at, slot in enumerate(slots):
                if slot not in encoded:
                    own, bounds = slice(at, at + 1), statistics[slot : slot + 1]
                    encoded[slot] = row_group_bytes(self.schema, placed.rows[own], placed.chunks[own], bounds)
            data = b"".join(encoded[slot] for slot in slots)
            return assemble_footer(self.schema, len(slots), int(placed.rows.sum()), data)

        return footer


def _place_of(piece: Piece) -> _Place:
    whole = piece.stop is None
    return piece.file, piece.group, -1 if whole else piece.first, -1 if piece.stop is None else piece.stop


def _no_groups(leaves: int) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.void], NDArray[np.bool_]]:
    return (
        np.empty((0, 4), np.int64),
        np.empty(0, np.int64),
        np.empty((0, leaves), c.FOOTER_CHUNK),
        np.empty((0, leaves), bool),
    )


class _Groups(NamedTuple):
    """Row groups of the virtual file, as arrays."""

    places: NDArray[np.int64]
    """The file of each, its row group there, and its granules, as `Placed` has them: they are read in this order."""
    rows: NDArray[np.int64]
    chunks: NDArray[np.void]
    """By row group and leaf."""
    is_null: NDArray[np.bool_]
    """Chunks that are in no file; their addresses count from the first of them."""
    statistics: Sequence[bytes | memoryview]
    """The bytes that hold the bounds of each."""


def _in_order(groups: Sequence[_Groups], leaves: int) -> _Groups:
    """All row groups together, in the order in which they are read."""
    if not groups:
        return _Groups(*_no_groups(leaves), [])
    places, rows, chunks, is_null = (np.concatenate(each) for each in list(zip(*groups, strict=True))[:4])
    statistics = [each for group in groups for each in group.statistics]
    order = np.lexsort(places.T[::-1])
    return _Groups(places[order], rows[order], chunks[order], is_null[order], [statistics[at] for at in order.tolist()])


class _Space:
    """An address space that grows."""

    def __init__(self, files: Sequence[DataFile], schema: VirtualSchema) -> None:
        self._files = files
        self._schema = schema
        self.end = FIRST_ADDRESS
        """The first address that is free."""
        self.mapped: list[Segment] = []
        """All segments, in order of addresses."""
        self._whole_files: dict[int, Segment] = {}
        self._nulls = bytearray()
        # No two columns share a null chunk: DuckDB refuses row groups whose chunks overlap.
        self._null_places: dict[tuple[int, int], int] = {}
        self._groups: list[_Groups] = []
        self._has_plain_columns = all(map(_is_plain, schema.leaves))
        self._hides = False
        self._whole = 0

    def place(self, part: Part) -> None:
        """Add the pieces of one part."""
        footer = schema_of(part.sidecar)
        positions = positions_in(footer, self._schema)
        assert positions is not None  # noqa: S101 (the plan puts only such parts together)
        misleading = misleading_flags(footer, self._schema)
        hidden = np.uint32(misleading | _NOT_MAPPED)
        self._hides |= bool(misleading) or any(lacks_converted_type(footer.leaves[at].element) for at in positions)
        # A row group of which only some granules are read can be no whole one.
        self._whole += part.sidecar.row_group_count if all(piece.stop is None for piece in part.pieces) else -1
        there = [leaf for leaf, position in enumerate(positions) if position >= 0]
        units = [piece.unit for piece in part.pieces]
        found = restore_chunks(part.sidecar, units, [positions[leaf] for leaf in there])
        found["flags"] &= ~hidden
        rows = part.sidecar.row_counts[units].astype(np.int64)
        whole = [place for place, piece in enumerate(part.pieces) if piece.stop is None]
        self._place_whole(part, there, found[whole], rows[whole], [part.pieces[place] for place in whole])
        for place, piece in enumerate(part.pieces):
            if piece.stop is not None:
                self._place_run(part, positions, there, found[place], piece)

    @property
    def nulls(self) -> bytes:
        """The null chunks so far."""
        return bytes(self._nulls)

    @property
    def is_plain(self) -> bool:
        """Whether an engine may be shown the files themselves, but for chunks that are in none."""
        return self._has_plain_columns and not self._hides

    def taken(self) -> list[_Groups]:
        """The row groups that were added since this was last asked."""
        groups, self._groups = self._groups, []
        return groups

    def finish(self) -> VirtualFile:
        """The virtual file; from now on it is known where null chunks are."""
        nulls, groups = self.end, _in_order(self._groups, len(self._schema.leaves))
        groups.chunks["data_page_offset"][groups.is_null] += nulls
        footer_address = nulls + len(self._nulls) + TAIL_PADDING
        return VirtualFile(
            schema=self._schema,
            files=self._files,
            segments=self.mapped,
            nulls=(nulls, bytes(self._nulls)),
            placed=Placed(groups.places, groups.rows, groups.chunks, groups.is_null),
            encode=lambda: footer_of(self._schema, groups.rows, groups.chunks, groups.statistics),
            footer_address=footer_address,
            is_plain=self.is_plain and not groups.is_null.any(),
            is_whole=len(groups.rows) == self._whole,
            members=frozenset(groups.places[:, 0].tolist()),
        )

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
        places = np.array([(piece.file, piece.group, -1, -1) for piece in pieces], np.int64)
        self._groups.append(_Groups(places, rows, placed, is_null, [_bytes(part.sidecar)] * len(pieces)))

    def _place_run(
        self, part: Part, positions: Sequence[int], there: Sequence[int], found: NDArray[np.void], piece: Piece
    ) -> None:
        granules = part.sidecar.extensions.granules(piece.unit)
        assert granules is not None  # noqa: S101 (the plan cuts only row groups that have granules)
        assert piece.stop is not None  # noqa: S101 (else it is whole)
        rows = int(granules.rows[piece.first : piece.stop].sum())
        placed = np.zeros(len(self._schema.leaves), c.FOOTER_CHUNK)
        is_null = np.ones(len(placed), bool)
        is_null[there] = _all_null(found, [self._schema.leaves[leaf] for leaf in there])
        chunks = dict(zip(there, found, strict=True))
        for leaf in self._schema.leaves:
            if is_null[leaf.index]:
                placed[leaf.index] = self._null(leaf, rows)
            else:
                placed[leaf.index] = self._run(piece, granules, positions[leaf.index], chunks[leaf.index])
        place = np.array([(piece.file, piece.group, piece.first, piece.stop)], np.int64)
        found_rows = np.array([rows], np.int64)
        self._groups.append(_Groups(place, found_rows, placed[None], is_null[None], [_bytes(part.sidecar)]))

    def _run(self, piece: Piece, granules: GranuleIndex, column: int, chunk: NDArray[np.void]) -> NDArray[np.void]:
        """The record of a run of pages, which gets addresses of its own, its dictionary before it."""
        stop = piece.stop or 0
        index = OffsetIndex(
            granules.page_offsets[column].astype(np.int64),
            granules.page_sizes[column].astype(np.int64),
            granules.first_rows,
        )
        run = page_run(
            chunk,
            index,
            piece.first,
            stop,
            group_rows=int(granules.rows.sum()),
            values=_values(granules, column, piece.first, stop),
        )
        address = self.end
        for span in (run.dictionary, run.pages):
            if span:
                self._map(piece.file, span.start, len(span))
        return run.at(address)

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
