"""Row groups that need not be taken apart: where the order takes all rows of one in a row, its bytes go on as they are.

What is written depends on the rows alone, whatever is loaded together: a row group of an input is copied when it is
about as large as one of ours and nothing of another input falls between its rows. The rows ahead of it end their row
group there, unless that would be a small one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from windrow.merging.batch import Batch
from windrow.merging.inputs import Input
from windrow.merging.order import Merged, MergeOrder
from windrow.parquet import chunk as c
from windrow.parquet.chunk_writer import EncodedChunk
from windrow.parquet.codecs import Codec
from windrow.parquet.file_writer import copied_chunk
from windrow.parquet.footer import ParquetFooter
from windrow.parquet.page_index import OffsetIndex, parse_offset_index
from windrow.parquet.schema import Leaf

__all__ = ["Copies", "Group", "row_groups"]

UNKNOWN = -1
"""Stands for a row group that may be copied or not: rows that decide it are not loaded yet."""


class Group(NamedTuple):
    """Rows of the order that become a row group; `piece` is the number of the piece which they are copied from."""

    first: int
    last: int
    piece: int | None = None


@dataclass(frozen=True, eq=False)
class Copies:
    """Tells which row groups can be copied into files with such a footer, and copies them."""

    footer: ParquetFooter
    most_rows: int
    granule_rows: int
    blooms: npt.NDArray[np.bool_]
    """Which leaves have bloom filters."""
    _alike: dict[bytes, bool] = field(default_factory=dict)
    _indexes: dict[tuple[int, int], list[OffsetIndex]] = field(default_factory=dict)

    def pieces(self, batch: Batch, merged: Merged, ready: int) -> dict[int, int]:
        """The pieces that lie in the order without a gap, by the places before `ready` that they begin at.

        One that reaches beyond `ready` is UNKNOWN: rows that are not loaded may fall into it.
        """
        together = _by_row(batch, merged, self.most_rows // 2)
        if merged.order.counts is not None:
            together = _by_run(batch, merged.order, self.most_rows // 2)
        return {
            place: piece if place + int(batch.starts[piece + 1] - batch.starts[piece]) <= ready else UNKNOWN
            for piece, place in together
            if place < ready and self._fits(batch, piece)
        }

    def _fits(self, batch: Batch, number: int) -> bool:
        piece = batch.pieces[number]
        source = batch.source.inputs[piece.input]
        rows = int(source.footer.row_group_rows[piece.group])
        if piece.first or piece.last != rows or not self.most_rows // 2 <= rows <= self.most_rows:
            return False
        chunks = source.footer.chunks[piece.group]
        ours = (chunks["flags"] & c.HAS_OFFSET_INDEX != 0) & (chunks["codec"] == Codec.ZSTD)
        ours &= chunks["flags"] & (c.MIN_EXACT_FALSE | c.MAX_EXACT_FALSE) == 0
        if not ours.all() or not self._is_alike(source.footer):
            return False
        filtered = (chunks["bloom_offset"] > 0) & (chunks["bloom_length"] > 0)
        return bool(filtered[self.blooms].all()) and self._is_aligned(batch, number) and batch.is_protected(number)

    def _is_alike(self, footer: ParquetFooter) -> bool:
        """Whether a file has the same columns in the same form."""
        is_alike = self._alike.get(footer.schema_bytes)
        if is_alike is None:
            is_alike = [_form(leaf) for leaf in footer.leaves] == [_form(leaf) for leaf in self.footer.leaves]
            self._alike[footer.schema_bytes] = is_alike
        return is_alike

    def _is_aligned(self, batch: Batch, number: int) -> bool:
        """Whether all columns have their pages cut at the same rows, and often enough."""
        piece, indexes = batch.pieces[number], self._offset_indexes(batch, number)
        cuts = indexes[0].first_rows
        long = np.diff(np.append(cuts, piece.last)).max(initial=0) > self.granule_rows
        return not long and all(np.array_equal(index.first_rows, cuts) for index in indexes)

    def _offset_indexes(self, batch: Batch, number: int) -> list[OffsetIndex]:
        piece = batch.pieces[number]
        indexes = self._indexes.get(piece[:2])
        if indexes is None:
            source = batch.source.inputs[piece.input]
            read = _index_bytes(source, piece.group, "offset_index")
            indexes = [parse_offset_index(data, name=source.key) for data in read]
            self._indexes[piece[:2]] = indexes
        return indexes

    def first_rows(self, batch: Batch, number: int) -> Any:
        """The rows of a piece that its pages begin with."""
        return self._offset_indexes(batch, number)[0].first_rows

    def chunks(self, batch: Batch, number: int) -> list[EncodedChunk]:
        """All chunks of a piece, in the order of the leaves."""
        batch.verify(number)
        piece = batch.pieces[number]
        source = batch.source.inputs[piece.input]
        bounds, blooms = (_index_bytes(source, piece.group, name) for name in ("column_index", "bloom"))
        indexes = self._offset_indexes(batch, number)
        return [
            copied_chunk(
                source.footer,
                piece.group,
                leaf,
                batch.chunk_bytes(number, leaf),
                index,
                bytes(column_index) or None,
                bytes(bloom) or None,
            )
            for leaf, (index, column_index, bloom) in enumerate(zip(indexes, bounds, blooms, strict=True))
        ]


def _by_run(batch: Batch, order: MergeOrder, least: int) -> Iterator[tuple[int, int]]:
    """The pieces of at least so many rows that lie in the order without a gap, each with its place."""
    for run in np.flatnonzero(order.lengths >= least).tolist():
        start, end = int(order.starts[run]), int(order.starts[run] + order.lengths[run])
        low, high = np.searchsorted(batch.starts, [start, end + 1]).tolist()
        for piece in range(low, high - 1):
            yield piece, int(order.ends[run]) - end + int(batch.starts[piece])


def _by_row(batch: Batch, merged: Merged, least: int) -> Iterator[tuple[int, int]]:
    """The same where the order is row by row: rows of a piece never change places with each other."""
    for piece in np.flatnonzero(np.diff(batch.starts) >= least).tolist():
        first, last = int(batch.starts[piece]), int(batch.starts[piece + 1]) - 1
        place = merged.place_of_row(first)
        if merged.place_of_row(last) - place == last - first:
            yield piece, place


def _form(leaf: Leaf) -> tuple[Any, ...]:
    element = leaf.element
    kind = element.physical_type, element.type_length, element.meaning
    return leaf.path, leaf.max_repetition, leaf.max_definition, *kind


def _index_bytes(source: Input, group: int, name: str) -> list[bytes]:
    """A part of what tells of a row group's chunks; nothing for one that lacks it."""
    chunks = source.footer.chunks[group]
    offsets, lengths = chunks[f"{name}_offset"], chunks[f"{name}_length"]
    there = (offsets > 0) & (lengths > 0)
    return source.read(
        list(zip(np.where(there, offsets, 0).tolist(), np.where(there, lengths, 0).tolist(), strict=True))
    )


def row_groups(
    copies: Mapping[int, int], batch: Batch, first: int, last: int, most: int, *, complete: bool
) -> list[Group]:
    """How rows of the order are cut into row groups, up to the first that is undecided.

    An output that is `complete` ends with these rows: its last row group may be short.
    """
    sizes = np.diff(batch.starts)
    inside = {
        at: piece
        for at, piece in copies.items()
        if first <= at < last and not (complete and (piece == UNKNOWN or at + sizes[piece] > last))
    }
    return list(_cut(inside, sorted(inside), sizes, first, last, most, complete=complete))


def _cut(
    copies: Mapping[int, int], places: list[int], sizes: Any, at: int, last: int, most: int, *, complete: bool
) -> Iterator[Group]:
    while at < last:
        piece = copies.get(at)
        end = at + most if piece is None else at + int(sizes[piece])
        if piece is None:
            ahead = next((place for place in places if at + most // 2 <= place < end), None)
            piece_ahead = None if ahead is None else copies[ahead]
            end = end if ahead is None else ahead
            if complete:
                end = min(end, last)
            if piece_ahead == UNKNOWN or end > last:
                return
        elif piece == UNKNOWN:
            return
        yield Group(at, end, piece)
        at = end
