"""What the columns of a merge sum up to: those of the inputs, while they are decoded, and those of the outputs.

A column has a sum by content, which is the same in any order of rows, and one by place, in which the hash of a value is
weighed by the place of its row among all rows of the outputs. The order of a merge says which place a row goes to; that
it takes every row once is checked. So there is one permutation of the rows, the same for all columns: where both sums
are those of the outputs, no value has changed, and none has changed its row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
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
    """The sums of all rows that the inputs have given so far.

    Of a row group that is copied byte by byte only the sort columns are decoded, and summed. Of all its columns the
    bytes are taken down.
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
        done = groups[-1].last
        weights = self._weights(batch, order, done)
        copied = {group.piece: group for group in groups if group.piece is not None}
        rest = _weighed(batch, counts, weights, set(copied)) if copied else None
        # the last who takes the weights may cumulate them where they are
        self._held = _weighed(batch, counts, weights, set())
        self._rest = rest or self._held
        self.copied += (self._copy(batch, group) for group in copied.values())
        self._given += counts
        self.rows += done

    def add(self, name: str, values: Any, *, held: bool) -> None:
        """Add a column: of all rows when it was held for the order, else of those which are not copied."""
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

    def _weights(self, batch: Batch, order: MergeOrder, done: int) -> Words:
        from windrow.kernels.sums import weigh

        weights = np.zeros(batch.rows + 1, np.uint64)
        counts = np.zeros(0, order.starts.dtype) if order.counts is None else order.counts
        if weigh(order.starts, counts, done, self.rows, weights) >= 0:
            raise _not_once()
        return weights

    def _copy(self, batch: Batch, group: Group) -> CopiedGroup:
        number = group.piece or 0
        leaves = self.inputs[batch.pieces[number].input].footer.leaves
        checksums = tuple(crc32(batch.chunk_bytes(number, leaf)) for leaf in range(len(leaves)))
        return CopiedGroup(self.rows + group.first, group.last - group.first, checksums)


def _weighed(batch: Batch, counts: Longs, weights: Words, dropped: set[int]) -> Weighed:
    """The rows of a batch but those of some pieces: the first so many of each input have a weight, and no others."""
    from windrow.kernels.sums import cumulate

    sizes, taken, own = np.zeros(counts.size, np.int64), counts.copy(), [weights[:1]]
    for number, piece in enumerate(batch.pieces):
        rows = piece.last - piece.first
        if number in dropped:
            taken[piece.input] -= rows
        else:
            sizes[piece.input] += rows
            if dropped:
                own.append(weights[batch.starts[number] + 1 : batch.starts[number + 1] + 1])
    firsts = np.cumsum(sizes) - sizes
    cumulated = np.concatenate(own) if dropped else weights
    if cumulate(cumulated, firsts, firsts + taken) >= 0:
        raise _not_once()
    return Weighed(firsts, firsts + taken, cumulated)


def _not_once() -> InvariantViolation:
    return InvariantViolation("MC-2", "the order of the merge does not take every row once; merge again")
