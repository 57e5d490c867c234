"""What the columns of a merge sum up to: those of the inputs, while they are decoded, and those of the outputs.

A column has a sum by content, which is the same in any order of rows, and one by place, in which the hash of a value is
weighed by the place of its row among all rows of the outputs. The order of a merge says which place a row goes to; that
it takes every row once is checked. So there is one permutation of the rows, the same for all columns: where both sums
are those of the outputs, no value has changed, and none has changed its row.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windrow.errors import InvariantViolation
from windrow.merging.batch import Batch
from windrow.merging.copies import Group
from windrow.merging.hashing import column_hashes, text_hashes
from windrow.merging.inputs import Input
from windrow.merging.order import MergeOrder
from windrow.parquet.page_reader import Coded, CodedRows, Fixed

__all__ = ["ColumnSums", "CopiedGroup", "InputSums", "Weighed"]

Longs = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]
_Range = tuple[int, int]

_BY_PLACE = np.zeros(0, np.uint64)
_ALL_SET = np.zeros(0, np.uint8)


class Weighed(NamedTuple):
    """Which rows of a column count, and what those before each row weigh; without weights rows lie at their places."""

    firsts: Longs
    lasts: Longs
    cumulated: Words = _BY_PLACE

    @classmethod
    def rows(cls, *ranges: tuple[int, int]) -> Weighed:
        """Rows of an output, by the ranges in which they follow each other."""
        bounds = np.array(ranges, np.int64).reshape(-1, 2)
        return cls(bounds[:, 0].copy(), bounds[:, 1].copy())


@dataclass(eq=False)
class ColumnSums:
    """The sums of columns by their names: by content, by place, and how many nulls there are."""

    sums: dict[str, Words] = field(default_factory=dict)

    def add(self, name: str, values: Any, weighed: Weighed, place: int = 0) -> None:
        """Add rows of a column, whose places count from one among all rows of the outputs."""
        from windrow.kernels.sums import CONTENT, NULLS, PLACED, sum_codes, sum_runs, sum_values

        firsts, lasts, cumulated = weighed
        own = np.zeros(3, np.uint64)
        if isinstance(values, Coded):
            sum_runs(values.codes, values.ends, text_hashes(values.texts), cumulated, firsts, lasts, own)
        elif isinstance(values, CodedRows):
            sum_codes(values.codes, text_hashes(values.texts), cumulated, firsts, lasts, own)
        else:
            fixed = _as_fixed(values)
            valid = _ALL_SET if fixed.valid is None else fixed.valid
            sum_values(fixed.values, valid, cumulated, firsts, lasts, own)
        # all weights are greater by twice the place
        own[PLACED:NULLS] += own[CONTENT:PLACED] * np.uint64(2 * place)
        total = self.sums.setdefault(name, np.zeros(3, np.uint64))
        total += own

    def of(self, name: str) -> tuple[int, int, int]:
        """The sums of a column; one that has no rows sums up to nothing."""
        content, placed, nulls = self.sums.get(name, np.zeros(3, np.uint64)).tolist()
        return content, placed, nulls


def _as_fixed(values: Fixed | pa.ChunkedArray) -> Fixed:
    """Numbers as they are, anything else as the hashes of its values."""
    if isinstance(values, Fixed):
        return values
    hashes, valid = column_hashes(values)
    return Fixed(hashes, None if valid.all() else valid.view(np.uint8))


class CopiedGroup(NamedTuple):
    """The place of a copied row group among all rows of the outputs, its rows, and checksums of its chunks."""

    place: int
    rows: int
    checksums: tuple[int, ...]


@dataclass(eq=False)
class InputSums:
    """The sums of all rows that the inputs have given so far, but for row groups that are copied byte by byte.

    Of those the bytes are summed, in place of their values.
    """

    inputs: Sequence[Input]
    columns: ColumnSums = field(default_factory=ColumnSums)
    copied: list[CopiedGroup] = field(default_factory=list)
    rows: int = 0
    """How many rows all inputs together have given."""

    def __post_init__(self) -> None:
        self._given = np.zeros(len(self.inputs), np.int64)
        self._held = self._rest = Weighed.rows()

    def start(self, batch: Batch, order: MergeOrder, groups: Sequence[Group], counts: Longs) -> None:
        """Take down which rows a batch gives: the first of its order, by row groups; so many of each input."""
        self._check_pieces(batch)
        copies = {group.piece: group for group in groups if group.piece is not None}
        _check_copies(batch, groups, copies)
        self._held = self._rest = Weighed.rows()
        if len(copies) < len(groups):
            self._weigh(batch, order, groups, _ranges(batch, counts, copies))
        self.copied += (self._copy(batch, group) for group in copies.values())
        self._given += counts
        self.rows += groups[-1].last

    def add(self, name: str, values: Any, *, held: bool) -> None:
        """Add a column, decoded of the whole batch when it was held for the order, else of what is not copied."""
        self.columns.add(name, values, self._held if held else self._rest)

    def check_complete(self) -> None:
        """Refuse a merge that did not take every row of every input."""
        for source, given in zip(self.inputs, self._given.tolist(), strict=True):
            if given != source.rows:
                raise InvariantViolation(
                    "MC-1", f"{source.key} has {source.rows} rows, of which the merge took {given}; merge again"
                )

    def _check_pieces(self, batch: Batch) -> None:
        """Refuse a batch whose pieces do not go on where the last one ended."""
        nexts = self._given.tolist()
        for piece in batch.pieces:
            source = self.inputs[piece.input]
            row = int(source.footer.row_group_rows[: piece.group].sum()) + piece.first
            if row != nexts[piece.input]:
                raise InvariantViolation(
                    "MC-1", f"{source.key}: row {row} is loaded where row {nexts[piece.input]} is next; merge again"
                )
            nexts[piece.input] += piece.last - piece.first

    def _weigh(self, batch: Batch, order: MergeOrder, groups: Sequence[Group], ranges: dict[int, _Range]) -> None:
        """Give all rows their weights but those that are copied."""
        from windrow.kernels.sums import cumulate, weigh

        weights = np.zeros(batch.rows + 1, np.uint64)
        for first, last in _encoded(groups):
            part = order.slice(first, last)
            counts = np.zeros(0, part.starts.dtype) if part.counts is None else part.counts
            if weigh(part.starts, counts, last - first, self.rows + first, weights) >= 0:
                raise _not_once()
        held = Weighed.rows(*ranges.values())._replace(cumulated=weights)
        if cumulate(weights, held.firsts, held.lasts) >= 0:
            raise _not_once()
        self._held, self._rest = held, _without_copies(batch, held, ranges)

    def _copy(self, batch: Batch, group: Group) -> CopiedGroup:
        number = group.piece or 0
        leaves = self.inputs[batch.pieces[number].input].footer.leaves
        checksums = tuple(crc32(batch.chunk_bytes(number, leaf)) for leaf in range(len(leaves)))
        return CopiedGroup(self.rows + group.first, group.last - group.first, checksums)


def _check_copies(batch: Batch, groups: Sequence[Group], copies: Mapping[int, Group]) -> None:
    """Refuse a row group that is copied twice, or not as a whole."""
    whole = all(group.last - group.first == np.diff(batch.starts)[piece] for piece, group in copies.items())
    if not whole or len(copies) != sum(group.piece is not None for group in groups):
        raise _not_once()


def _encoded(groups: Sequence[Group]) -> Iterator[_Range]:
    """The places of row groups that are not copied, those that follow each other as one."""
    for is_copied, part in groupby(groups, lambda group: group.piece is not None):
        if not is_copied:
            first, *_, last = [place for group in part for place in (group.first, group.last)]
            yield first, last


def _ranges(batch: Batch, counts: Longs, copies: Collection[int]) -> dict[int, _Range]:
    """The rows of each piece that are given, but of copied pieces: the first so many of each input."""
    left, ranges = counts.tolist(), {}
    for number, (piece, start) in enumerate(zip(batch.pieces, batch.starts.tolist(), strict=False)):
        rows = min(piece.last - piece.first, left[piece.input])
        left[piece.input] -= rows
        if number not in copies:
            ranges[number] = start, start + rows
    return ranges


def _without_copies(batch: Batch, held: Weighed, ranges: Mapping[int, _Range]) -> Weighed:
    """The same rows where those of copied pieces are not decoded. Rows that are not given weigh nothing."""
    if len(ranges) == len(batch.pieces):
        return held
    pieces = np.array(list(ranges), np.int64)
    sizes = np.diff(batch.starts)[pieces]
    shift = batch.starts[pieces] - (np.cumsum(sizes) - sizes)
    parts = [held.cumulated[batch.starts[number] : batch.starts[number + 1]] for number in ranges]
    return Weighed(held.firsts - shift, held.lasts - shift, np.concatenate([*parts, held.cumulated[-1:]]))


def _not_once() -> InvariantViolation:
    return InvariantViolation("MC-2", "the order of the merge does not take every row once; merge again")
