"""A consistent snapshot of a table that QuestDB may be writing to.

QuestDB does not know of foreign readers. So `_txn` is read by its protocol, `_meta` is read until its version is that
of `_txn`, and everything starts again from `_txn` when a folder is gone that it names. Files are opened at once: what
is open can be read whatever becomes of its folder. Bytes beyond the committed size of a file are never looked at.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from windrow.errors import Damaged, Incompatible, InvalidInput, NotFound, StorageError, WindrowError
from windrow.questdb.described import describe
from windrow.questdb.folders import folder_name
from windrow.questdb.meta import Meta, parse_meta
from windrow.questdb.partition import DATA, SIDECAR, FileColumn, file_columns, open_sidecar
from windrow.questdb.registry import table_name
from windrow.questdb.txn import Partition, Txn, read_txn
from windrow.storage import Identity, LocalStore, ObjectInfo
from windrow.storage.local import OpenedFile

__all__ = ["CommittedPart", "Native", "PartitionFile", "Snapshot", "open_snapshot"]

Native = Literal["refuse", "skip"]
_NATIVE = ("refuse", "skip")
_PAUSE = 0.002
_GRACE = 3
"""Attempts at one version of `_txn`: what is missing then was not removed by a later commit."""
_MOST_HELD = 256
"""Files that a snapshot holds open; those beyond are opened when they are read."""


@dataclass(frozen=True, slots=True)
class CommittedPart(Identity):
    """The first `size` bytes of a local file that grows behind them; `etag` is the file's number on its disk."""

    def fits(self, info: ObjectInfo) -> bool:
        """Whether an object is the file, and still has these bytes."""
        return info.size >= self.size and inode_of(info) == self.etag


def inode_of(info: ObjectInfo) -> str:
    """The number of a local file on its disk, which stays the same while the file grows."""
    return (info.etag or "").partition("-")[0]


class HeldFile(LocalStore):
    """The folder of one partition, whose Parquet file is open already."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self._held: OpenedFile | None = None

    def hold(self, identity: Identity) -> OpenedFile:
        """Open the Parquet file for good."""
        self._held = self.open(DATA, expect=identity)
        return self._held

    def open(self, key: str, *, expect: Identity | None = None) -> OpenedFile:
        """The file that is held, else one that is opened now."""
        return super().open(key, expect=expect) if self._held is None or key != DATA else self._held

    def release(self) -> None:
        """Let go of the file; it is opened again when it is read."""
        self._held = None


@dataclass(frozen=True, slots=True)
class PartitionFile:
    """One partition: a Parquet file, how much of it is committed, its sidecar, and its columns."""

    folder: str
    rows: int
    store: HeldFile = field(repr=False)
    identity: CommittedPart
    sidecar: bytes = field(repr=False)
    """In Windrow's form; its columns have the names of the table."""
    columns: tuple[FileColumn, ...] = field(repr=False)
    """Those columns of the table that the file has."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One committed state of a table."""

    name: str
    folder: Path
    txn: Txn = field(repr=False)
    meta: Meta
    partitions: tuple[PartitionFile, ...]
    """By time."""
    skipped: tuple[str, ...] = ()
    """The folders of native partitions that were left out."""

    @property
    def rows(self) -> int:
        """The rows of all partitions that are read."""
        return sum(each.rows for each in self.partitions)


def open_snapshot(
    folder: str | Path, *, native: Native = "refuse", recover: bool = False, deadline: float = 5.0
) -> Snapshot:
    """The newest committed state of the table in a folder.

    Native partitions are refused, or left out with `native="skip"`. With `recover`, a partition whose committed size no
    footer describes is read by its newest footer, if that has the committed number of rows: a QuestDB that was killed
    during a late insert leaves such tables. After `deadline` seconds without a consistent state there is an error.
    """
    if native not in _NATIVE:
        raise InvalidInput(f"native={native!r}: choose one of {', '.join(map(repr, _NATIVE))}")
    path = Path(folder)
    end, failed = time.monotonic() + deadline, list[int]()
    while True:
        txn = read_txn(path / "_txn", deadline=max(end - time.monotonic(), 0.0))
        try:
            meta = _read_meta(path, txn)
            partitions = tuple(_open_partitions(path, txn, meta, native=native, recover=recover))
            skipped = tuple(_folder(meta, each) for each in txn.partitions if not each.is_parquet)
            return Snapshot(table_name(path), path, txn, meta, partitions, skipped)
        except (NotFound, Damaged, StorageError) as error:
            failed.append(txn.version)
            is_moving = error.retryable or failed.count(txn.version) < _GRACE
            if not is_moving or time.monotonic() >= end:
                raise _timed_out(error, deadline) if error.retryable else error from error
        time.sleep(_PAUSE)


