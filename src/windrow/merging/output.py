"""Phase 2: columns go through the order, one at a time, and become chunks of the outputs."""

from __future__ import annotations

import mmap
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windrow.merging.batch import Batch
from windrow.merging.columns import Column, Way
from windrow.merging.order import Merged, MergeOrder
from windrow.merging.verify import EVERY, Witness
from windrow.parquet.chunk_writer import ChunkWriter, EncodedChunk, Pages, granules
from windrow.parquet.file_writer import FileSchema, FileWriter, arrow_chunks
from windrow.parquet.footer import SortingColumn
from windrow.parquet.page_reader import Coded, CodedRows, Fixed

__all__ = ["DEFAULT_LAYOUT", "Layout", "Output", "Summary", "write_segments"]

Longs = npt.NDArray[np.int64]

SHORT_RUNS = 4
"""Where the order jumps after so few rows on average, codes are faster taken row by row than run by run."""


class Layout(NamedTuple):
    """How rows are cut."""

    row_group_rows: int = 128 * 1024
    granule_rows: int = 16 * 1024


DEFAULT_LAYOUT = Layout()
"""How rows are cut unless somebody asks for something else."""


@dataclass(eq=False)
class Summary:
    """What is known of a column of an output without reading it again."""

    nulls: int = 0
    witnesses: list[pa.Array] = field(default_factory=list)
    """Values among which are all distinct ones, or at least the least and the greatest."""


@dataclass(eq=False)
class Output:
    """A file that is being written, in a scratch file until it is complete."""

    schema: FileSchema
    columns: Sequence[Column]
    sorting: Sequence[SortingColumn]
    summarised: frozenset[str]
    sorted_by: frozenset[str]
    summaries: dict[str, Summary] = field(default_factory=dict)
    witnesses: list[Witness] = field(default_factory=list)
    first_keys: dict[str, list[pa.Array]] = field(default_factory=dict)
    """Of each sort column the values that granules begin with."""
    size: int = 0

    def __post_init__(self) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115
        self._writer = FileWriter(self._file, self.schema, self.sorting)
        self._map: mmap.mmap | None = None

    @property
    def rows(self) -> int:
        """How many rows were written."""
        return self._writer.rows

    def append(self, rows: Sequence[int], chunks: Sequence[Sequence[EncodedChunk]]) -> None:
        """Write row groups."""
        for count, group in zip(rows, chunks, strict=True):
            self._writer.append(count, group)

    def witness(self, batch: Batch, order: MergeOrder, bounds: Longs, rows: int) -> None:
        """Note for some of the row groups that are about to be written where their first rows come from."""
        written = self._writer.row_groups
        for number in range(-written % EVERY, bounds.size - 1, EVERY):
            first = int(bounds[number])
            part = order.slice(first, min(first + rows, int(bounds[number + 1])))
            self.witnesses.append(_witness(batch, part, written + number))

    def finish(self, key_value: dict[str, str]) -> memoryview:
        """Complete the file; its bytes, until it is closed."""
        self.size = self._writer.finish(key_value)
        self._file.flush()
        self._map = mmap.mmap(self._file.fileno(), self.size, access=mmap.ACCESS_READ)
        return memoryview(self._map)

    def close(self) -> None:
        """Drop the scratch file; the bytes that `finish` gave go when nobody looks at them any more."""
        self._map = None
        self._file.close()


class Segment(NamedTuple):
    """Rows of the order that go to an output, from one place to another."""

    output: Output
    first: int
    last: int


