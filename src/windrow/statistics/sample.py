"""The values of a column at a fixed set of random rows of a file: the same rows for every column, so that they join up.

The rows follow from the content of the file alone, whoever draws them. When files are merged, the sample of the
new file is drawn from those of the old ones: of each as many rows as a draw from all rows would have taken.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from windrow.bounded import memo
from windrow.pruning.bounds import Mask
from windrow.statistics.values import settled_type

__all__ = ["SAMPLE_ROWS", "ColumnSample", "joined_sample", "redrawn", "sample_positions"]

SAMPLE_ROWS = 1024
_LONGEST, _SHORTENED, _MOST_BYTES = 256, 48, 48 * 1024
"""Texts are cut after so many characters, and, where all of them have more bytes than that, after so few."""

Positions = npt.NDArray[np.int64]


@memo("rows of samples", 256)
def sample_positions(draw: bytes, rows: int, count: int = SAMPLE_ROWS) -> Positions:
    """Rows of a file, ascending: all of them, or so many, of which every choice is as likely as any other."""
    if rows <= count:
        return np.arange(rows)
    wanted = 2 * count
    while True:
        drawn = (_random_words(draw, wanted) % np.uint64(rows)).astype(np.int64)
        first = np.unique(drawn, return_index=True)[1]
        if first.size >= count:
            positions: Positions = np.sort(drawn[np.sort(first)[:count]])
            positions.flags.writeable = False
            return positions
        wanted *= 2


def _random_words(draw: bytes, count: int) -> npt.NDArray[np.uint64]:
    """Random numbers that follow from a name alone, in every version of every library; more begin with the fewer."""
    return np.frombuffer(hashlib.shake_256(draw).digest(8 * count), "<u8")


@dataclass(frozen=True, eq=False, slots=True)
class ColumnSample:
    """Values of one column at the rows of a sample."""

    draw: bytes
    """Names the rows; samples of one draw are of the same rows."""
    known: Mask
    """Rows whose value was met."""
    values: pa.Array
    """A value for each row; null where it is null, and where it is not known."""

    @classmethod
    def empty(cls, draw: bytes, kind: pa.DataType, count: int) -> ColumnSample:
        """A sample of a column that nobody has read."""
        return cls(draw, np.zeros(count, bool), pa.nulls(count, settled_type(kind)))

    def with_values(self, places: Positions, values: pa.Array) -> ColumnSample:
        """The same with values of more rows of the sample, which are named by their place in it."""
        if not places.size:
            return self
        known, chosen = self.known.copy(), np.arange(known_size := self.known.size)
        known[places] = True
        chosen[places] = known_size + np.arange(places.size)
        plain = values.dictionary_decode() if types.is_dictionary(values.type) else values
        both = pa.concat_arrays([self.values, _cut(plain).cast(self.values.type)])
        return replace(self, known=known, values=both.take(pa.array(chosen)))

    def union(self, other: ColumnSample) -> ColumnSample:
        """What both know of the same rows; of two draws the one that knows more rows."""
        if self.draw != other.draw or len(self.values) != len(other.values):
            return self if self.known.sum() >= other.known.sum() else other
        places = np.flatnonzero(other.known & ~self.known)
        return self.with_values(places, other.values.take(pa.array(places)))


def joined_sample(samples: Mapping[str, ColumnSample]) -> pa.Table | None:
    """The rows that are known of all of these columns; None where the columns were not drawn at the same rows."""
    if len({(sample.draw, sample.known.size) for sample in samples.values()}) != 1:
        return None
    known = np.logical_and.reduce([sample.known for sample in samples.values()])
    return pa.table({name: sample.values for name, sample in samples.items()}).filter(pa.array(known))


def redrawn(parts: Sequence[tuple[int, ColumnSample]], name: bytes, count: int = SAMPLE_ROWS) -> ColumnSample:
    """A sample of several files' rows, from the rows and the sample of each, which are of one type.

    Columns whose samples are of the same rows in each file get the same rows again. Of each file as many rows are drawn
    as a draw from all rows would take; where a sample has not so many, since it was redrawn itself, all get fewer.
    """
    rows = np.array([rows for rows, _ in parts], np.int64)
    sizes = np.array([sample.known.size for _, sample in parts], np.int64)
    draw = _drawn_from(name, [sample.draw for _, sample in parts], sizes)
    random = np.random.Generator(np.random.PCG64(list(draw)))
    counts, wanted = sizes + 1, min(count, int(rows.sum()))
    while (counts > sizes).any():
        counts = random.multivariate_hypergeometric(rows, wanted, method="marginals")
        wanted = wanted * 9 // 10
    chosen = [
        (sample, np.sort(random.permutation(size)[:taken]))
        for (_, sample), size, taken in zip(parts, sizes, counts, strict=True)
        if taken
    ]
    values = [parts[0][1].values[:0], *(sample.values.take(pa.array(places)) for sample, places in chosen)]
    known = [parts[0][1].known[:0], *(sample.known[places] for sample, places in chosen)]
    return ColumnSample(draw, np.concatenate(known), pa.concat_arrays(values))


def _drawn_from(name: bytes, draws: Sequence[bytes], sizes: npt.NDArray[np.int64]) -> bytes:
    return hashlib.blake2b(b"\0".join([name, *draws, sizes.tobytes()]), digest_size=16).digest()


def _cut(values: pa.Array) -> pa.Array:
    """Texts of at most so many characters, fewer where there are many bytes."""
    kind = values.type
    if types.is_string(kind) or types.is_large_string(kind):
        cut = pc.utf8_slice_codeunits
    elif types.is_binary(kind) or types.is_large_binary(kind):
        cut = pc.binary_slice
    else:
        return values
    shorter = cut(values, 0, _LONGEST)
    size = pc.sum(pc.binary_length(shorter)).as_py() or 0
    return shorter if size <= _MOST_BYTES * len(values) // SAMPLE_ROWS else cut(values, 0, _SHORTENED)
