"""Cutting a row group whose columns have their pages at different rows, so that several threads read it at once.

The cuts are at rows where most columns have the edge of a page. Of the others the pages that a cut goes through are
written anew, as what is before it and what is behind it; all others stay where they are. Where pages are is in the
offset index of a file; without one it is learnt from the headers of the pages, of files in memory alone, and cached
under the identity of the file.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from windrow.cache import Cache, CacheKey, CacheKind
from windrow.errors import WindrowError
from windrow.parquet import chunk as c
from windrow.parquet.page_index import OffsetIndex, parse_offset_index
from windrow.parquet.page_places import are_places, decode_places, encode_places, find_places
from windrow.parquet.page_trim import can_be_trimmed, trimmed_pages
from windrow.parquet.schema import Leaf
from windrow.planning.address_space import Piece, RowCut, RunOfRows
from windrow.planning.data_files import DataFile
from windrow.planning.virtual_schema import schema_of
from windrow.sidecar import Sidecar
from windrow.sidecar.restore import restore_chunks

__all__ = ["MOST_ANEW", "RowGroup", "cut_by_rows"]

MOST_ANEW = 1 / 16
"""What it takes to write pages anew is no more than this share of what it takes to decode the row group."""
_PAGE_ROWS = 2**12
"""To write a page anew takes as long as so many rows of it, whatever it has."""
_REACH = 8
"""A cut is at most one part in so many of a piece away from where pieces would be of the same size."""
_PROBES = 16
_log = logging.getLogger(__name__)


class RowGroup:
    """Some columns of a row group of a local file: where their pages are, and what is left of pages behind a cut."""

    def __init__(
        self, cache: Cache[bytes] | None, file: DataFile, sidecar: Sidecar, piece: Piece, leaves: Sequence[Leaf]
    ) -> None:
        self.rows = int(sidecar.row_counts[piece.unit])
        self.leaves = leaves
        self._cache = cache
        self._file = file
        positions = [leaf.index for leaf in leaves]
        self._chunks = restore_chunks(sidecar, [piece.unit], positions)[0]

    def places(self) -> list[OffsetIndex] | None:
        """Where the pages of each column are; None where that is not known, and would take long to learn."""
        found: list[OffsetIndex] = []
        for chunk in self._chunks:
            start, length, values = int(c.chunk_starts(chunk)), int(chunk["total_compressed_size"]), self.rows
            places = self._indexed(chunk) or self._learnt(start, length)
            if places is None or int(chunk["num_values"]) != values or not are_places(places, start, length, values):
                return None
            found.append(places)
        return found

    def run(self, column: int, pages: OffsetIndex, rows: range) -> RunOfRows:
        """Some rows of a column, as whole pages and what is left of others."""
        firsts, stops = pages.first_rows, np.append(pages.first_rows[1:], self.rows)
        first = int(np.searchsorted(firsts, rows.start, "right")) - 1
        stop = int(np.searchsorted(stops, rows.stop, "right"))
        before = behind = b""
        if firsts[first] < rows.start:
            before = self._trimmed(column, pages, first, rows.start, min(rows.stop, int(stops[first])))
            first += 1
        if first <= stop < len(firsts) and firsts[stop] < rows.stop:
            behind = self._trimmed(column, pages, stop, int(firsts[stop]), rows.stop)
        return RunOfRows(pages, range(first, max(first, stop)), before, behind)

    def _indexed(self, chunk: NDArray[np.void]) -> OffsetIndex | None:
        """What the offset index of the file says."""
        length = int(chunk["offset_index_length"])
        if not length:
            return None
        return parse_offset_index(self._file.read(int(chunk["offset_index_offset"]), length), name=self._file.uri)

    def _learnt(self, start: int, length: int) -> OffsetIndex | None:
        """What the headers of the pages say; None where a disk would have to be waited for."""

        def learn(_: CacheKey) -> bytes:
            local = self._file.store.local
            if local is None:
                raise _FarError
            opened = local.open(self._file.key, expect=self._file.identity)
            probes = np.linspace(start, start + length - 1, _PROBES).astype(np.int64)
            if not all(map(opened.is_at_hand, probes.tolist())):
                raise _FarError
            return encode_places(find_places(opened.read_at, start, length, self.rows, name=self._file.uri))

        key = self._key("pages", start, length, CacheKind.SIDECAR)
        try:
            data = learn(key) if self._cache is None else self._cache.get(key, learn)
        except _FarError:
            return None
        return decode_places(data, start, length, self.rows)

    def _trimmed(self, column: int, pages: OffsetIndex, page: int, first: int, stop: int) -> bytes:
        """Rows of a page, as pages; counted within the row group."""
        chunk, leaf = self._chunks[column], self.leaves[column]
        start, offset, size = int(c.chunk_starts(chunk)), int(pages.offsets[page]), int(pages.compressed_sizes[page])

        def trim(_: CacheKey) -> bytes:
            dictionary = self._file.read(start, int(pages.offsets[0]) - start) if pages.offsets[0] > start else b""
            rows, data = range(first, stop), self._file.read(offset, size)
            own = range(rows.start - int(pages.first_rows[page]), rows.stop - int(pages.first_rows[page]))
            return trimmed_pages(leaf, int(chunk["codec"]), dictionary, data, own, name=self._file.uri)

        key = self._key(f"rows {first} to {stop}", offset, size, CacheKind.DEFAULT)
        return trim(key) if self._cache is None else self._cache.get(key, trim)

    def _key(self, what: str, start: int, length: int, kind: CacheKind) -> CacheKey:
        return CacheKey(f"{self._file.uri}#{what}", start, length, kind, self._file.cache_identity)


class _FarError(Exception):
    """The bytes of a file are not in memory."""


def cut_by_rows(
    cache: Cache[bytes] | None,
    file: DataFile,
    sidecar: Sidecar,
    piece: Piece,
    columns: Sequence[str] | None,
    wanted: int,
    *,
    least_rows: int,
    most_anew: float = MOST_ANEW,
) -> list[Piece]:
    """Cut a whole row group into so many pieces, or fewer; it stays whole where that cannot be done, or not cheaply.

    No piece has fewer rows than `least_rows`, but for the distance to the next edge of pages.
    """
    count = min(wanted, int(sidecar.row_counts[piece.unit]) // least_rows)
    leaves = [leaf for leaf in schema_of(sidecar).leaves if columns is None or leaf.path[0] in columns]
    # A description that the planner made may stop before the pages of the file do.
    is_own = file.described is None and not file.store.is_remote
    if count < 2 or not is_own or not leaves or not all(map(can_be_trimmed, leaves)):
        return [piece]
    group = RowGroup(cache, file, sidecar, piece, leaves)
    try:
        places = group.places()
        cuts = [] if places is None else _cuts(places, group.rows, count, most_anew)
        if places is None or not cuts:
            return [piece]
        return [
            piece._replace(cut=_cut(group, places, range(first, stop)))
            for first, stop in pairwise([0, *cuts, group.rows])
        ]
    except WindrowError as error:
        _log.debug("%s: row group %d is read whole: %s", file.uri, piece.group, error)
        return [piece]


def _cut(group: RowGroup, places: Sequence[OffsetIndex], rows: range) -> RowCut:
    runs = {leaf.index: group.run(at, places[at], rows) for at, leaf in enumerate(group.leaves)}
    return RowCut(rows, runs)


def _cuts(places: Sequence[OffsetIndex], rows: int, count: int, most_anew: float) -> list[int]:
    """Rows to cut at, near those of equal pieces, where least has to be written anew; none where that is too much."""
    edges = np.unique(np.concatenate([each.first_rows for each in places]))
    reach, cuts, anew = rows // count // _REACH, list[int](), 0
    for ideal in (rows * part // count for part in range(1, count)):
        near = edges[np.searchsorted(edges, ideal - reach) : np.searchsorted(edges, ideal + reach, "right")]
        candidates = near[(near > 0) & (near < rows)] if near.size else np.array([ideal])
        costs = np.sum([_cut_through(each, candidates, rows) for each in places], axis=0)
        least = int(np.lexsort([np.abs(candidates - ideal), costs])[0])
        cuts.append(int(candidates[least]))
        anew += int(costs[least])
    return cuts if anew <= most_anew * rows * len(places) else []


def _cut_through(places: OffsetIndex, cuts: NDArray[np.int64], rows: int) -> NDArray[np.int64]:
    """For each cut, how much work it is to write the page anew that begins before it and ends behind it."""
    page = np.searchsorted(places.first_rows, cuts, "right") - 1
    work = np.diff(places.first_rows, append=rows)[page] + _PAGE_ROWS
    through: NDArray[np.int64] = np.where(places.first_rows[page] == cuts, 0, work)
    return through