def _timed_out(error: WindrowError, deadline: float) -> StorageError:
    return StorageError(f"{error}; it was so for {deadline:g} s, try again or with a longer deadline", retryable=True)


def _read_meta(folder: Path, txn: Txn) -> Meta:
    """The structure that `_txn` refers to; another one is an error that may pass."""
    path = folder / "_meta"
    try:
        data = path.read_bytes()
    except FileNotFoundError as error:
        raise StorageError(f"{path}: there is no such file now", retryable=True) from error
    except OSError as error:
        raise StorageError(f"{path}: cannot be read: {error.strerror}; check the permissions") from error
    meta = parse_meta(data, str(path))
    if meta.structure_version != txn.structure_version:
        problem = f"its structure version is {meta.structure_version}, that of _txn {txn.structure_version}"
        raise StorageError(f"{path}: {problem}", retryable=True)
    return meta


def _folder(meta: Meta, partition: Partition) -> str:
    return folder_name(meta.unit, partition.timestamp, partition.name_txn, ticks_per_second=meta.ticks_per_second)


def _open_partitions(folder: Path, txn: Txn, meta: Meta, *, native: Native, recover: bool) -> Iterator[PartitionFile]:
    for number, partition in enumerate(txn.partitions):
        name = _folder(meta, partition)
        if not partition.is_parquet:
            if native == "refuse":
                raise _is_native(
                    folder, folder_name(meta.unit, partition.timestamp, ticks_per_second=meta.ticks_per_second)
                )
            continue
        if partition.remote:
            raise Incompatible(
                f"{folder / name}: the partition is in cold storage (REMOTE in _txn), where Windrow does not read; "
                "bring it back in QuestDB first"
            )
        yield _open_partition(folder / name, partition, meta, recover=recover, is_held=number < _MOST_HELD)


def _is_native(folder: Path, partition: str) -> Incompatible:
    return Incompatible(
        f"{folder}: partition {partition} is native, and only Parquet is read; run ALTER TABLE '{table_name(folder)}' "
        f"CONVERT PARTITION TO PARQUET LIST '{partition}' in QuestDB, or leave such partitions out with native='skip'"
    )


def _open_partition(folder: Path, partition: Partition, meta: Meta, *, recover: bool, is_held: bool) -> PartitionFile:
    data = folder / DATA
    size = partition.parquet_size
    if not size:
        raise Damaged(f"{folder.parent / '_txn'}: {folder.name} is Parquet and has no size; restore the file")
    store = HeldFile(folder.resolve())
    try:
        info = store.head(DATA)
    except NotFound as error:
        raise NotFound(f"{data}: _txn names this file, and it is not there; restore the partition's folder") from error
    if info.size < size and not recover:
        raise Damaged(
            f"{data}: it has {info.size} bytes, and {size} are committed; restore it from a backup, or detach the "
            "partition in QuestDB"
        )
    opened = store.hold(CommittedPart(min(size, info.size), inode_of(info)))
    pm = open_sidecar(folder, partition, meta, opened, recover=recover)
    identity = CommittedPart(pm.parquet_size, inode_of(info))
    columns = tuple(file_columns(pm, meta))
    if not columns:
        raise Damaged(f"{folder / SIDECAR}: it has no column of the table; restore the partition's folder")
    if not is_held:
        store.release()
    return PartitionFile(folder.name, partition.rows, store, identity, describe(pm, columns), columns)
