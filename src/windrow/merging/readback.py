"""Reading the outputs of a merge back, whole: what their columns sum up to, and whether their rows are sorted.

Numbers, and whatever is neither number nor text, are decoded by pyarrow. Texts are decoded into runs by the page reader
that reads the inputs of merges: it shares nothing with the encoder, and pays for runs where pyarrow pays for rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from windrow.errors import InvariantViolation
from windrow.merging.batch import Batch, MergeSource, Piece
from windrow.merging.inputs import Input
from windrow.merging.sums import ColumnSums, CopiedGroup, Weighed
from windrow.merging.united_schema import chunk_table
from windrow.merging.values import values_at
from windrow.model.invariants import require
from windrow.model.numbers import from_arrow, validity
from windrow.model.ordering import packed_keys
from windrow.model.sort_schema import Direction, SortColumn, SortSchema
from windrow.parquet.chunk import chunk_starts
from windrow.parquet.footer import read_footer
from windrow.parquet.page_reader import Coded, CodedRows, Fixed
from windrow.parquet.schema import LogicalType
from windrow.splits.column_plans import ColumnPlan, Way
from windrow.storage import Store, let_go

__all__ = ["Numbers", "ReadBack", "step_back"]

Longs = npt.NDArray[np.int64]
_Group = tuple[int, int]


@dataclass(eq=False)
class ReadBack:
    """Reads the outputs of a merge one behind the other."""

    columns: Sequence[ColumnPlan]
    schema: SortSchema
    copied: Sequence[CopiedGroup]
    rows_at_once: int
    """About so many rows are in memory together."""
    sums: ColumnSums = field(default_factory=ColumnSums)
    rows: int = 0
    """How many rows were read."""
    _last: dict[str, pa.Array] = field(default_factory=dict)
    """The sort columns of the last row that was read."""

    @cached_property
    def _copies(self) -> dict[int, CopiedGroup]:
        return {group.place: group for group in self.copied}

    @cached_property
    def _coded(self) -> list[ColumnPlan]:
        return [column for column in self.columns if column.way is Way.CODED]

    @cached_property
    def _others(self) -> list[ColumnPlan]:
        return [column for column in self.columns if column.way is not Way.CODED]

    @cached_property
    def _nested_texts(self) -> list[str]:
        """The texts inside of nested columns; each distinct one is decoded and hashed once."""
        leaves = [leaf for column in self._others for leaf in column.leaves if len(leaf.path) > 1]
        return [".".join(leaf.path) for leaf in leaves if leaf.element.meaning == LogicalType("STRING")]

    def read(self, data: Any, name: str, store: Store) -> None:
        """Read an output; refuse it when its rows are not sorted, or a row group that was copied is not the same."""
        written = Input(store, name, len(data), None, data, read_footer(data, name=name))
        file = pq.ParquetFile(pa.BufferReader(pa.py_buffer(data)), read_dictionary=self._nested_texts)
        for slab, copies in self._slabs(written):
            if copies:
                self._compare_copies(file, written, slab, copies)
            else:
                self._read_slab(file, written, slab)
            self.rows += sum(rows for _, rows in slab)
            let_go(data)

    def _slabs(self, written: Input) -> Iterator[tuple[list[_Group], list[CopiedGroup]]]:
        """Row groups that are read together, with their rows; those that were copied stand apart, with what they are.

        Row groups without rows are left out.
        """
        place, chosen, copies = self.rows, list[_Group](), list[CopiedGroup]()
        for group in enumerate(written.footer.row_group_rows.tolist()):
            copied, rows = self._copies.get(place), group[1]
            is_copy = copied is not None and copied.rows == rows
            full = not copies and sum(rows for _, rows in chosen) + rows > self.rows_at_once
            if chosen and (full or is_copy != bool(copies)):
                yield chosen, copies
                chosen, copies = [], []
            if rows:
                chosen.append(group)
                copies += [copied] if copied is not None and is_copy else []
            place += rows
        if chosen:
            yield chosen, copies

    def _read_slab(self, file: pq.ParquetFile, written: Input, slab: Sequence[_Group]) -> None:
        keys = self._read_texts(_batch(written, self._coded, [(group, 0, rows) for group, rows in slab]))
        keys |= self._read_others(file, slab)
        self._check_order(written.key, keys)

    def _compare_copies(
        self, file: pq.ParquetFile, written: Input, slab: Sequence[_Group], copies: Sequence[CopiedGroup]
    ) -> None:
        """Compare the bytes of copied row groups; they are sorted as in the input, so only their ends are decoded."""
        for (group, _), copied in zip(slab, copies, strict=True):
            _check_copy(written, group, copied)
        columns = [column for column in self.columns if self._is_key(column)]
        ends = [end for group, rows in slab for end in ((group, 0, 1), (group, rows - 1, rows))]
        batch, keys, rows = _batch(written, columns, ends), dict[str, Any](), np.arange(len(ends))
        for number, column in enumerate(columns):
            values = batch.values(number)
            if column.way is not Way.CODED:
                kind = file.schema_arrow.field(column.name).type
                values = pa.chunked_array([values_at(values, column, rows).cast(kind)])
            keys[column.name] = values
        self._check_order(written.key, keys)

    def _is_key(self, column: ColumnPlan) -> bool:
        return column.name in self.schema.column_names

    def _read_texts(self, batch: Batch) -> dict[str, Any]:
        """Add all columns of texts; those that rows are sorted by."""
        keys, everything = {}, Weighed.rows((0, batch.rows))
        for number, column in enumerate(self._coded):
            values = batch.values(number)
            self.sums.add(column.name, values, everything, self.rows)
            if self._is_key(column):
                keys[column.name] = values
        return keys

    def _read_others(self, file: pq.ParquetFile, slab: Sequence[_Group]) -> dict[str, Any]:
        """Add all other columns; those that rows are sorted by."""
        keys: dict[str, list[pa.ChunkedArray]] = {column.name: [] for column in self._others if self._is_key(column)}
        last, place = Steps(self.schema.columns[-1].direction), self.rows
        for group, rows in slab:
            table = file.read_row_group(group, columns=[column.name for column in self._others], use_threads=False)
            for column in self._others:
                values = table.column(column.name)
                own = _bits(values, column) if column.way is Way.FIXED else values
                self.sums.add(column.name, own, Weighed.rows((0, rows)), place)
                # times are many: only what the order of rows hangs on is held of them
                if column.name in keys and not (column.name == self.schema.columns[-1].name and last.add(values)):
                    keys[column.name].append(values)
            place += rows
        joined: dict[str, Any] = {name: _joined(parts) for name, parts in keys.items() if parts}
        name = self.schema.columns[-1].name
        if last.parts and name in joined:
            groups = [group for group, _ in slab]
            joined[name] = file.read_row_groups(groups, columns=[name], use_threads=False).column(name)
        elif last.parts:
            joined[name] = last
        return joined

    def _check_order(self, name: str, keys: dict[str, Any]) -> None:
        sorting = [(column, keys[column.name]) for column in self.schema.columns if column.name in keys]
        rows = {column.name: (_row(values, 0), _row(values, -1)) for column, values in sorting}
        if self._last:
            border = {each: pa.concat_arrays([self._last[each], first]) for each, (first, _) in rows.items()}
            require("MC-3", table=pa.table(border), schema=self.schema)
        self._last = {each: last for each, (_, last) in rows.items()}
        back = step_back([(_numbers(values, column), column.direction) for column, values in sorting])
        if back is not None:
            raise InvariantViolation(
                "MC-3",
                f"{name}: row {self.rows + back} of the outputs must come before the row ahead of it; merge again",
            )


def _batch(written: Input, columns: Sequence[ColumnPlan], rows: Sequence[tuple[int, int, int]]) -> Batch:
    """Rows of a file, by row group, first and last."""
    return Batch(MergeSource([written], columns, *chunk_table([written], columns)), [Piece(0, *each) for each in rows])


def _check_copy(written: Input, group: int, copied: CopiedGroup) -> None:
    chunks = written.footer.chunks[group]
    starts, sizes = chunk_starts(chunks).tolist(), chunks["total_compressed_size"].tolist()
    for leaf, start, size, checksum in zip(written.footer.leaves, starts, sizes, copied.checksums, strict=True):
        if crc32(written.tail[start : start + size]) != checksum:
            raise InvariantViolation(
                "MC-2",
                f"{written.key}: row group {group} was copied, but the bytes of column {'.'.join(leaf.path)!r} "
                "are not those of the input; merge again",
            )


def _bits(values: pa.ChunkedArray, column: ColumnPlan) -> Fixed:
    """The numbers as they are stored."""
    kind = stored_type(column)
    if values.type != kind:
        values = values.cast(kind)
    chunk = values.chunk(0) if values.num_chunks == 1 else values.combine_chunks()
    valid = validity(chunk).view(np.uint8) if chunk.null_count else None
    return Fixed(from_arrow(chunk, f"u{kind.bit_width // 8}"), valid)


def stored_type(column: ColumnPlan) -> pa.DataType:
    """The type of a number that has the width, and the unit, which it has in a file."""
    kind = column.field.type
    if pa.types.is_integer(kind) and kind.bit_width < 32:
        return pa.uint32() if pa.types.is_unsigned_integer(kind) else pa.int32()
    if pa.types.is_timestamp(kind) and kind.unit == "s":
        return pa.timestamp("ms", kind.tz)
    return pa.time32("ms") if kind == pa.time32("s") else kind


def _row(values: Any, number: int) -> pa.Array:
    """The first row of a sort column, or its last."""
    if isinstance(values, Coded | CodedRows):
        code = int(values.codes[number])
        return values.texts.slice(code, 1) if code >= 0 else pa.nulls(1, values.texts.type)
    if isinstance(values, Steps):
        return values.ends[number]
    return values.slice(number % len(values), 1).combine_chunks()


def _joined(parts: Sequence[pa.ChunkedArray]) -> pa.ChunkedArray:
    return pa.chunked_array([chunk for part in parts for chunk in part.chunks])


def _is_whole(kind: pa.DataType) -> bool:
    """Whether values of a type compare as the numbers they are stored as."""
    return bool(pa.types.is_integer(kind) or pa.types.is_timestamp(kind))


def _whole(values: pa.Array) -> npt.NDArray[Any]:
    sign = "u" if pa.types.is_unsigned_integer(values.type) else "i"
    return from_arrow(values, f"{sign}{values.type.bit_width // 8}")


def _down(before: npt.NDArray[Any], behind: npt.NDArray[Any], direction: Direction) -> Longs:
    return np.flatnonzero(behind < before if direction is Direction.ASCENDING else behind > before)


@dataclass(eq=False)
class Steps:
    """The rows at which the last sort column steps back, collected on the way: whole numbers, none of them null."""

    direction: Direction
    parts: list[Longs] = field(default_factory=list)
    ends: list[pa.Array] = field(default_factory=list)
    """The first row and the last."""
    rows: int = 0

    def add(self, values: pa.ChunkedArray) -> bool:
        """Take the next rows, if they can be taken."""
        if values.null_count or not _is_whole(values.type):
            return False
        for chunk in values.chunks:
            if not len(chunk):
                continue
            numbers = _whole(chunk)
            first = chunk.slice(0, 1)
            before = _whole(self.ends[-1]) if self.ends else numbers[:1]
            self.parts += [
                _down(before, numbers[:1], self.direction) + self.rows,
                _down(numbers[:-1], numbers[1:], self.direction) + self.rows + 1,
            ]
            # a copy: a slice would hold all of the rows
            last = pa.concat_arrays([chunk.slice(len(chunk) - 1)])
            self.ends = [self.ends[0] if self.ends else pa.concat_arrays([first]), last]
            self.rows += len(chunk)
        return True

    def steps(self, _direction: Direction) -> Longs:
        """The rows whose number comes before that of the row ahead of them."""
        return np.concatenate(self.parts)

    def ties(self, rows: Longs) -> npt.NDArray[np.bool_]:
        """Nothing is less significant than the last sort column."""
        return np.zeros(rows.size, np.bool_)


class Numbers(NamedTuple):
    """Numbers that compare as the values of a column, null highest: of runs that end before `ends`, or of each row."""

    numbers: npt.NDArray[Any]
    ends: Longs | None = None

    def steps(self, direction: Direction) -> Longs:
        """The rows whose number comes before that of the row ahead of them."""
        places = _down(self.numbers[:-1], self.numbers[1:], direction)
        # a run begins where the one ahead of it ends
        return places + 1 if self.ends is None else self.ends[places]

    def ties(self, rows: Longs) -> npt.NDArray[np.bool_]:
        """Which of some rows, not the first, have the same number as the row ahead of them."""
        if self.ends is None:
            return np.asarray(self.numbers[rows] == self.numbers[rows - 1])
        return np.asarray(self.ends[np.searchsorted(self.ends, rows)] != rows)


def _numbers(values: Any, column: SortColumn) -> Numbers | Steps:
    if isinstance(values, Steps):
        return values
    if isinstance(values, Coded | CodedRows):
        codes = np.where(values.codes < 0, np.int32(len(values.texts)), values.codes)
        return Numbers(codes, values.ends if isinstance(values, Coded) else None)
    if not values.null_count and _is_whole(values.type):
        return Numbers(np.concatenate([_whole(chunk) for chunk in values.chunks]))
    ascending = SortSchema((SortColumn(column.name, Direction.ASCENDING),))
    (numbers,) = packed_keys(pa.table({column.name: values}), ascending)
    return Numbers(numbers)


def step_back(keys: Sequence[tuple[Numbers | Steps, Direction]]) -> int | None:
    """The first row whose keys, the most significant first, come before those of the row ahead of it; None if none."""
    back = np.zeros(0, np.int64)
    for numbers, direction in reversed(keys):
        back = np.concatenate([numbers.steps(direction), back[numbers.ties(back)]])
    return int(back.min()) if back.size else None
