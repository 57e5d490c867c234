"""Gathering rows by tenant and window before they are written, where each task writing for itself would make too many
files; and the decision whether it would.

What Spark moves are not rows but pieces: the rows of one tenant and window that one task read, as Arrow bytes with
coded text. So Java sees few and opaque values, and tasks behind the shuffle do what tasks without one do. Which piece
goes where need not be exact: a tenant and window in two places only has two splits.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby

import pyarrow as pa

from windrow.errors import InvalidInput
from windrow.ingest.sources import FilesSource, FrameSource, OnReport, Source
from windrow.ingest.spill import Group, in_budget
from windrow.ingest.steps import grouped
from windrow.model.settings import TableSettings
from windrow.runners.spark import Work, run_on_partitions
from windrow.splits.texts import by_row_group, coded

__all__ = ["Gathering", "Shuffled", "decide", "gathered", "routed", "unpacked"]

MANY_FILES = 500
SMALL_FILE = 8 * 2**20
WORTH_IT = 4
"""How many times fewer files a shuffle must promise."""

_HELD = 64 * 2**20
_PIECE_ROWS = 64 * 1024
_ROUTED = "destination long, rows binary"


@dataclass(frozen=True, slots=True)
class Gathering:
    """Whether rows are gathered by tenant and window before they are written, and why."""

    shuffle: bool
    reason: str
    predicted_files: int | None = None
    """About how many files the tasks would write without a shuffle."""
    groups: int | None = None
    """About how many tenants and windows the rows have, counted together."""


def gathered(
    source: Source, settings: TableSettings, closed_before: int, *, shuffle: bool | None = None
) -> tuple[Source, Gathering]:
    """Return a source whose tasks write what they should, and why they do; `shuffle` overrides the decision.

    `closed_before` is the second before which no late points are accepted.
    """
    if not isinstance(source, FrameSource | FilesSource) or not source.on_spark:
        if shuffle:
            raise InvalidInput("shuffle: rows are shuffled by Spark; give a DataFrame, or files and spark=")
        return source, Gathering(False, "this process writes the rows in large shares")
    if shuffle is False:
        return source, Gathering(False, "no shuffle was asked for")
    decision = Gathering(True, "a shuffle was asked for") if shuffle else _decision(source, settings, closed_before)
    return (Shuffled(source, settings, closed_before) if decision.shuffle else source), decision


def _decision(source: FrameSource | FilesSource, settings: TableSettings, closed_before: int) -> Gathering:
    columns = [settings.timestamp, *settings.partition_by]
    samples = [frozenset(_groups_of(batches, settings, closed_before)) for batches in source.sample(columns)]
    return decide(samples, source.tasks, source.size_bytes)


def decide(samples: Sequence[frozenset[Group]], tasks: int, size_bytes: int | None) -> Gathering:
    """Decide by the tenants and windows that some of the tasks have."""
    each = sum(map(len, samples)) / max(len(samples), 1)
    files = round(each * tasks)
    groups = min(round(_all_groups(samples, each, tasks)), files)
    size = None if size_bytes is None or not files else size_bytes // files
    forecast = f"{tasks} tasks would write about {files} files for about {groups} tenants and windows"
    if files <= MANY_FILES:
        return Gathering(False, f"{forecast}, which are few", files, groups)
    if size is not None and size >= SMALL_FILE:
        return Gathering(False, f"{forecast}, which are large, about {size >> 20} MiB each", files, groups)
    if files < WORTH_IT * groups:
        return Gathering(False, f"{forecast}, so that a shuffle would not make much fewer", files, groups)
    return Gathering(True, f"{forecast}; the rows are gathered by tenant and window first", files, groups)


def _all_groups(samples: Sequence[frozenset[Group]], each: float, tasks: int) -> float:
    """Estimate the groups of all tasks from how many a further task of the sample adds to those of the first."""
    if len(samples) < 2:
        return each
    further = (len(frozenset().union(*samples)) - each) / (len(samples) - 1)
    return each + further * (tasks - 1)


def _groups_of(batches: Iterable[pa.RecordBatch], settings: TableSettings, closed_before: int) -> Iterator[Group]:
    for batch in batches:
        with suppress(InvalidInput):  # rows that are no points have no group
            for partition_id, window, _ in grouped(pa.Table.from_batches([batch]), settings):
                yield partition_id, settings.cold_window_of(window, closed_before) or window


@dataclass(frozen=True)
class Shuffled:
    """A source of Spark whose rows are gathered by tenant and window first."""

    source: FrameSource | FilesSource
    settings: TableSettings
    closed_before: int

    @property
    def schema(self) -> pa.Schema:
        """The columns of the rows."""
        return self.source.schema

    @property
    def on_spark(self) -> bool:
        """Whether Spark's tasks do the work: they do."""
        return True

    def run(self, work: Work, on_report: OnReport, threads: int | None = None) -> list[str]:  # noqa: ARG002
        """Run the work on rows of which all that share tenant and window come to one task."""
        frame, read = self.source.partitions()
        settings, closed_before = self.settings, self.closed_before

        def route(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            return routed(read(batches), settings, closed_before)

        def write(batches: Iterable[pa.RecordBatch], attempt: int) -> Iterator[str]:
            return work(unpacked(batches), attempt)

        pieces = frame.mapInArrow(route, _ROUTED).repartition(max(self.source.tasks, 1), "destination")
        return run_on_partitions(pieces, write, on_report)


def routed(batches: Iterable[pa.RecordBatch], settings: TableSettings, closed_before: int) -> Iterator[pa.RecordBatch]:
    """Yield the rows of batches in pieces, each with the number of its destination."""
    for held, *_ in in_budget(batches, _HELD):
        # By all of the schema: its metadata tells files apart whose rows are to be dropped.
        for _, same in groupby(held, key=lambda batch: batch.schema.serialize().to_pybytes()):
            alike = pa.Table.from_batches(list(same))
            rows = coded(alike).replace_schema_metadata(alike.schema.metadata)
            for destination, part in _parts(rows, settings, closed_before):
                for start in range(0, part.num_rows, _PIECE_ROWS):
                    piece = _packed(part.slice(start, _PIECE_ROWS))
                    yield pa.record_batch({"destination": pa.array([destination], pa.int64()), "rows": [piece]})


def _parts(rows: pa.Table, settings: TableSettings, closed_before: int) -> Iterator[tuple[int, pa.Table]]:
    try:
        for partition_id, own, part in grouped(rows, settings, closed_before=closed_before):
            # All that may be of one cold window comes to one task.
            window = settings.cold_window_of(own, closed_before) or own
            yield partition_id ^ window.start ^ window.overflow, part.replace_schema_metadata(rows.schema.metadata)
    except (InvalidInput, KeyError):
        # these are no points: the task that writes them refuses or drops them
        yield 0, rows


def _packed(rows: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    own = by_row_group(rows, max(rows.num_rows, 1)).replace_schema_metadata(rows.schema.metadata)
    with pa.ipc.new_stream(sink, own.schema) as writer:
        writer.write_table(own)
    return bytes(sink.getvalue())


def unpacked(pieces: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of pieces."""
    for batch in pieces:
        for piece in batch.column("rows"):
            yield from pa.ipc.open_stream(piece.as_buffer())
