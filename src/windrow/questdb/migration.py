"""One step of a migration: the sidecar of one Parquet file, written in place.

A step is a plain function of files, so that this process or Spark can take steps in any order. A sidecar appears whole,
by a rename, and nothing else is written: not `_txn`, not data.parquet. A step that was killed leaves the old state and
perhaps a staging file, which the next attempt removes.
"""

from __future__ import annotations

import glob
import os
import platform
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from windrow.errors import Conflict, Damaged, Incompatible, NotFound, StorageError, WindrowError
from windrow.parquet.footer import MAGIC, TAIL_SIZE
from windrow.questdb.backfill import backfill_timestamps
from windrow.questdb.txn import read_txn
from windrow.sidecar import Sidecar
from windrow.sidecar.build import build_sidecar, footer_bytes_of
from windrow.sidecar.convert import Read
from windrow.sidecar.layout import U32
from windrow.sidecar.rewrite import Sections, rewrite
from windrow.sidecar.structure import Footer
from windrow.storage.failures import disk_failure, local_reads
from windrow.storage.file_changes import Files

__all__ = ["Action", "Step", "StepReport", "carry_out", "committed_bytes"]


class Action(StrEnum):
    """What becomes of one sidecar."""

    GENERATE = "generate"
    """There is none: write it."""
    REGENERATE = "regenerate"
    """It is stale or damaged: write it again from the Parquet file."""
    REWRITE = "rewrite"
    """It is sound, in another layout than wanted: write it again from itself."""
    NONE = "none"
    """It is sound: leave it."""
    SKIP = "skip"
    """The Parquet file is in cold storage: leave it."""
    REFUSE = "refuse"
    """The Parquet file is missing, or shorter than its committed size."""

    @property
    def is_work(self) -> bool:
        """Whether a file is to be written."""
        return self in (Action.GENERATE, Action.REGENERATE, Action.REWRITE)


@dataclass(frozen=True, slots=True)
class Step:
    """One Parquet file and its sidecar."""

    table: str
    """The folder of the QuestDB table; empty for a file that belongs to none."""
    partition: str
    """The partition's folder, or the file's own name."""
    parquet: str
    sidecar: str
    parquet_bytes: int
    """The committed size: bytes after it belong to nobody."""
    action: Action
    why: str
    timestamp: int = 0
    """The partition's low bound in `_txn`."""
    name_txn: int = -1
    rows: int | None = None
    """The partition's rows in `_txn`."""
    sections: Sections = Sections.QUESTDB
    """What the new sidecar holds besides the format itself."""


@dataclass(frozen=True, slots=True)
class StepReport:
    """How one step ended."""

    table: str
    partition: str
    sidecar: str
    action: str
    sidecar_bytes: int
    seconds: float
    problem: str | None = None
    retryable: bool = False


def carry_out(step: Step, files: Files | None = None, clock: Callable[[], float] = time.perf_counter) -> StepReport:
    """Write the sidecar of one step; a failure of this file is part of the report."""
    start = clock()
    try:
        data = _content(step)
        _publish(step, data, files or Files())
    except WindrowError as error:
        return _report(step, 0, clock() - start, str(error), retryable=error.retryable)
    except OSError as error:
        failure = disk_failure(error, step.sidecar)
        return _report(step, 0, clock() - start, str(failure), retryable=failure.retryable)
    return _report(step, len(data), clock() - start)


def _report(
    step: Step, size: int, seconds: float, problem: str | None = None, *, retryable: bool = False
) -> StepReport:
    return StepReport(step.table, step.partition, step.sidecar, step.action, size, seconds, problem, retryable)


def _content(step: Step) -> bytes:
    if step.action == Action.REWRITE:
        return rewrite(Sidecar.open(step.sidecar, parquet_size=step.parquet_bytes), step.sections)
    with committed_bytes(Path(step.parquet), step.parquet_bytes) as read:
        if step.table:
            return _content_of_partition(step, read)
        return _built(step, read)


def _built(step: Step, read: Read) -> bytes:
    data = build_sidecar(read, step.parquet_bytes, name=step.parquet, extensions=step.sections != Sections.QUESTDB)
    return backfill_timestamps(data, Path(step.parquet), footer_bytes_of(read, step.parquet_bytes, name=step.parquet))


