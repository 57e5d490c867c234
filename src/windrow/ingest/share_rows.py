"""The rows of the files that a task has, in batches: small Parquet files many at once, all others one by one.

Files tell the times of their rows ahead. So a task can tell when it has seen the last row of a window, and write it
at once; files in order of time are written window by window, whatever their number. Where a file tells a wrong time,
a window has two splits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from windrow.errors import WindrowError
from windrow.ingest.files import FileFormat, FilePart, named, read_part, schema_of
from windrow.ingest.parquet_heads import signature_of
from windrow.ingest.parquet_sets import decoded_set, is_decodable
from windrow.model.window import Window
from windrow.parquet.arrow_schema import ARROW_SCHEMA
from windrow.parquet.footer import TAIL_SIZE, ParquetFooter, footer_length
from windrow.parquet.footers import parse_footers

__all__ = ["Progress", "ShareRows"]

_SMALL = 2 * 2**20
"""Files up to so many bytes are read whole."""
_BATCH = 8 * 2**20
_LARGEST_BATCH = 32 * 2**20


class Progress(NamedTuple):
    """How far a task has come in time, in microseconds; None where files do not tell it."""

    latest: int | None = None
    """No row so far is later."""
    later: int | None = None
    """No row to come is earlier."""

    def is_between(self, window: int) -> bool:
        """Whether no row to come lies in a window, of so many seconds, of a row so far."""
        if self.latest is None or self.later is None:
            return False
        return self.later >= (self.latest // (window * 10**6) + 1) * window * 10**6

    def is_behind(self, window: Window) -> bool:
        """Whether no row to come lies in a window."""
        return self.later is not None and not window.overflow and self.later >= window.end * 10**6


class ShareRows:
    """The rows of a share of files."""

    def __init__(self, parts: Sequence[FilePart]) -> None:
        self._parts = parts
        self.progress = Progress()
        """How far the batches up to the last one have come."""

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return self.batches(_BATCH)

    def batches(self, size: int, window: int | None = None) -> Iterator[pa.RecordBatch]:
        """Yield the rows in batches of about so many bytes; they end where a window does, where files tell it."""
        after = _progress_after(self._parts)
        for numbers in _sets(self._parts, after, min(size, _LARGEST_BATCH), window):
            parts = [self._parts[number] for number in numbers]
            for batch, is_last in _with_last(_read(parts)):
                self.progress = after[numbers[-1]] if is_last else Progress()
                yield batch


def _progress_after(parts: Sequence[FilePart]) -> list[Progress]:
    """How far a task has come after each part."""
    latest: list[int | None] = []
    later: list[int | None] = []
    bound = parts[0].times[1] if parts and parts[0].times else None
    for part in parts:
        bound = None if bound is None or part.times is None else max(bound, part.times[1])
        latest.append(bound)
    bound = None
    for place in range(len(parts) - 1, -1, -1):
        later.append(bound)
        times = parts[place].times
        is_unknown = times is None or (bound is None and place < len(parts) - 1)
        bound = None if is_unknown or times is None else times[0] if bound is None else min(bound, times[0])
    return [Progress(*each) for each in zip(latest, reversed(later), strict=True)]


def _sets(parts: Sequence[FilePart], after: Sequence[Progress], size: int, window: int | None) -> Iterator[list[int]]:
    """Yield the numbers of parts that are read together, in their order."""
    together: list[int] = []
    held = 0
    for number, part in enumerate(parts):
        is_small = _is_small(part)
        if together and (not is_small or held + (part.memory or 0) > size):
            yield together
            together, held = [], 0
        together, held = [*together, number], held + (part.memory or 0)
        if not is_small or (window is not None and after[number].is_between(window)):
            yield together
            together, held = [], 0
    if together:
        yield together


def _is_small(part: FilePart) -> bool:
    file = part.file
    is_whole_parquet = file.format is FileFormat.PARQUET and part.row_groups is None and part.memory is not None
    return is_whole_parquet and not (file.is_remote or file.set_aside) and file.size <= _SMALL


def _read(parts: Sequence[FilePart]) -> Iterator[pa.RecordBatch]:
    if not _is_small(parts[0]):
        yield from read_part(parts[0])
        return
    contents = []
    for part in parts:
        with named(part.file):
            contents.append(Path(part.file.name).read_bytes())
    footers = _footers(parts, contents)
    if footers is None:
        for part in parts:
            yield from read_part(part)
        return
    for _, same in groupby(enumerate(map(signature_of, footers)), key=itemgetter(1)):
        numbers = [number for number, _ in same]
        first, last = numbers[0], numbers[-1] + 1
        yield from _read_alike(parts[first:last], contents[first:last], footers[first:last])


def _footers(parts: Sequence[FilePart], contents: Sequence[bytes]) -> list[ParquetFooter] | None:
    """The footers of files; None when one cannot be read, which pyarrow finds words for."""
    names = [part.file.name for part in parts]
    with suppress(WindrowError):
        metadata = [
            content[len(content) - footer_length(content[-TAIL_SIZE:], name) : -TAIL_SIZE]
            for content, name in zip(contents, names, strict=True)
        ]
        return parse_footers(metadata, names, [ARROW_SCHEMA])
    return None


def _read_alike(
    parts: Sequence[FilePart], contents: Sequence[bytes], footers: Sequence[ParquetFooter]
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of files with one schema."""
    if not sum(footer.num_rows for footer in footers):
        return
    schema, batch = schema_of(parts[0].file), None
    if is_decodable(schema, footers[0]):
        starts, size = [], 0
        for content in contents:
            starts.append(size)
            size += len(content)
        batch = decoded_set(b"".join(contents), starts, footers, [part.file.name for part in parts], schema)
    if batch is not None:
        yield batch
        return
    for part in parts:
        yield from read_part(part)


def _with_last(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[pa.RecordBatch, bool]]:
    """Yield batches, and whether each is the last."""
    before = next(batches, None)
    for batch in batches:
        if before is not None:
            yield before, False
        before = batch
    if before is not None:
        yield before, True