def write_segments(
    batch: Batch,
    merged: Merged,
    order: MergeOrder,
    segments: Sequence[Segment],
    layout: Layout,
    held: dict[int, Any],
    prefix: frozenset[int],
) -> None:
    """Send all columns of a batch through the order; `held` are those read for it, `prefix` its keys but the last."""
    orders = [order.slice(segment.first, segment.last) for segment in segments]
    groups = [granules(segment.last - segment.first, layout.row_group_rows) for segment in segments]
    chunks: list[list[list[EncodedChunk]]] = [[[] for _ in bounds[1:]] for bounds in groups]
    for number, column in enumerate(batch.source.columns):
        values = held.pop(number) if number in held else batch.values(number)
        cursors = _cursors(values, batch)
        for segment, part, bounds, target in zip(segments, orders, groups, chunks, strict=True):
            if number in prefix and isinstance(values, Coded | CodedRows):
                gathered: Any = _by_group(values, merged, segment)
            else:
                gathered = _gather(values, part, cursors)
            _summarise(segment.output, column, gathered)
            if column.name in segment.output.sorted_by:
                firsts = np.concatenate(
                    [granules(high - low, layout.granule_rows)[:-1] + low for low, high in pairwise(bounds)]
                )
                segment.output.first_keys.setdefault(column.name, []).append(_taken(gathered, column, firsts))
            for group, encoded in enumerate(_encode(gathered, column, bounds, layout, batch)):
                target[group].extend(encoded)
        del values
    for segment, part, bounds, target in zip(segments, orders, groups, chunks, strict=True):
        segment.output.witness(batch, part, bounds, layout.granule_rows)
        segment.output.append(np.diff(bounds).tolist(), target)


def _witness(batch: Batch, order: MergeOrder, group: int) -> Witness:
    """Those rows of the order that come from the piece which gives most of them."""
    counts = np.array([piece.last - piece.first for piece in batch.pieces], np.int64)
    ends = np.cumsum(counts)
    rows = order.indices
    owners = np.searchsorted(ends, rows, side="right")
    most = int(np.bincount(owners).argmax())
    places = np.flatnonzero(owners == most)
    piece = batch.pieces[most]
    return Witness(group, piece.input, piece.group, places, rows[places] - int(ends[most] - counts[most]) + piece.first)


def _by_group(values: Coded | CodedRows, merged: Merged, segment: Segment) -> Coded:
    """A key column, straight from the order: it has one value in each group."""
    low = np.searchsorted(merged.group_ends, segment.first, side="right")
    high = np.searchsorted(merged.group_ends, segment.last, side="left")
    rows, ends = merged.group_rows[low : high + 1], merged.group_ends[low : high + 1]
    codes = _codes_at(values, rows)
    ends = np.minimum(ends, segment.last) - segment.first
    last = np.append(codes[1:] != codes[:-1], True)
    return Coded(codes[last], ends[last], values.texts)


def _codes_at(values: Coded | CodedRows, rows: npt.NDArray[Any]) -> npt.NDArray[np.int32]:
    """The codes of some rows."""
    places = rows if isinstance(values, CodedRows) else np.searchsorted(values.ends, rows, side="right")
    return np.asarray(values.codes[places])


def _cursors(values: Any, batch: Batch) -> Longs:
    """For a column of runs, the run in which each input begins; gathering moves them on."""
    rows = np.zeros(len(batch.source.inputs), np.int64)
    for piece in batch.pieces:
        rows[piece.input] += piece.last - piece.first
    return np.searchsorted(values.ends, np.cumsum(rows) - rows, side="right") if isinstance(values, Coded) else rows


def _gather(values: Any, order: MergeOrder, cursors: Longs) -> Any:
    """The values in their order."""
    if isinstance(values, Fixed):
        return Fixed(
            _gather_fixed(values.values, order), None if values.valid is None else _gather_fixed(values.valid, order)
        )
    if isinstance(values, Coded | CodedRows):
        return _gather_codes(values, order, cursors)
    return values.take(pa.array(order.indices))


