"""What a query gives, written: a table for people, CSV, JSON or Parquet for programs.

All but the table are written batch by batch, so that an answer need not fit in memory.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import click

from windrow.cli.invocation import Invocation
from windrow.cli.output import to_json
from windrow.cli.text import literal, table
from windrow.errors import InvalidInput, WindrowError

if TYPE_CHECKING:
    import pyarrow as pa

    from windrow.engines.answer import Answer
    from windrow.lake import Lake

__all__ = [
    "MOST_SHOWN",
    "Format",
    "Shown",
    "chosen_format",
    "explained",
    "format_of",
    "is_explain",
    "shown",
    "shown_answer",
    "write",
    "write_answered",
    "written_aside",
]

MOST_SHOWN = 100
"""Rows that a terminal gets; a pipe gets all."""
_MOST_LETTERS = 60
"""Letters of a cell on a terminal."""
_ROW_GROUP = 64 * 2**20
"""Bytes in memory of what becomes a row group of Parquet."""


class Format(StrEnum):
    """What is written."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"
    PARQUET = "parquet"


def format_of(path: str | None) -> Format:
    """Return the format that the name of a file asks for; a table, when it asks for none."""
    ending = "" if path is None else Path(path).suffix.lower().removeprefix(".")
    return Format(ending) if ending in tuple(Format) else Format.TABLE


def chosen_format(invocation: Invocation, form: str | None, output: str | None) -> Format:
    """Return the format of the option, or the one that the output has; raise where they differ."""
    if form is None:
        return Format.JSON if invocation.is_json and output is None else format_of(output)
    chosen = Format(form)
    if output is None and invocation.is_json and chosen is not Format.JSON:
        raise click.UsageError(f"--json and --format {chosen} ask for two things; give one of them, or --output too")
    if output is None and chosen is Format.PARQUET and sys.stdout.isatty():
        raise click.UsageError("Parquet is nothing for a terminal; name a file with --output, or pipe it on")
    return chosen


class Shown:
    """A table of the first rows, and how many there are."""

    def __init__(self, names: Sequence[str], rows: list[dict[str, Any]], count: int) -> None:
        self.names, self.rows, self.count = names, rows, count

    def text(self, *, short: bool) -> str:
        """Return the table; `short` cuts what is long."""
        return table(self.rows, self.names, _short if short else literal)

    @property
    def counted(self) -> str:
        """How many rows there are, in words."""
        left_out = "" if len(self.rows) == self.count else f", the first {len(self.rows):,} shown"
        return f"{self.count:,} {'row' if self.count == 1 else 'rows'}{left_out}"


def shown(batches: pa.RecordBatchReader, most: int | None) -> Shown:
    """Take so many rows of an answer to show, and count the rest."""
    rows: list[dict[str, Any]] = []
    count = 0
    for batch in batches:
        room = batch.num_rows if most is None else max(most - len(rows), 0)
        rows += _rows(batch.slice(0, room))
        count += batch.num_rows
    return Shown(batches.schema.names, rows, count)


def shown_answer(answer: Answer, most: int | None) -> Shown:
    """Take so many rows of an answer that is there, to show them."""
    rows = _rows_of(answer)
    return Shown(answer.names, rows if most is None else rows[:most], len(rows))


def _rows_of(answer: Answer) -> list[dict[str, Any]]:
    if answer.is_plain:
        return answer.to_dict()
    return [row for batch in answer.table.to_batches() for row in _rows(batch)]


def _short(name: str, value: Any) -> str:
    text = literal(name, value)
    return text if len(text) <= _MOST_LETTERS else text[: _MOST_LETTERS - 1] + "…"


