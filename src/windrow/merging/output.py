"""Phase 2: columns go through the order, one at a time, and become chunks of the outputs."""

from __future__ import annotations

import mmap
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windrow.merging.batch import Batch
from windrow.merging.copies import Copies, Group
from windrow.merging.order import Merged, MergeOrder
from windrow.merging.sums import InputSums
from windrow.merging.values import as_arrow, codes_at, values_at
from windrow.merging.verify import EVERY, SAMPLED_ROWS, Witness
from windrow.model.numbers import to_arrow
from windrow.parquet.chunk_writer import EncodedChunk, granules
from windrow.parquet.file_writer import FileSchema, FileWriter
from windrow.parquet.footer import SortingColumn
from windrow.parquet.page_reader import Coded, CodedRows, Fixed
from windrow.splits.column_plans import ColumnPlan, encode
from windrow.splits.layout import GRANULE_ROWS, ROW_GROUP_ROWS

__all__ = ["DEFAULT_LAYOUT", "Layout", "Output", "Summary", "write_segments"]

Longs = npt.NDArray[np.int64]

SHORT_RUNS = 4
"""Where the order jumps after so few rows on average, codes are faster taken row by row than run by run."""


class Layout(NamedTuple):
    """How rows are cut."""

    row_group_rows: int = ROW_GROUP_ROWS
    granule_rows: int = GRANULE_ROWS


DEFAULT_LAYOUT = Layout()
"""How rows are cut unless somebody asks for something else."""


@dataclass(eq=False)
class Summary:
    """Nulls and bounds of a column of an output, collected while it is written."""

    nulls: int = 0
    witnesses: list[pa.Array] = field(default_factory=list)
    """Values among which are all distinct ones, or at least the least and the greatest."""


@dataclass(eq=False)
class Output:
    """A file that is being written, in a scratch file until it is complete."""

    schema: FileSchema
    columns: Sequence[ColumnPlan]
    sorting: Sequence[SortingColumn]
    summarised: frozenset[str]
    sorted_by: frozenset[str]
    summaries: dict[str, Summary] = field(default_factory=dict)
    witnesses: list[Witness] = field(default_factory=list)
    first_keys: dict[str, list[pa.Array]] = field(default_factory=dict)
    """Of each sort column the values that granules begin with."""
    granules: list[int] = field(default_factory=list)
    """How many granules each row group has."""
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

    def witness(self, batch: Batch, order: MergeOrder, groups: Sequence[Group], rows: int) -> None:
        """Note for some of the row groups that are about to be written where their first rows come from."""
        written = self._writer.row_groups
        for number in range(-written % EVERY, len(groups), EVERY):
            first, last, _ = groups[number]
            part = order.slice(first, min(first + rows, last))
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
    """Rows of the order that go to an output, by row groups."""

    output: Output
    groups: Sequence[Group]

    @property
    def first(self) -> int:
        """The place in the order that it begins at."""
        return self.groups[0].first

    @property
    def last(self) -> int:
        """The place in the order that it ends before."""
        return self.groups[-1].last

    @property
    def encoded(self) -> list[int]:
        """The rows of those row groups that are not copied."""
        return [group.last - group.first for group in self.groups if group.piece is None]

    @property
    def copied(self) -> list[Group]:
        """Those row groups that are."""
        return [group for group in self.groups if group.piece is not None]


def write_segments(
    batch: Batch,
    merged: Merged,
    segments: Sequence[Segment],
    layout: Layout,
    held: dict[int, Any],
    prefix: frozenset[int],
    copies: Copies,
    sums: InputSums | None = None,
) -> None:
    """Send all columns of a batch through the order; `held` are those read for it, `prefix` its keys but the last."""
    copied = {group.piece for segment in segments for group in segment.copied if group.piece is not None}
    rest = batch.without(copied) if copied else batch
    orders = [_order(merged.order, segment) for segment in segments]
    bodies = [order.renumbered(batch.starts, rest.starts) for order in orders] if copied else orders
    chunks = [[_copied(batch, group, copies) for group in segment.groups] for segment in segments]
    firsts = [_first_rows(batch, merged.order, segment, layout, copies) for segment in segments]

    def column(number: int) -> list[list[list[EncodedChunk]]]:
        """The chunks of a column: for each segment those of the row groups that are not copied."""
        is_held = number in held
        parts = orders if is_held else bodies
        if not is_held and not any(part.rows for part in parts):
            return [[] for _ in segments]
        values = held.pop(number) if is_held else rest.values(number)
        plan = batch.source.columns[number]
        _sum(sums, plan, values, held=is_held)
        cursors = _cursors(values, batch if is_held else rest)
        made = []
        for segment, part, first in zip(segments, parts, firsts, strict=True):
            gathered: Any = None
            if number in prefix and isinstance(values, Coded | CodedRows) and not segment.copied:
                gathered = _by_group(values, merged, segment)
            elif part.rows:
                gathered = _gather(values, part, cursors)
            encoded = [] if gathered is None else encode(gathered, plan, segment.encoded, layout.granule_rows)
            _note(segment, plan, values, gathered, encoded, first, batch)
            made.append(encoded)
        return made

    for made in map(column, range(len(batch.source.columns))):
        for segment, encoded, target in zip(segments, made, chunks, strict=True):
            fresh = [into for group, into in zip(segment.groups, target, strict=True) if group.piece is None]
            for into, own in zip(fresh, encoded, strict=False):
                into.extend(own)
    for segment, target, first in zip(segments, chunks, firsts, strict=True):
        segment.output.witness(batch, merged.order, segment.groups, SAMPLED_ROWS)
        segment.output.append([group.last - group.first for group in segment.groups], target)
        segment.output.granules.extend(each.size for each in first)


