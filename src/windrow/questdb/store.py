"""The partition store: tables whose Parquet files grow in place, one writer and any number of readers.

A commit writes Parquet bytes behind the committed ones, then an update of `_pm`, then `_txn`, each forced to the disk
before the next refers to it. A crash anywhere leaves the old state or the new one; what was written in vain is
overwritten by the next commit, or removed. docs/adr/0090-growing-partitions.md has the reasons.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from windrow.closing import Closing
from windrow.errors import AlreadyExists, Closed, Conflict, Damaged, Incompatible, NotFound
from windrow.questdb.committed import CommittedFile, check_partition, describe_file
from windrow.questdb.folders import DATA, SIDECAR, partition_folder
from windrow.questdb.meta import PartitionUnit, load_meta
from windrow.questdb.meta_writer import describe_table, encode_meta
from windrow.questdb.parquet_append import Growth, grow, has_columns, open_writer
from windrow.questdb.readers import lock_folder
from windrow.questdb.table_rows import TableRows, cut, recut
from windrow.questdb.txn import GENERATED_BIT, PARQUET_BIT, Partition, Txn
from windrow.questdb.txn_writer import TxnWriter, create_txn, empty_txn
from windrow.sidecar.publish import publish_update
from windrow.storage.file_changes import Files, FileSink

__all__ = ["PartitionStore", "StoreOptions", "create_table"]

_FLAGS = PARQUET_BIT | GENERATED_BIT
_PARTIAL = f"{SIDECAR}.partial"
_FOLDER = re.compile(r"\d{4}(-W\d{2}|-\d{2}(-\d{2}(T\d{2,6}(-\d+)?)?)?)?(\.\d+)?")

Changes = Mapping[int, pa.Table]
"""The rows of those row groups that change, by their place in the file; places behind the last are new ones."""


@dataclass(frozen=True, slots=True)
class StoreOptions:
    """How partitions are laid out, and when one is written anew."""

    row_group_rows: int = 32 * 1024
    join_rows: int = 4 * 1024
    """Rows at the end of a partition join its last row group while both together have at most so many."""
    rewrite_ratio: float = 0.5
    """The share of unused bytes beyond which a partition is rewritten into a new folder."""
    rewrite_bytes: int = 1 << 30
    """The unused bytes beyond which it is, whatever their share."""


def create_table(
    folder: str | os.PathLike[str],
    schema: pa.Schema,
    *,
    timestamp: str,
    unit: PartitionUnit = PartitionUnit.DAY,
    files: Files | None = None,
) -> None:
    """Create an empty table; `timestamp` is the column by which rows are partitioned and sorted."""
    table, files = Path(folder), files or Files()
    meta = describe_table(schema, timestamp, unit)
    if (table / "_txn").exists():
        raise AlreadyExists(f"{table}: it is a table already; open it, or choose another folder")
    if not table.is_dir():
        files.make_folder(table)
    files.create(table / "_meta", encode_meta(meta))
    files.sync(table / "_meta")
    files.sync_folder(table)
    # `_txn` comes last: a folder without it is no table.
    create_txn(table / "_txn", empty_txn(), files)
    files.sync_folder(table.parent)


class PartitionStore(Closing):
    """The one writer of a table."""

    def __init__(
        self, folder: str | os.PathLike[str], options: StoreOptions | None = None, files: Files | None = None
    ) -> None:
        self._table, self._options, self._files = Path(folder), options or StoreOptions(), files or Files()
        try:
            self._lock: int | None = lock_folder(self._table, exclusive=True)
        except Conflict as error:
            raise Conflict(f"{self._table}: another writer has the table open; close it first") from error
        try:
            self._meta = load_meta(self._table)
            if self._meta.is_wal:
                raise Incompatible(f"{self._table}: QuestDB writes this table through its WAL; insert the rows there")
            self._rows = TableRows(self._meta, str(self._table))
            self._writer = TxnWriter(self._table / "_txn", self._files)
            self.purge()
        except BaseException:
            self.close()
            raise

    @property
    def txn(self) -> Txn:
        """The committed state."""
        return self._writer.current

    def close(self) -> None:
        """Let another writer open the table."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def append(self, rows: pa.Table) -> Txn:
        """Add rows, late ones too, and commit them."""
        rows = self._rows.conform(rows)
        if not rows.num_rows:
            return self.txn
        times = self._rows.times(rows)
        bounds = min(self.txn.min_timestamp, int(times[0])), max(self.txn.max_timestamp, int(times[-1]))
        return self._commit((self._grown(*part) for part in self._rows.by_partition(rows)), bounds)

    def rewrite(self, timestamps: Iterable[int] | None = None) -> Txn:
        """Write partitions anew into folders of their own, without unused bytes: all, or those that begin at a time."""
        chosen = None if timestamps is None else set(timestamps)
        partitions = [each for each in self.txn.partitions if chosen is None or each.timestamp in chosen]
        if not partitions:
            return self.txn
        rewritten = (self._rewritten(each, self._open(each), {}) for each in partitions)
        return self._commit(rewritten, (self.txn.min_timestamp, self.txn.max_timestamp))

    def purge(self) -> list[Path]:
        """Remove folders that no commit and no reader needs; those that are still held are returned."""
        live = {self._folder(each).name for each in self.txn.partitions}
        folders = [path for path in sorted(self._table.iterdir()) if path.is_dir() and _FOLDER.fullmatch(path.name)]
        held = [path for path in folders if path.name not in live and not self._removed(path)]
        self._has_old_folders = bool(held)
        return held

    # ---- one commit

    def _commit(self, changes: Iterable[Partition], bounds: tuple[int, int]) -> Txn:
        if self._lock is None:
            raise Closed(f"{self._table}: the store is closed, or failed in a commit; open it again")
        try:
            by_time = {each.timestamp: each for each in self.txn.partitions}
            by_time |= {each.timestamp: each for each in changes}
            partitions = tuple(by_time[timestamp] for timestamp in sorted(by_time))
            txn = replace(
                self.txn,
                partitions=partitions,
                transient_rows=partitions[-1].rows,
                fixed_rows=sum(each.rows for each in partitions[:-1]),
                min_timestamp=bounds[0],
                max_timestamp=bounds[1],
                partition_table_version=self.txn.partition_table_version + 1,
            )
            txn = self._writer.commit(txn)
        except BaseException:
            # Files may hold more than this object remembers; the next writer starts from what is committed.
            self.close()
            raise
        if self._has_old_folders:
            self.purge()
        return txn

    def _grown(self, start: int, rows: pa.Table) -> Partition:
        """Write the rows of one partition, durably; the partition as it is to be committed."""
        partition = next((each for each in self.txn.partitions if each.timestamp == start), None)
        if partition is None:
            return self._written(Partition(start, 0, -1, 0, _FLAGS), [rows])
        file, options = self._open(partition), self._options
        changes = self._changes(file, rows)
        if not has_columns(file, self._rows.schema):
            return self._rewritten(partition, file, changes)
        growth = grow(file, changes, timestamp=self._rows.timestamp)
        if growth.unused_bytes > min(options.rewrite_ratio * growth.size, options.rewrite_bytes):
            return self._rewritten(partition, file, changes)
        self._write_growth(file, growth)
        return replace(partition, rows=partition.rows + rows.num_rows, word=growth.size)

    def _changes(self, file: CommittedFile, rows: pa.Table) -> Changes:
        """The row groups whose time late rows fall in, merged with them, and new ones at the end."""
        options, counts, times = self._options, file.sidecar.row_counts, self._rows.times(rows)
        greatest, last = self._greatest(file), len(counts) - 1
        targets = np.minimum(np.searchsorted(greatest, times, side="left"), last)
        tail = int(np.searchsorted(times, greatest[-1], side="left"))
        if len(times) - tail + int(counts[last]) > options.join_rows:
            targets[tail:] = last + 1 + np.arange(len(times) - tail) // options.row_group_rows
        changes = {int(targets[low]): rows.slice(low, high - low) for low, high in cut(targets)}
        return {
            target: self._rows.merge(file.read(row_groups=[target]), late) if target <= last else late
            for target, late in changes.items()
        }

    def _greatest(self, file: CommittedFile) -> NDArray[np.int64]:
        """The last time of every row group."""
        bound = file.sidecar.column(self._rows.timestamp).stored_maximum
        if not bound.present.all() or (np.diff(bound.values) < 0).any():
            raise Incompatible(f"{file.path}: its row groups have no order of time; write the table anew")
        times: NDArray[np.int64] = bound.values
        return times

    def _write_growth(self, file: CommittedFile, growth: Growth) -> None:
        files = self._files
        if file.path.stat().st_size > growth.start:
            # A writer died here. Readers of plain Parquet look for the footer at the end of the file.
            files.truncate(file.path, growth.start)
        files.write_at(file.path, growth.start, growth.data)
        files.sync(file.path)
        publish_update(file.folder / SIDECAR, growth.update, files)

    def _rewritten(self, partition: Partition, file: CommittedFile, changes: Changes) -> Partition:
        """Write a partition into a new folder, with what changes."""
        self._has_old_folders = True
        merged = self._merged(file, changes)
        return self._written(replace(partition, name_txn=self.txn.version + 1), merged)

    def _merged(self, file: CommittedFile, changes: Changes) -> Iterator[pa.Table]:
        """All rows of a partition by time, row group by row group."""
        for group in range(max(file.sidecar.row_group_count, 1 + max(changes, default=-1))):
            yield changes[group] if group in changes else file.read(row_groups=[group]).cast(self._rows.schema)

    def _written(self, partition: Partition, batches: Iterable[pa.Table]) -> Partition:
        """Write a partition into its own new folder, durably."""
        files, folder = self._files, self._folder(partition)
        files.make_folder(folder)
        sink = FileSink(files, folder / DATA)
        with sink, open_writer(sink, self._rows.schema, self._rows.timestamp) as writer:
            for batch in recut(batches, self._options.row_group_rows):
                writer.write_table(batch, row_group_size=batch.num_rows)
        file = CommittedFile(folder, sink.size)
        files.create(folder / SIDECAR, describe_file(file))
        files.sync(folder / DATA)
        files.sync(folder / SIDECAR)
        files.sync_folder(folder)
        files.sync_folder(self._table)
        return replace(partition, rows=file.footer.num_rows, word=sink.size)

    # ---- folders

    def _folder(self, partition: Partition) -> Path:
        return partition_folder(self._table, self._meta, partition)

    def _open(self, partition: Partition) -> CommittedFile:
        """The committed part of a partition; a sidecar that does not describe it is built anew."""
        folder = self._folder(partition)
        if partition.read_only:
            raise Incompatible(f"{folder}: the partition is read-only; write to another one")
        file = CommittedFile(folder, check_partition(partition, folder))
        try:
            _ = file.sidecar
        except (NotFound, Damaged):
            self._repair(file)
        rows = int(file.sidecar.row_counts.sum())
        if rows != partition.rows:
            raise Damaged(f"{folder}: it has {rows} rows, and _txn commits {partition.rows}; restore the folder")
        return file

    def _repair(self, file: CommittedFile) -> None:
        partial = file.folder / _PARTIAL
        self._files.create(partial, describe_file(file))
        # The update that follows forces the bytes to the disk; until then there is nothing to lose.
        self._files.rename(partial, file.folder / SIDECAR)
        self._files.sync_folder(file.folder)

    def _removed(self, folder: Path) -> bool:
        """Remove a folder of ours that no reader holds; folders with other files are not touched."""
        names = sorted(path.name for path in folder.iterdir())
        if not {*names} <= {DATA, SIDECAR, _PARTIAL}:
            return True
        try:
            lock = lock_folder(folder, exclusive=True)
        except Conflict:
            return False
        try:
            for name in names:
                self._files.remove(folder / name)
            self._files.remove_folder(folder)
        finally:
            os.close(lock)
        return True