def _content_of_partition(step: Step, read: Read) -> bytes:
    """The sidecar, unless the committed bytes end with what a crash left.

    QuestDB may commit the length of a file whose tail is left of an append that a crash cut off. That tail ends with a
    footer too, which describes bytes that a later, shorter append has replaced.
    """
    last = _newest_snapshot(step, read)
    if last is not None:
        start = step.parquet_bytes - len(footer_bytes_of(read, step.parquet_bytes, name=step.parquet))
        _refuse_tail(step, last, overlaps=start < last.parquet_size)
    data = _built(step, read)
    made = Sidecar.of(data, name=step.parquet, verify=False)
    if last is not None:
        starts, lengths = made.chunks["byte_range_start"], made.chunks["total_compressed"]
        inside = (starts < last.parquet_size) & (starts + lengths > last.parquet_footer_offset)
        _refuse_tail(step, last, overlaps=bool(inside.any()))
    rows = int(made.row_counts.sum())
    if rows != step.rows:
        problem = f"the footer at byte {step.parquet_bytes} has {rows} rows, `_txn` has {step.rows}"
        raise Damaged(f"{step.parquet}: {problem}; restore the partition")
    return data


def _newest_snapshot(step: Step, read: Read) -> Footer | None:
    """The newest footer of the old sidecar, where it describes a part of these bytes."""
    try:
        footer = Sidecar.open(step.sidecar).footer
    except (Damaged, Incompatible, NotFound):
        return None
    if not TAIL_SIZE <= footer.parquet_size < step.parquet_bytes:
        return None
    end = U32.pack(footer.parquet_footer_length) + MAGIC
    return footer if read(footer.parquet_size - TAIL_SIZE, TAIL_SIZE) == end else None


def _refuse_tail(step: Step, last: Footer, *, overlaps: bool) -> None:
    if overlaps:
        problem = f"the footer at byte {step.parquet_bytes} describes bytes that the one at byte {last.parquet_size}"
        raise Damaged(f"{step.parquet}: {problem} has replaced; a crash left that tail, restore the partition")


@contextmanager
def committed_bytes(path: Path, size: int) -> Iterator[Read]:
    """Give a way to read the first `size` bytes of a file; no read leaves them."""
    with local_reads(path, "no such Parquet file; restore it, or detach its partition"):
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        _check_length(path, os.fstat(descriptor).st_size, size)

        def read(offset: int, length: int) -> bytes:
            data = os.pread(descriptor, length, offset) if 0 <= offset <= size - length else b""
            if len(data) != length:
                problem = f"bytes {offset} to {offset + length} are not among the {size} committed ones"
                raise Damaged(f"{path}: {problem}; the file is damaged, restore it")
            return data

        yield read
    finally:
        os.close(descriptor)


def _check_length(path: Path, length: int, size: int) -> None:
    if length == 0:
        raise Damaged(f"{path}: the file is empty, {size} bytes are committed; restore it")
    if length < size:
        raise Damaged(f"{path}: {length} bytes, {size} are committed; the file is cut short, restore it")


def _publish(step: Step, data: bytes, files: Files) -> None:
    """Put the sidecar in place, durably: whole or not at all."""
    target = Path(step.sidecar)
    _remove_leftovers(target)
    # Each attempt has a staging file of its own; readers of a folder pass over a leading underscore.
    staging = target.with_name(f"_{target.name}.{platform.node()}-{os.getpid()}-{threading.get_ident()}.partial")
    try:
        files.create(staging, data)
        files.sync(staging)
        _check_unchanged(step)
        files.rename(staging, target)
    except StorageError:
        # Another attempt at the same step removes this one's staging file.
        if not _is_published(target, data):
            raise
    finally:
        staging.unlink(missing_ok=True)
    files.sync_folder(target.parent)


def _remove_leftovers(target: Path) -> None:
    """Remove what killed attempts left. An attempt that still runs fails then, and that is no harm."""
    for leftover in target.parent.glob(f"_{glob.escape(target.name)}.*.partial"):
        leftover.unlink(missing_ok=True)


def _is_published(target: Path, data: bytes) -> bool:
    """Whether another attempt at the same step was faster."""
    try:
        return target.read_bytes() == data
    except OSError:
        return False


def _check_unchanged(step: Step) -> None:
    """The partition is still the one that was planned with."""
    if not step.table:
        return
    now = {each.timestamp: each for each in read_txn(Path(step.table, "_txn")).partitions}
    partition = now.get(step.timestamp)
    if partition is None or (partition.name_txn, partition.parquet_size) != (step.name_txn, step.parquet_bytes):
        raise Conflict(f"{step.parquet}: QuestDB changed the partition meanwhile; run the migration again")
