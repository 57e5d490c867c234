"""The committed part of one partition: the first bytes of `data.parquet`, and the footer of `_pm` that describes them.

Nothing here looks at the length of a file but to refuse one that is too short: bytes behind the committed ones belong
to a commit that is under way, or to a writer that died.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from windrow.errors import Damaged, Incompatible
from windrow.parquet.footer import MAGIC, TAIL_SIZE, ParquetFooter, footer_length, parse_footer
from windrow.parquet.placement import VirtualSchema
from windrow.parquet.synthesis import assemble_footer
from windrow.questdb.folders import DATA, SIDECAR
from windrow.questdb.txn import Partition
from windrow.sidecar import Sidecar
from windrow.sidecar.build import build_sidecar
from windrow.storage.failures import local_reads

__all__ = ["CommittedFile", "check_partition", "describe_file"]


class CommittedFile:
    """A Parquet file as one commit left it."""

    def __init__(self, folder: Path, size: int) -> None:
        self.folder, self.size, self.path = folder, size, folder / DATA
        self._mapping = _map(self.path, size)
        self._footer_bytes = self._find_footer()

    @cached_property
    def sidecar(self) -> Sidecar:
        """The snapshot of `_pm` that describes these bytes, verified."""
        sidecar = Sidecar.open(self.folder / SIDECAR, parquet_size=self.size)
        if sidecar.footer.parquet_footer_length != len(self._footer_bytes):
            problem = f"it describes another file than {self.path}"
            raise Damaged(f"{sidecar.name}: {problem}; open the table for writing, which builds it anew")
        return sidecar

    @cached_property
    def footer(self) -> ParquetFooter:
        """The footer of the file."""
        return parse_footer(self._footer_bytes, name=str(self.path))

    def read_at(self, offset: int, length: int) -> bytes:
        """Bytes of the file."""
        return self._mapping[offset : offset + length]

    def read(self, *, columns: Sequence[str] | None = None, row_groups: Sequence[int] | None = None) -> pa.Table:
        """The rows of all row groups, or of some."""
        metadata = None if row_groups is None else _read_metadata(self._part(row_groups))
        source = pa.BufferReader(pa.py_buffer(self._mapping))
        try:
            with pq.ParquetFile(source, metadata=metadata, page_checksum_verification=True) as file:
                return file.read(columns=columns, use_threads=False)
        except (OSError, pa.ArrowException) as error:
            raise Damaged(f"{self.path}: {error}; restore the file from a backup") from error

    def live_bytes(self, row_groups: Sequence[int] | None = None) -> int:
        """Bytes of row groups: their pages, page indexes and bloom filters."""
        chunks = self.footer.chunks if row_groups is None else self.footer.chunks[list(row_groups)]
        parts = ("total_compressed_size", "offset_index_length", "column_index_length", "bloom_length")
        return sum(int(np.maximum(chunks[part], 0).sum()) for part in parts)

    @property
    def footer_size(self) -> int:
        """Bytes of the footer, with its length and magic."""
        return len(self._footer_bytes) + TAIL_SIZE

    def _part(self, row_groups: Sequence[int]) -> bytes:
        """A footer of some row groups alone, so that a reader need not parse all of them."""
        groups = [self.footer.row_group_structs[group] for group in row_groups]
        rows = int(self.footer.row_group_rows[list(row_groups)].sum())
        return assemble_footer(VirtualSchema.of(self.footer), len(groups), rows, b"".join(groups))

    def _find_footer(self) -> bytes:
        needed = footer_length(self._mapping[self.size - TAIL_SIZE : self.size], str(self.path))
        if needed + len(MAGIC) > self.size:
            raise Damaged(f"{self.path}: a footer of {needed} bytes in {self.size}; restore the file")
        return self._mapping[self.size - needed : self.size - TAIL_SIZE]


def check_partition(partition: Partition, folder: Path) -> int:
    """The committed size of a partition's Parquet file; refuses what has none here."""
    if not partition.is_parquet:
        raise Incompatible(f"{folder}: the partition is native; convert it to Parquet in QuestDB first")
    if partition.remote:
        raise Incompatible(f"{folder}: the partition is in cold storage (REMOTE in _txn); bring it back first")
    if partition.parquet_size is None or partition.parquet_size < TAIL_SIZE:
        raise Damaged(f"{folder}: _txn commits no bytes of its Parquet file; restore _txn")
    return partition.parquet_size


def describe_file(file: CommittedFile) -> bytes:
    """A sidecar of the file as its committed bytes are; what is not live in them counts as unused."""
    unused = file.size - len(MAGIC) - file.footer_size - file.live_bytes()
    return build_sidecar(file.read_at, file.size, name=str(file.path), footer=file.footer, unused_bytes=unused)


def _read_metadata(footer: bytes) -> pq.FileMetaData:
    return pq.read_metadata(pa.BufferReader(MAGIC + footer))


def _map(path: Path, size: int) -> mmap.mmap:
    with local_reads(path, "_txn names this file, and it is not there; restore the partition's folder"):
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        length = os.fstat(descriptor).st_size
        if length < size:
            raise Damaged(f"{path}: it has {length} bytes, and _txn commits {size}; restore it from a backup")
        return mmap.mmap(descriptor, size, access=mmap.ACCESS_READ)
    finally:
        os.close(descriptor)
