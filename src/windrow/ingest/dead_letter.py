"""Dead letters: rows that an ingest dropped, as they came, in Parquet files of their own.

| column | what it holds |
|---|---|
| `reason` | why the row was dropped |
| `source` | the caller's name of the source |
| `file` | the file that the row comes from, where rows were dropped file by file |
| `arrived_at` | when the batch came |
| `row` | the row itself, a struct of its columns; of a file of text that cannot be read, its line |

The files lie in the table's folder under `_dead_letter`, which engines pass by. They belong to a commit: those that a
published commit names in its summary count, others are orphans like every file of a commit that failed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.parquet as pq

from windrow.ingest.coerce import conflict_of
from windrow.model.widening import plain
from windrow.storage import Store

__all__ = ["FILE", "PROBLEM", "DeadLetters", "Rejected", "set_apart", "together", "write_dead_letters"]

FILE = b"windrow.file"
"""Key of a batch's metadata: the file that it comes from."""
PROBLEM = b"windrow.problem"
"""Key of a batch's metadata: why the rows in it are not rows of the table."""

_LETTER = pa.schema(
    [("reason", pa.string()), ("source", pa.string()), ("file", pa.string()), ("arrived_at", pa.timestamp("us", "UTC"))]
)


@dataclass(frozen=True, slots=True)
class DeadLetters:
    """A file of dead letters."""

    key: str
    rows: int


@dataclass(frozen=True, slots=True)
class Rejected:
    """Rows that were dropped for one reason."""

    reason: str
    rows: pa.Table
    file: str | None = None


def together(rejected: Iterable[Rejected]) -> tuple[Rejected, ...]:
    """Return rows of one reason, file and schema as one, so that they become one file of dead letters."""
    alike: dict[tuple[str, str | None, bytes], list[Rejected]] = {}
    for each in rejected:
        key = each.reason, each.file, each.rows.schema.serialize().to_pybytes()
        alike.setdefault(key, []).append(each)
    return tuple(replace(group[0], rows=pa.concat_tables(one.rows for one in group)) for group in alike.values())


def set_apart(
    batches: Iterable[pa.RecordBatch], types: Mapping[str, pa.DataType], casts: Collection[str] = ()
) -> tuple[list[pa.RecordBatch], list[Rejected]]:
    """Part batches that can have the table's types from those that cannot."""
    fitting: list[pa.RecordBatch] = []
    apart: dict[bytes, list[pa.RecordBatch]] = {}
    for batch in batches:
        fits = PROBLEM not in (batch.schema.metadata or {}) and conflict_of(batch.schema, types, casts) is None
        # Schemas that differ by their metadata alone are equal, but these are of different files.
        (fitting if fits else apart.setdefault(batch.schema.serialize().to_pybytes(), [])).append(batch)
    return fitting, [_rejected(group, types, casts) for group in apart.values()]


def _rejected(batches: list[pa.RecordBatch], types: Mapping[str, pa.DataType], casts: Collection[str]) -> Rejected:
    """Return batches of one schema, which names the file and the problem in its metadata."""
    schema = batches[0].schema
    notes = {key: value.decode() for key, value in (schema.metadata or {}).items()}
    reason = notes.get(PROBLEM) or conflict_of(schema, types, casts) or ""
    return Rejected(reason, pa.Table.from_batches(batches), notes.get(FILE))


def write_dead_letters(store: Store, key: str, rejected: Rejected, source: str, arrived_at: int) -> DeadLetters:
    """Write rejected rows as one file."""
    letter = [rejected.reason, source, rejected.file, arrived_at]
    count = rejected.rows.num_rows
    columns = [pa.repeat(pa.scalar(value, each.type), count) for value, each in zip(letter, _LETTER, strict=True)]
    plainly = pa.schema([(each.name, _kept_as(each.type)) for each in rejected.rows.schema])
    rows = rejected.rows.cast(plainly).combine_chunks().to_struct_array()
    sink = pa.BufferOutputStream()
    pq.write_table(
        pa.table([*columns, rows], [*_LETTER.names, "row"]), sink, compression="zstd", write_page_checksum=True
    )
    store.put(key, memoryview(sink.getvalue()))
    return DeadLetters(key, count)


def _kept_as(kind: pa.DataType) -> pa.DataType:
    """Parquet has no seconds and no dates of 64 bits; what is wrong may be that no other unit can count them."""
    kind = plain(kind)
    is_lacking = pa.types.is_date64(kind) or (pa.types.is_timestamp(kind) and kind.unit == "s")
    return pa.int64() if is_lacking else kind