def _sum(sums: InputSums | None, column: ColumnPlan, values: Any, *, held: bool) -> None:
    """Add a column to the sums of the inputs, where these are wanted."""
    if sums is not None:
        sums.add(column.name, values, held=held)


def _order(order: MergeOrder, segment: Segment) -> MergeOrder:
    """The order of the rows of a segment that are not copied."""
    dropped = [(group.first - segment.first, group.last - segment.first) for group in segment.copied]
    return order.slice(segment.first, segment.last).without(dropped)


def _copied(batch: Batch, group: Group, copies: Copies) -> list[EncodedChunk]:
    return [] if group.piece is None else copies.chunks(batch, group.piece)


def _first_rows(batch: Batch, order: MergeOrder, segment: Segment, layout: Layout, copies: Copies) -> list[Longs]:
    """The rows that the granules of each row group begin with."""
    return [
        order.rows_at(group.first + granules(group.last - group.first, layout.granule_rows)[:-1])
        if group.piece is None
        else batch.starts[group.piece] + copies.first_rows(batch, group.piece)
        for group in segment.groups
    ]


def _note(
    segment: Segment,
    column: ColumnPlan,
    values: Any,
    gathered: Any,
    encoded: Sequence[Sequence[EncodedChunk]],
    firsts: Sequence[Longs],
    batch: Batch,
) -> None:
    """Add to the nulls and bounds of a sort column of an output."""
    output = segment.output
    if column.name in output.sorted_by:
        output.first_keys.setdefault(column.name, []).append(values_at(values, column, np.concatenate(firsts)))
    if gathered is not None:
        _summarise(output, column, gathered, [chunk for (chunk, *_) in encoded])
    for group in segment.copied:
        if group.piece is not None:
            _summarise(output, column, _part(values, *batch.starts[group.piece : group.piece + 2].tolist()))


def _part(values: Any, first: int, last: int) -> Any:
    """Some rows of a column that follow each other."""
    if isinstance(values, CodedRows):
        return Coded(values.codes[first:last], np.arange(1, last - first + 1), values.texts)
    if isinstance(values, Fixed):
        return Fixed(values.values[first:last], None if values.valid is None else values.valid[first:last])
    if isinstance(values, Coded):
        low, high = np.searchsorted(values.ends, first, side="right"), np.searchsorted(values.ends, last)
        return Coded(values.codes[low : high + 1], np.minimum(values.ends[low : high + 1], last) - first, values.texts)
    return values.slice(first, last - first)


def _witness(batch: Batch, order: MergeOrder, group: int) -> Witness:
    """Those rows of the order that come from the piece which gives most of them."""
    rows = order.indices
    owners = np.searchsorted(batch.starts, rows, side="right") - 1
    most = int(np.bincount(owners).argmax())
    places = np.flatnonzero(owners == most)
    piece = batch.pieces[most]
    return Witness(group, piece.input, piece.group, places, rows[places] - int(batch.starts[most]) + piece.first)


def _by_group(values: Coded | CodedRows, merged: Merged, segment: Segment) -> Coded:
    """A key column, straight from the order: it has one value in each group."""
    low = np.searchsorted(merged.group_ends, segment.first, side="right")
    high = np.searchsorted(merged.group_ends, segment.last, side="left")
    rows, ends = merged.group_rows[low : high + 1], merged.group_ends[low : high + 1]
    codes = codes_at(values, rows)
    ends = np.minimum(ends, segment.last) - segment.first
    last = np.append(codes[1:] != codes[:-1], True)
    return Coded(codes[last], ends[last], values.texts)


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
    return values.take(to_arrow(order.indices))


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


def _summarise(output: Output, column: ColumnPlan, values: Any, chunks: Sequence[EncodedChunk] = ()) -> None:
    if column.name not in output.summarised:
        return
    summary = output.summaries.setdefault(column.name, Summary())
    if isinstance(values, Coded):
        lengths = np.diff(values.ends, prepend=0)
        summary.nulls += int(lengths[values.codes < 0].sum())
        used = np.unique(values.codes)
        summary.witnesses.append(values.texts.take(to_arrow(used[used >= 0])).cast(column.field.type))
    elif isinstance(values, Fixed) and chunks and column.dtype is not None and column.dtype.kind != "f":
        # bounds of chunks are those of their values, but for numbers that may be none
        summary.nulls += sum(chunk.null_count or 0 for chunk in chunks)
        bounds = b"".join(bound for chunk in chunks for bound in chunk.bounds if bound is not None)
        summary.witnesses.append(_extremes(np.frombuffer(bounds, column.dtype), column.field.type))
    elif isinstance(values, Fixed):
        present = values.values if values.valid is None else values.values[values.valid != 0]
        summary.nulls += values.values.size - present.size
        summary.witnesses.append(_extremes(present.view(column.dtype or present.dtype), column.field.type))
    else:
        summary.nulls += values.null_count
        summary.witnesses.extend(values.unique().chunks if hasattr(values.unique(), "chunks") else [values.unique()])


def _extremes(numbers: npt.NDArray[Any], kind: pa.DataType) -> pa.Array:
    """The least and the greatest number as values of a type."""
    if not numbers.size:
        return pa.nulls(0, kind)
    least, most = (np.fmin, np.fmax) if numbers.dtype.kind == "f" else (np.minimum, np.maximum)
    ends = np.array([least.reduce(numbers), most.reduce(numbers)], numbers.dtype)
    return as_arrow(ends, kind, None, np.arange(2))