def _gather_codes(values: Coded | CodedRows, order: MergeOrder, cursors: Longs) -> Coded:
    from windrow.kernels import runs

    scattered = isinstance(values, CodedRows) or order.rows < SHORT_RUNS * order.starts.size
    most = order.rows if isinstance(values, CodedRows) else min(order.rows, order.starts.size + values.ends.size)
    codes, ends = np.empty(most, np.int32), np.empty(most, np.int64)
    if not scattered and isinstance(values, Coded):
        count = runs.gather_codes(
            order.starts, order.lengths, order.inputs, cursors, values.codes, values.ends, codes, ends
        )
    else:
        by_row = values.codes
        if isinstance(values, Coded):
            by_row = np.repeat(values.codes, np.diff(values.ends, prepend=0))
        if order.counts is None:
            count = runs.take_codes(order.starts, by_row, codes, ends)
        else:
            count = runs.gather_rows(order.starts, order.counts, by_row, codes, ends)
    return Coded(codes[:count], ends[:count], values.texts)


def _gather_fixed(values: npt.NDArray[Any], order: MergeOrder) -> npt.NDArray[Any]:
    from windrow.kernels.runs import gather_fixed, take_fixed

    out = np.empty(order.rows, values.dtype)
    if order.counts is None:
        take_fixed(order.starts, values, out)
    else:
        gather_fixed(order.starts, order.counts, values, out)
    return out


def _encode(values: Any, column: Column, bounds: Longs, layout: Layout, batch: Batch) -> list[list[EncodedChunk]]:
    """The chunks of each row group."""
    if column.way is Way.ARROW:
        return arrow_chunks(values, column.field, np.diff(bounds).tolist(), layout.granule_rows)
    leaf = column.leaves[0]
    writer = ChunkWriter(
        leaf.path,
        int(leaf.element.physical_type or 0),
        bool(leaf.max_definition),
        column.dtype,
        batch.source.executor,
        batch.source.threads,
    )
    write = writer.coded if column.way is Way.CODED else writer.fixed
    return [[chunk] for chunk in write(values, Pages.of(np.diff(bounds).tolist(), layout.granule_rows))]


def _taken(values: Any, column: Column, rows: Longs) -> pa.Array:
    """Some rows of a column as Arrow values."""
    kind = column.field.type
    if isinstance(values, Coded):
        codes = _codes_at(values, rows)
        return values.texts.take(pa.array(codes, mask=codes < 0)).cast(kind)
    if isinstance(values, Fixed):
        return _as_arrow(values.values[rows].view(column.dtype or values.values.dtype), kind, values.valid, rows)
    return values.take(pa.array(rows)).combine_chunks()


def _as_arrow(
    numbers: npt.NDArray[Any], kind: pa.DataType, valid: npt.NDArray[np.uint8] | None, rows: Longs
) -> pa.Array:
    plain = pa.array(numbers, mask=None if valid is None else valid[rows] == 0)
    return plain.cast(kind) if pa.types.is_integer(kind) or pa.types.is_floating(kind) else plain.view(kind)


def _summarise(output: Output, column: Column, values: Any) -> None:
    if column.name not in output.summarised:
        return
    summary = output.summaries.setdefault(column.name, Summary())
    if isinstance(values, Coded):
        lengths = np.diff(values.ends, prepend=0)
        summary.nulls += int(lengths[values.codes < 0].sum())
        used = np.unique(values.codes)
        summary.witnesses.append(values.texts.take(pa.array(used[used >= 0])).cast(column.field.type))
    elif isinstance(values, Fixed):
        known = values.values if values.valid is None else values.values[values.valid != 0]
        summary.nulls += values.values.size - known.size
        summary.witnesses.append(_extremes(known.view(column.dtype or known.dtype), column.field.type))
    else:
        summary.nulls += values.null_count
        summary.witnesses.extend(values.unique().chunks if hasattr(values.unique(), "chunks") else [values.unique()])


def _extremes(numbers: npt.NDArray[Any], kind: pa.DataType) -> pa.Array:
    """The least and the greatest number as values of a type."""
    if not numbers.size:
        return pa.nulls(0, kind)
    least, most = (np.fmin, np.fmax) if numbers.dtype.kind == "f" else (np.minimum, np.maximum)
    ends = np.array([least.reduce(numbers), most.reduce(numbers)], numbers.dtype)
    return _as_arrow(ends, kind, None, np.arange(2))
