"""Snapshots of a table that grows: every reader holds the folders that it reads by a shared lock on them.

The writer removes an old folder only under an exclusive lock of its own, which it never waits for. Locks belong to
open files: the system releases those of a reader that died.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from windrow.closing import Closing
from windrow.errors import Conflict, Damaged, NotFound
from windrow.questdb.committed import CommittedFile, check_partition
from windrow.questdb.folders import partition_folder
from windrow.questdb.meta import Meta, load_meta
from windrow.questdb.meta_writer import arrow_schema
from windrow.questdb.txn import Partition, Txn, read_txn
from windrow.storage.failures import local_reads

__all__ = ["HeldSnapshot", "hold_snapshot", "lock_folder"]

_PAUSE = 0.001
_GRACE = 3
"""Attempts at one version of `_txn`: what is missing then was not removed by a later commit."""


@dataclass(eq=False)
class HeldSnapshot(Closing):
    """One committed state of a table; its folders stay until it is closed."""

    txn: Txn
    meta: Meta
    files: tuple[CommittedFile, ...]
    """By time."""
    locks: list[int] = field(default_factory=list, repr=False)

    def read(self, columns: Sequence[str] | None = None) -> pa.Table:
        """All rows, by time."""
        schema = arrow_schema(self.meta)
        chosen = schema if columns is None else pa.schema([schema.field(name) for name in columns])
        parts = (file.read(columns=columns).cast(chosen) for file in self.files)
        return pa.concat_tables([chosen.empty_table(), *parts])

    def close(self) -> None:
        """Let go of the folders."""
        while self.locks:
            os.close(self.locks.pop())

    def __del__(self) -> None:
        self.close()


def hold_snapshot(table: str | os.PathLike[str], *, deadline: float = 5.0) -> HeldSnapshot:
    """The newest committed state of a table. Starts again when a commit removed a folder in between."""
    folder, end = Path(table), time.monotonic() + deadline
    failed: list[int] = []
    while True:
        txn = read_txn(folder / "_txn", deadline=max(end - time.monotonic(), 0.0))
        snapshot = HeldSnapshot(txn, load_meta(folder), ())
        try:
            snapshot.files = tuple(_hold(folder, partition, snapshot) for partition in txn.partitions)
        except (NotFound, Damaged, Conflict):
            snapshot.close()
            failed.append(txn.version)
            if failed.count(txn.version) >= _GRACE or time.monotonic() >= end:
                raise
        else:
            return snapshot
        time.sleep(_PAUSE)


def lock_folder(folder: Path, *, exclusive: bool) -> int:
    """Lock a folder without waiting; the lock lasts until the descriptor is closed."""
    with local_reads(folder, "no such folder; restore it"):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, (fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH) | fcntl.LOCK_NB)
    except OSError as error:
        os.close(descriptor)
        raise Conflict(f"{folder}: another process holds it; wait until it is done") from error
    return descriptor


def _hold(table: Path, partition: Partition, snapshot: HeldSnapshot) -> CommittedFile:
    folder = partition_folder(table, snapshot.meta, partition)
    size = check_partition(partition, folder)
    snapshot.locks.append(lock_folder(folder, exclusive=False))
    file = CommittedFile(folder, size)
    rows = int(file.sidecar.row_counts.sum())
    if rows != partition.rows:
        problem = f"it has {rows} rows, and _txn commits {partition.rows}"
        raise Damaged(f"{file.sidecar.name}: {problem}; it is of another partition, restore the folder")
    return file
