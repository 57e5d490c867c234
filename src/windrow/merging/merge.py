"""N sorted files become M sorted files with the same rows, in bounded memory.

Row groups are loaded in batches. Of a batch all rows are written that come before anything which is not loaded yet, up
to the end of a row group; the others wait for the next batch. What is written depends on the rows alone, so that any
budget gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice, pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from windrow.merging.batch import COPIES, KEY_AND_PLACE, Batch, MergeSource, Piece
from windrow.merging.copies import Copies, row_groups
from windrow.merging.cuts import Cuts
from windrow.merging.inputs import Input
from windrow.merging.order import Merged, key_of, merge_order
from windrow.merging.output import DEFAULT_LAYOUT, Layout, Output, Segment, write_segments
from windrow.merging.sums import InputSums
from windrow.merging.united_schema import chunk_table, united_schema, with_field_ids
from windrow.model.sort_schema import Direction, SortColumn, SortSchema
from windrow.parquet.file_writer import FileSchema
from windrow.parquet.footer import SortingColumn
from windrow.splits.column_plans import ColumnPlan, Way, created_by, plan_columns

__all__ = ["DEFAULT_OPTIONS", "Merge", "MergeOptions"]

LEAST_ROWS = 256 * 1024
"""A batch has so many rows whatever the budget: with fewer, hardly a row group could be written of any."""
_WORK = 24 * 2**20
"""What a merge takes besides its rows: pages that are being written, and what libraries hold."""
NOTHING = (-1, -1)
"""A key below all others: an input without loaded rows lets nothing pass."""


@dataclass(frozen=True, slots=True)
class MergeOptions:
    """How a merge is done; none of it changes the rows."""

    outputs: int = 1
    """How many files to aim at; fewer come out when there are fewer series, unless rows are sorted by time first."""
    memory_budget: int = 512 * 2**20
    """Bytes that a batch should take; one of `LEAST_ROWS` is always loaded."""
    threads: int = 1
    """How many requests are made at once where a store is slow to answer; all else is done by one thread."""
    plain: bool = False
    """Read, gather and write all columns by pyarrow."""
    layout: Layout = DEFAULT_LAYOUT
    bloom_filters: tuple[str, ...] = ()
    """The columns that get a bloom filter in every row group, as far as their types have one."""
    sums: bool = False
    """Whether the contents of the inputs are summed up, for a comparison of all rows with the outputs."""


DEFAULT_OPTIONS = MergeOptions()
"""How a merge is done unless somebody asks for something else."""


@dataclass(eq=False)
class Merge:
    """A merge in progress."""

    inputs: Sequence[Input]
    schema: SortSchema
    file_schema: FileSchema
    columns: Sequence[ColumnPlan]
    source: MergeSource
    options: MergeOptions
    timestamp: str = "timestamp"
    outputs: list[Output] = field(default_factory=list)
    sums: InputSums | None = None
    """What the inputs sum up to, where that is wanted."""
    rows_at_once: int = LEAST_ROWS
    """How many rows should be in memory together, by what rows took so far."""
    _closed: bool = True
    _waiting: set[int] = field(default_factory=set)
    """Inputs whose rows come behind what is being written."""
    _patient: bool = True
    """Whether inputs may be left out that seem far behind; not after a batch that let no row pass."""

    @classmethod
    def of(
        cls,
        inputs: Sequence[Input],
        schema: SortSchema,
        options: MergeOptions,
        *,
        timestamp: str = "timestamp",
        field_ids: Mapping[str, int] | None = None,
    ) -> Merge:
        """Plan a merge of inputs that are sorted by the schema; columns keep their field ids unless given others."""
        file_schema = FileSchema(with_field_ids(united_schema(inputs, schema), field_ids or {}), created_by())
        columns = plan_columns(file_schema, plain=options.plain, blooms=options.bloom_filters)
        source = MergeSource(inputs, columns, *chunk_table(inputs, columns))
        sums = InputSums(inputs) if options.sums else None
        return cls(inputs, schema, file_schema, columns, source, options, timestamp, sums=sums)

    def run(self) -> list[Output]:
        """Do all of it; the outputs are complete but for what `Output.finish` adds."""
        cuts = Cuts.of(self.inputs, self.options.outputs, anywhere=self.schema.column_names[0] == self.timestamp)
        at = [(0, 0)] * len(self.inputs)
        row_bytes, failed = self._row_bytes(), 0
        self._patient = sum(source.rows for source in self.inputs) > self._most(row_bytes)
        while any(at[number][0] < source.groups for number, source in enumerate(self.inputs)):
            batch = Batch(self.source, self._choose(at, self._most(row_bytes) << failed))
            done = self._batch(batch, at, cuts)
            failed = 0 if done else failed + 1
            # what values take once they are decoded is not in the footers
            row_bytes = max(row_bytes, batch.row_bytes)
        self.rows_at_once = self._most(row_bytes)
        return self.outputs

    def _row_bytes(self) -> int:
        """What a row takes in memory: its stored bytes, and what it takes while the widest column is moved."""
        rows = max(sum(source.rows for source in self.inputs), 1)
        stored = sum(int(source.footer.chunks["total_compressed_size"].sum()) for source in self.inputs)
        widest = int(self.source.chunks["total_uncompressed_size"].sum(axis=0).max(initial=0))
        return stored // rows + max(KEY_AND_PLACE + COPIES * (widest // rows), self._sampled_row_bytes())

    def _sampled_row_bytes(self) -> int:
        """The same by the columns that pyarrow decodes, of one row group: what these take is not in the footers."""
        largest = max(range(len(self.inputs)), key=lambda number: self.inputs[number].rows, default=0)
        others = [place for place, column in enumerate(self.columns) if column.way is Way.ARROW]
        few = sum(source.rows for source in self.inputs) <= self.options.layout.row_group_rows
        if few or not others:
            return 0
        sample = Batch(self.source, [Piece(largest, 0, 0, int(self.inputs[largest].footer.row_group_rows[0]))])
        for place in others:
            sample.values(place)
        return sample.row_bytes

    def _most(self, row_bytes: int) -> int:
        """How many rows a batch should have."""
        return max((self.options.memory_budget - _WORK) // row_bytes, self.options.layout.row_group_rows)

    def close(self) -> None:
        """Drop what was written but not stored."""
        for output in self.outputs:
            output.close()

    def _choose(self, at: Sequence[tuple[int, int]], most: int) -> list[Piece]:
        """The rows to load: from each input's next row on, evenly, about so many; of one that waits just the next."""
        chosen: list[Piece] = []
        left = {number: _groups_from(source, *at[number]) for number, source in enumerate(self.inputs)}
        for number in self._waiting | self._far(at):
            chosen += (
                Piece(number, group, first, min(first + 1, last)) for group, first, last in islice(left.pop(number), 1)
            )
        share = self._share(at, left, most)
        if share is not None:
            chosen += (Piece(number, *part) for number in left for part in _parts(left[number], share))
            return sorted(chosen)
        rows, rounds = 0, 0
        while left and (not rows or rows * (1 + 1 / rounds) <= most):
            rounds += 1
            for number in list(left):
                group = next(left[number], None)
                # what is left of a row group may be little, and lets little pass
                if group is not None and _few(*group):
                    chosen.append(Piece(number, *group))
                    group = next(left[number], None)
                if group is None:
                    del left[number]
                    continue
                chosen.append(Piece(number, *group))
                rows += group[2] - group[1]
        return sorted(chosen)

    def _share(self, at: Sequence[tuple[int, int]], numbers: Collection[int], most: int) -> int | None:
        """How many rows of each input are loaded where a row group of each would be too many; None loads whole ones."""
        most = max(most, LEAST_ROWS)
        rows = [self.inputs[number].footer.row_group_rows for number in numbers]
        groups = [int(of[at[number][0]]) for number, of in zip(numbers, rows, strict=True) if at[number][0] < of.size]
        return None if sum(groups) <= most else max(most // len(groups), self.options.layout.granule_rows)

    def _far(self, at: Sequence[tuple[int, int]]) -> set[int]:
        """Inputs whose next rows come behind all next row groups of the others, by what footers tell."""
        first = self._sorting[0][1] if self._sorting else None
        if not self._patient or first is None or first.direction is Direction.DESCENDING:
            return set()
        open_inputs = [number for number, source in enumerate(self.inputs) if at[number][0] < source.groups]
        spans = {number: self.inputs[number].text_bounds(first.name, at[number][0]) for number in open_inputs}
        near: tuple[bytes, bytes] | None = None
        for number in sorted(open_inputs, key=lambda number: (spans[number] or (b"", b""))[0]):
            span = spans[number]
            if span is None or (near is not None and span[0] > near[1]):
                break
            near = span if near is None else (near[0], max(near[1], span[1]))
        else:
            return set()
        return {number for number in open_inputs if near is not None and (spans[number] or near)[0] > near[1]}

    def _batch(self, batch: Batch, at: list[tuple[int, int]], cuts: Cuts) -> int:
        """Write what can be written of a batch; how many rows that was."""
        pieces = batch.pieces
        merged, held = self._order(batch)
        ready = self._ready(merged, pieces)
        everything = ready == batch.rows and self._all_loaded(pieces)
        segments, done = self._segments(batch, merged, ready, cuts, last=everything)
        emitted = merged.order.slice(0, done)
        counts = merged.order.rows_before(done)
        if segments:
            if self.sums is not None:
                groups = [group for segment in segments for group in segment.groups]
                self.sums.start(batch, merged.order, groups, counts)
            # sort columns but the last do not change inside a group of the order
            prefix = frozenset(place for place, _ in self._sorting[:-1])
            write_segments(batch, merged, segments, self.options.layout, held, prefix, self._copies, self.sums)
        cuts.pass_by(emitted)
        for number, count in enumerate(counts.tolist()):
            at[number] = _advanced(self.inputs[number], at[number], count)
        limits = self._limits(merged, pieces)
        next_up = {number for number, limit in limits.items() if limit == min(limits.values())}
        # nobody waits once nothing moves
        self._waiting = set(np.flatnonzero(counts == 0).tolist()) - next_up if done else set()
        self._patient = bool(done)
        return done

    @cached_property
    def _sorting(self) -> list[tuple[int, SortColumn]]:
        """The sort columns that there are, each with its place among all columns."""
        places = {column.name: place for place, column in enumerate(self.columns)}
        return [(places[column.name], column) for column in self.schema.columns if column.name in places]

    def _order(self, batch: Batch) -> tuple[Merged, dict[int, Any]]:
        """The order of a batch, and the columns that were read for it, by their places."""
        places = [place for place, _ in self._sorting]
        held = {place: batch.values(place) for place in places}
        keys = [key_of(held[place], self.columns[place].dtype, column) for place, column in self._sorting]
        names = [column.name for _, column in self._sorting]
        series = names.index(self.timestamp) if self.timestamp in names else max(len(names) - 1, 0)
        return merge_order(
            keys, [source.key for source in self.inputs], self._rows(batch.pieces).tolist(), series
        ), held

    def _rows(self, pieces: Sequence[Piece]) -> npt.NDArray[np.int64]:
        """How many rows of each input are loaded."""
        counts = [piece.last - piece.first for piece in pieces]
        return np.bincount([piece.input for piece in pieces], counts, len(self.inputs)).astype(np.int64)

    def _all_loaded(self, pieces: Sequence[Piece]) -> bool:
        return not list(self._unloaded(pieces))

    def _unloaded(self, pieces: Sequence[Piece]) -> Iterator[int]:
        """The inputs with later rows that are not loaded."""
        last = {piece.input: piece for piece in pieces}
        for number, piece in last.items():
            source = self.inputs[number]
            if piece.group + 1 < source.groups or piece.last < source.footer.row_group_rows[piece.group]:
                yield number

    def _limits(self, merged: Merged, pieces: Sequence[Piece]) -> dict[int, tuple[int, int]]:
        """The key of the last loaded row of each input with more to come."""
        rows, ends = self._rows(pieces), np.cumsum(self._rows(pieces))
        return {
            number: merged.key_at(int(ends[number]) - 1) if rows[number] else NOTHING
            for number in self._unloaded(pieces)
        }

    def _ready(self, merged: Merged, pieces: Sequence[Piece]) -> int:
        """How many rows of the order come before anything that is not loaded."""
        limits = self._limits(merged, pieces)
        return merged.place_of(min(limits.values())) if limits else merged.order.rows

    @cached_property
    def _copies(self) -> Copies:
        blooms = np.array([column.bloom for column in self.columns for _ in column.leaves])
        return Copies(self.file_schema.footer, *self.options.layout, blooms)

    def _segments(
        self, batch: Batch, merged: Merged, ready: int, cuts: Cuts, *, last: bool
    ) -> tuple[list[Segment], int]:
        """Which rows go to which output: whole row groups, but at the end of an output; and how many these are."""
        places, rows = cuts.places(merged, ready), self.options.layout.row_group_rows
        # rows that are copied are read for the order alone
        copyable = not self.options.plain and self.timestamp in self.schema.column_names
        copies = self._copies.pieces(batch, merged, ready) if copyable else {}
        segments, end = [], 0
        for low, high in pairwise([0, *places, ready]):
            complete = last or high in places
            groups = row_groups(copies, batch, low, high, rows, complete=complete)
            if groups:
                segments.append(Segment(self._output(), groups))
                self._closed, end = high in places, groups[-1].last
        return segments, end

    def _output(self) -> Output:
        """The output that rows go to: a new one when there is none, or the last has its share."""
        if self._closed:
            self._closed = False
            self._open()
        return self.outputs[-1]

    def _open(self) -> None:
        first_leaf = {column.name: column.leaves[0].index for column in self.columns}
        sorting = [
            SortingColumn(first_leaf[column.name], down, down)
            for _, column in self._sorting
            for down in [column.direction is Direction.DESCENDING]
        ]
        wanted = frozenset((*self.schema.column_names, self.timestamp))
        sorted_by = frozenset(column.name for _, column in self._sorting)
        self.outputs.append(Output(self.file_schema, self.columns, sorting, wanted, sorted_by))


def _few(_group: int, first: int, last: int) -> bool:
    """Whether less than a quarter of a row group is left."""
    return first > 0 and 4 * (last - first) < last


def _parts(groups: Iterator[tuple[int, int, int]], share: int) -> Iterator[tuple[int, int, int]]:
    """The first rows of row groups, about so many."""
    for group, first, last in groups:
        yield group, first, min(first + share, last)
        share -= last - first
        if share <= 0:
            return


def _groups_from(source: Input, group: int, row: int) -> Iterator[tuple[int, int, int]]:
    """The row groups from a row on: number, first and last row."""
    for number in range(group, source.footer.row_group_rows.size):
        yield number, row if number == group else 0, int(source.footer.row_group_rows[number])


def _advanced(source: Input, at: tuple[int, int], count: int) -> tuple[int, int]:
    """The row that is `count` rows further on."""
    group, row = at
    row += count
    while group < source.footer.row_group_rows.size and row >= source.footer.row_group_rows[group]:
        row -= int(source.footer.row_group_rows[group])
        group += 1
    return group, row
