"""Nothing becomes visible before it was compared with what went in.

A sample takes, of every sixteenth row group of an output, the first rows: read by pyarrow they must be sorted, and
those of them that come from one row group of one input must hash to the same sum there and here, read by pyarrow too.
A full comparison takes the sample, and the sums of every column over all rows: of the inputs as they were merged, of
the outputs as they are read back. Every row of the outputs is compared with the row ahead of it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from windrow.errors import Damaged
from windrow.merging.hashing import sum_of_rows
from windrow.merging.inputs import Input
from windrow.merging.readback import ReadBack
from windrow.merging.sums import InputSums
from windrow.model.invariants import require
from windrow.model.numbers import to_arrow
from windrow.model.sort_schema import SortSchema
from windrow.model.widening import plain

__all__ = ["EVERY", "SAMPLED_ROWS", "Witness", "verify_all", "verify_sample"]

EVERY = 16
"""Of so many row groups one is sampled."""
SAMPLED_ROWS = 4096
"""So many of its first rows are looked at."""


class Witness(NamedTuple):
    """Rows of an output's row group that come from one row group of an input: where they are here, and there."""

    output_group: int
    input: int
    input_group: int
    places: npt.NDArray[np.int64]
    rows: npt.NDArray[np.int64]


def verify_sample(
    data: pa.Buffer, witnesses: Sequence[Witness], inputs: Sequence[Input], schema: SortSchema, columns: pa.Schema
) -> None:
    """Compare sampled rows of an output with the inputs they come from."""
    output = _coded(pa.BufferReader(data))
    for witness in witnesses:
        written = _first_rows(output, witness.output_group, int(witness.places.max(initial=-1)) + 1)
        require("MC-3", table=written, schema=schema)
        source = inputs[witness.input]
        read = _first_rows(_reader(source), witness.input_group, int(witness.rows.max(initial=-1)) + 1)
        require(
            "MC-2",
            content_hash_in=_sum(read.take(to_arrow(witness.rows)), columns),
            content_hash_out=_sum(written.take(to_arrow(witness.places)), columns),
        )


def _sum(table: pa.Table, columns: pa.Schema) -> int:
    """The sum over all rows; values of a narrower type count as what they are in the output."""
    kinds = {field.name: field.type for field in columns}
    values = [
        column if plain(column.type) == kinds.get(name, plain(column.type)) else column.cast(kinds[name])
        for name, column in zip(table.column_names, table.columns, strict=True)
    ]
    return sum_of_rows(pa.table(values, table.column_names), columns.names)


def _first_rows(file: pq.ParquetFile, group: int, count: int) -> pa.Table:
    batches, rows = [], 0
    for batch in file.iter_batches(batch_size=max(count, 1), row_groups=[group], use_threads=False):
        batches.append(batch)
        rows += batch.num_rows
        if rows >= count:
            break
    return pa.Table.from_batches(batches, file.schema_arrow).slice(0, count)


def verify_all(
    outputs: Sequence[memoryview],
    sums: InputSums,
    back: ReadBack,
    compared: Collection[str],
) -> None:
    """Compare what columns of all rows sum up to in the inputs and in the outputs, whose order is checked."""
    sums.check_complete()
    for number, data in enumerate(outputs):
        back.read(data, f"output {number} of the merge", sums.inputs[0].store)
    require("MC-1", rows_in=sums.rows, rows_out=back.rows)
    for name in compared:
        require("MC-2", content_hash_in=sums.columns.of(name), content_hash_out=back.sums.of(name), column=name)


def _reader(source: Input) -> pq.ParquetFile:
    try:
        return _coded(source.opened())
    except (pa.ArrowException, OSError) as error:
        raise Damaged(f"{source.key}: cannot be read: {error}; write it again") from error


def _coded(file: pa.NativeFile) -> pq.ParquetFile:
    """A file whose texts are read as codes: each distinct one is hashed and compared once."""
    metadata = pq.read_metadata(file)
    texts = [field.name for field in metadata.schema.to_arrow_schema() if _is_text(field.type)]
    return pq.ParquetFile(file, metadata=metadata, read_dictionary=texts)


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_binary(kind))