def _rows(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    """Rows as Python values; times that Python's calendar does not reach are text."""
    columns = [_values(column) for column in batch.columns]
    return [dict(zip(batch.schema.names, row, strict=True)) for row in zip(*columns, strict=True)]


def _values(column: pa.Array) -> list[Any]:
    import pyarrow as pa

    try:
        return list(column.to_pylist())
    except (OverflowError, ValueError):
        return list(column.cast(pa.string()).to_pylist())


def is_explain(query: str) -> bool:
    """Whether a query begins with EXPLAIN, so that its answer is text for people."""
    if "explain" not in query.lower():
        return False
    from windrow.engines.duckdb.explaining import explain_request

    return explain_request(query) is not None


def explained(lake: Lake, query: str) -> tuple[dict[str, Any], str]:
    """Return what a query would read, and why, for programs and for people."""
    explanation = lake.explain(query)
    return explanation.to_dict(), str(explanation)


def _write_table(batches: pa.RecordBatchReader, sink: BinaryIO) -> int:
    return _write_shown(shown(batches, None), sink)


def _write_shown(rows: Shown, sink: BinaryIO) -> int:
    sink.write((rows.text(short=False) + "\n").encode())
    return rows.count


def _write_csv(batches: pa.RecordBatchReader, sink: BinaryIO) -> int:
    """Null is nothing between two commas, and an empty text is ""; nested values are JSON, bytes hexadecimal digits."""
    import pyarrow as pa
    from pyarrow.csv import CSVWriter

    turned = [_as_text(each.type) for each in batches.schema]
    schema = pa.schema(
        [
            each if turn is None else pa.field(each.name, pa.string())
            for each, turn in zip(batches.schema, turned, strict=True)
        ]
    )
    count = 0
    with CSVWriter(sink, schema) as writer:
        for batch in batches:
            columns = [
                column if turn is None else pa.array(map(turn, _values(column)), pa.string())
                for column, turn in zip(batch.columns, turned, strict=True)
            ]
            writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=schema))
            count += batch.num_rows
    return count


def _as_text(kind: pa.DataType) -> Callable[[Any], str | None] | None:
    """How values of a type become text in CSV; None when they are written as they are."""
    from pyarrow import types

    if types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind):
        return lambda value: None if value is None else value.hex()
    if types.is_nested(kind):
        return lambda value: None if value is None else to_json(value, indent=None)
    if types.is_string_view(kind) or types.is_binary_view(kind) or types.is_interval(kind):
        return lambda value: None if value is None else str(value)
    return None


def _write_json(pieces: Iterable[Sequence[dict[str, Any]]], sink: BinaryIO) -> int:
    """A list with one object to a line."""
    count = 0
    sink.write(b"[")
    for rows in pieces:
        lines = [to_json(row, indent=None) for row in rows]
        start = ",\n" if count else "\n"
        sink.write((start + ",\n".join(lines)).encode() if lines else b"")
        count += len(lines)
    sink.write(b"\n]\n" if count else b"]\n")
    return count


def _write_parquet(batches: pa.RecordBatchReader, sink: BinaryIO) -> int:
    import pyarrow.parquet as pq

    count = 0
    with pq.ParquetWriter(sink, batches.schema, compression="zstd") as writer:
        for rows in _gathered(batches):
            writer.write_table(rows)
            count += rows.num_rows
    return count


def _gathered(batches: pa.RecordBatchReader) -> Iterator[pa.Table]:
    """Batches together until they are worth a row group."""
    import pyarrow as pa

    held: list[pa.RecordBatch] = []
    for batch in batches:
        held.append(batch)
        if sum(each.nbytes for each in held) >= _ROW_GROUP:
            yield pa.Table.from_batches(held)
            held = []
    if held:
        yield pa.Table.from_batches(held)


def write(form: Format, batches: pa.RecordBatchReader, sink: BinaryIO) -> int:
    """Write an answer and return how many rows it has."""
    match form:
        case Format.TABLE:
            return _write_table(batches, sink)
        case Format.CSV:
            return _write_csv(batches, sink)
        case Format.JSON:
            return _write_json(map(_rows, batches), sink)
        case Format.PARQUET:
            return _write_parquet(batches, sink)


def write_answered(form: Format, answer: Answer, sink: BinaryIO) -> None:
    """Write an answer that is there, as a table or as JSON."""
    if form is Format.TABLE:
        _write_shown(shown_answer(answer, None), sink)
    else:
        _write_json([_rows_of(answer)], sink)


@contextmanager
def written_aside(path: str) -> Iterator[BinaryIO]:
    """Give a file that gets its name when the block ends well: nobody ever finds half of an answer under it."""
    aside = Path(path).with_name(f".{Path(path).name}.{os.getpid()}")
    try:
        with aside.open("wb") as sink:
            yield sink
        aside.replace(path)
    except OSError as error:
        # What went wrong may be the query.
        if isinstance(error, BrokenPipeError | WindrowError):
            raise
        raise InvalidInput(
            f"{path} cannot be written: {error.strerror or error}; name another file with --output"
        ) from error
    finally:
        if aside.exists():
            aside.unlink()
