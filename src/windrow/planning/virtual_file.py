"""One virtual Parquet file for a whole scan: row groups and runs of pages of any number of files in one address space.

Addresses count like offsets in a file:

    PAR1 | files, and runs of pages, end to end | null chunks | padding | footer

Nothing is copied to make it, but for pages that a cut goes through: it is a list of segments, each of which says which
bytes of which file are at its addresses, and a footer of our own. Where an engine reads,
`windrow.reading.virtual_reader` fetches.
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
from windrow.parquet.footer import MAGIC
from windrow.parquet.placement import FIRST_ADDRESS, VirtualSchema
from windrow.parquet.synthesis import assemble_footer, footer_of, row_group_bytes
from windrow.planning.address_space import AddressSpace, Groups, Part, Piece, Segment
from windrow.planning.data_files import DataFile
from windrow.sidecar import Sidecar

__all__ = ["CachedSpace", "Placed", "VirtualFile", "lay_out"]

TAIL_PADDING = 256 * 2**10
"""DuckDB reads up to so many bytes before the footer, which should be nobody's data."""

_ROOM = 4
"""How many times as large as its files a space is that is kept."""

_Place = tuple[int, int, int, int]
"""A file, its row group there, and the granules, as `Placed` has them."""


class Placed(NamedTuple):
    """The row groups of a virtual file, in the order in which they are read."""

    places: NDArray[np.int64]
    """The file of each, its row group there, and of which granules it is: from the first to before the last; -1 where
    it is whole. Of rows, the first and -2 less the last. Behind these, the first of its rows there."""
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
    held: Sequence[tuple[int, bytes]]
    """What is in no file, null chunks and pages that were written anew, with addresses, in order of these."""
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
    def is_steady(self) -> bool:
        """Whether all files with rows in it are on this machine and never change."""
        used = [self.files[number] for number in self.members]
        return not any(file.store.is_remote or file.is_mutable for file in used)

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
        return [(0, MAGIC), *self.held, (self.footer_address, self.footer)]

    @cached_property
    def name(self) -> str:
        """A name that only a file of the same bytes has."""
        digest = hashlib.blake2b(self.footer, digest_size=16)
        digest.update(repr([(file.uri, str(file.identity)) for file in self.files]).encode())
        digest.update(np.array([(s.address, s.file, s.offset, s.length) for s in self.segments], np.int64).tobytes())
        return f"{digest.hexdigest()}.parquet"


def lay_out(files: Sequence[DataFile], schema: VirtualSchema, parts: Sequence[Part]) -> VirtualFile:
    """Put the pieces of all parts into one address space."""
    space = AddressSpace(files, schema)
    for part in parts:
        space.place(part)
    nulls, groups = space.end, _in_order(space.taken(), len(schema.leaves))
    groups.chunks["data_page_offset"][groups.is_null] += nulls
    return VirtualFile(
        schema=schema,
        files=files,
        segments=space.mapped,
        held=[*space.held, (nulls, space.nulls)],
        placed=Placed(groups.places, groups.rows, groups.chunks, groups.is_null),
        encode=lambda: footer_of(schema, groups.rows, groups.chunks, groups.statistics),
        footer_address=nulls + len(space.nulls) + TAIL_PADDING,
        is_plain=space.is_plain and not groups.is_null.any(),
        is_whole=len(groups.rows) == space.whole,
        members=frozenset(groups.places[:, 0].tolist()),
    )


class CachedSpace:
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
        self._space = AddressSpace(self._files, self.schema)
        self._slots: dict[_Place, int] = {}
        self._placed = Placed(*_no_groups(len(self.schema.leaves)))
        self._statistics: list[bytes | memoryview] = []
        self._encoded: dict[int, bytes] = {}
        self._segments: dict[int, list[Segment]] = {}

    def virtual(self, part: Part, row_groups: NDArray[np.int64]) -> VirtualFile | None:
        """A virtual file of row groups and granules; `row_groups` are how many each file of the list has.

        None where there are so many granules that they do not fit.
        """
        places = sorted([_place_of(piece) for piece in part.pieces])
        if not self._slots.keys() >= set(places):
            missing = [piece for piece in part.pieces if _place_of(piece) not in self._slots]
            if not self._add(part.sidecar, missing):
                self._clear()
                return None
        slots = [self._slots[place] for place in places]
        placed, used = self._placed.take(slots), list(dict.fromkeys([place[0] for place in places]))
        nulls, segments = self._space.nulls, sorted({each for slot in slots for each in self._segments[slot]})
        is_whole = max([place[3] for place in places]) < 0 and len(slots) == int(row_groups[used].sum())
        return VirtualFile(
            schema=self.schema,
            files=self._files,
            segments=segments,
            held=[(self._nulls_start, nulls)],
            placed=placed,
            encode=self._footer_of(slots, placed),
            footer_address=self._nulls_start + len(nulls) + TAIL_PADDING,
            is_plain=self._space.is_plain and not placed.is_null.any(),
            is_whole=is_whole,
            members=frozenset(used),
        )

    def _add(self, sidecar: Sidecar, pieces: Sequence[Piece]) -> bool:
        """Put row groups and granules into the space; whether there was room."""
        whole = [piece for piece in pieces if piece.stop is None]
        apart = [[piece] for piece in pieces if piece.stop is not None]
        for some in [whole, *apart] if whole else apart:
            before = len(self._space.mapped)
            self._space.place(Part(sidecar, some))
            for groups in self._space.taken():
                groups.chunks["data_page_offset"][groups.is_null] += self._nulls_start
                for file, number, first, stop, _ in groups.places.tolist():
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
        np.empty((0, 5), np.int64),
        np.empty(0, np.int64),
        np.empty((0, leaves), c.FOOTER_CHUNK),
        np.empty((0, leaves), bool),
    )


def _in_order(groups: Sequence[Groups], leaves: int) -> Groups:
    """All row groups together, in the order in which they are read."""
    if not groups:
        return Groups(*_no_groups(leaves), [])
    places, rows, chunks, is_null = (np.concatenate(each) for each in list(zip(*groups, strict=True))[:4])
    statistics = [each for group in groups for each in group.statistics]
    order = np.lexsort(places.T[::-1])
    return Groups(places[order], rows[order], chunks[order], is_null[order], [statistics[at] for at in order.tolist()])
