"""A consistent snapshot of a table that QuestDB may be writing to.

QuestDB does not know of foreign readers. So `_txn` is read by its protocol, `_meta` is read until its version is that
of `_txn`, and everything starts again from `_txn` when a folder is gone that it names. Files are opened at once: what
is open can be read whatever becomes of its folder. Bytes beyond the committed size of a file are never looked at.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, NamedTuple

from windrow.cache import CacheKey, CacheKind, MemoryCache
from windrow.errors import Damaged, Incompatible, InvalidInput, NotFound, StorageError, WindrowError
from windrow.questdb.described import describe
from windrow.questdb.folders import DATA, SIDECAR, partition_folder
from windrow.questdb.meta import Meta, load_meta
from windrow.questdb.partition import FileColumn, file_columns, open_sidecar
from windrow.questdb.registry import table_name
from windrow.questdb.txn import Partition, Txn, read_txn
from windrow.storage import Identity, LocalStore, ObjectInfo
from windrow.storage.local import OpenedFile

__all__ = ["CommittedPart", "Native", "PartitionFile", "Snapshot", "open_snapshot"]

Native = Literal["refuse", "skip"]
_NATIVE = ("refuse", "skip")
_PAUSE = 0.002
_GRACE = 0.1
"""Seconds at one version of `_txn`: what is missing for so long was not removed by a later commit."""
_MOST_HELD = 256
"""Files that a snapshot holds open; those beyond are opened when they are read."""
_CACHE_BYTES, _OBJECT_BYTES = 2**25, 4000
"""Partitions that have not changed are not read again, as long as their descriptions fit."""


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
    end, failed = time.monotonic() + deadline, dict[int, float]()
    while True:
        txn = read_txn(path / "_txn", deadline=max(end - time.monotonic(), 0.0))
        try:
            meta = _read_meta(path, txn)
            partitions = tuple(_Partitions(path, meta, native=native, recover=recover).open(txn))
            skipped = tuple(partition_folder(path, meta, each).name for each in txn.partitions if not each.is_parquet)
            return Snapshot(table_name(path), path, txn, meta, partitions, skipped)
        except (NotFound, Damaged, StorageError) as error:
            now = time.monotonic()
            is_moving = error.retryable or now - failed.setdefault(txn.version, now) < _GRACE
            if not is_moving or now >= end:
                raise _timed_out(error, deadline) if error.retryable else error from error
        time.sleep(_PAUSE)


def _timed_out(error: WindrowError, deadline: float) -> StorageError:
    return StorageError(f"{error}; it was so for {deadline:g} s, try again or with a longer deadline", retryable=True)


def _read_meta(folder: Path, txn: Txn) -> Meta:
    """The structure that `_txn` refers to; another one is an error that may pass."""
    path = folder / "_meta"
    try:
        meta = load_meta(folder)
    except NotFound as error:
        raise StorageError(f"{path}: there is no such file now", retryable=True) from error
    if meta.structure_version != txn.structure_version:
        problem = f"its structure version is {meta.structure_version}, that of _txn {txn.structure_version}"
        raise StorageError(f"{path}: {problem}", retryable=True)
    return meta


def _is_native(folder: Path, partition: str) -> Incompatible:
    return Incompatible(
        f"{folder}: partition {partition} is native, and only Parquet is read; run ALTER TABLE '{table_name(folder)}' "
        f"CONVERT PARTITION TO PARQUET LIST '{partition}' in QuestDB, or leave such partitions out with native='skip'"
    )


class _Description(NamedTuple):
    """The description of a partition; it holds as long as neither file nor structure changes."""

    size: int
    sidecar: bytes
    columns: tuple[FileColumn, ...]


_descriptions: MemoryCache[_Description] = MemoryCache(
    _CACHE_BYTES, weigh=lambda each: len(each.sidecar) + _OBJECT_BYTES, name="questdb"
)


class _Partitions:
    """Opens the partitions of one commit."""

    def __init__(self, folder: Path, meta: Meta, *, native: Native, recover: bool) -> None:
        self._folder = folder
        self._meta = meta
        self._native = native
        self._recover = recover
        self._structure = hashlib.blake2b(repr((meta, recover)).encode(), digest_size=16).hexdigest()

    def open(self, txn: Txn) -> Iterator[PartitionFile]:
        """Open all of them that are Parquet."""
        for number, partition in enumerate(txn.partitions):
            if not partition.is_parquet:
                if self._native == "refuse":
                    named = partition_folder(self._folder, self._meta, replace(partition, name_txn=-1))
                    raise _is_native(self._folder, named.name)
                continue
            folder = partition_folder(self._folder, self._meta, partition)
            if partition.remote:
                raise Incompatible(
                    f"{folder}: the partition is in cold storage (REMOTE in _txn), where Windrow does not read; bring "
                    "it back in QuestDB first"
                )
            file = self._opened(folder, partition)
            if number >= _MOST_HELD:
                file.store.release()
            yield file

    def _opened(self, folder: Path, partition: Partition) -> PartitionFile:
        store, info = HeldFile(folder.resolve()), self._checked(folder, partition)
        opened = store.hold(CommittedPart(min(partition.parquet_size or 0, info.size), inode_of(info)))
        marks = f"{info.etag} {_etag(store, SIDECAR)} {partition} {self._structure}"
        key = CacheKey(str(folder), -1, -1, CacheKind.SIDECAR, marks)
        described = _descriptions.get(key, lambda _: self._read(folder, partition, opened))
        identity = CommittedPart(described.size, inode_of(info))
        return PartitionFile(folder.name, partition.rows, store, identity, described.sidecar, described.columns)

    def _checked(self, folder: Path, partition: Partition) -> ObjectInfo:
        """What the Parquet file is; it has all that is committed."""
        data, size = folder / DATA, partition.parquet_size
        if not size:
            raise Damaged(f"{self._folder / '_txn'}: {folder.name} is Parquet and has no size; restore the file")
        try:
            info = LocalStore(folder.resolve()).head(DATA)
        except NotFound as error:
            raise NotFound(f"{data}: _txn names this file, and it is not there; restore the partition") from error
        if info.size < size and not self._recover:
            raise Damaged(
                f"{data}: it has {info.size} bytes, and {size} are committed; restore it from a backup, or detach the "
                "partition in QuestDB"
            )
        return info

    def _read(self, folder: Path, partition: Partition, opened: OpenedFile) -> _Description:
        pm = open_sidecar(folder, partition, self._meta, opened, recover=self._recover)
        columns = tuple(file_columns(pm, self._meta))
        if not columns:
            raise Damaged(f"{folder / SIDECAR}: it has no column of the table; restore the partition")
        return _Description(pm.parquet_size, describe(pm, columns), columns)


def _etag(store: LocalStore, key: str) -> str | None:
    try:
        return store.head(key).etag
    except NotFound:
        return None
