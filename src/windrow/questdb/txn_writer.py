"""Writing `_txn`: a commit fills the record that readers do not use, then raises the version.

Two forces to the disk order it: the record lasts before the version that picks it, and the version lasts before the
commit returns. A crash in between leaves the old version, whose record was not touched.
"""

from __future__ import annotations

import os
import struct
from dataclasses import replace
from pathlib import Path

from windrow.errors import InvalidInput
from windrow.questdb.txn import (
    FIXED,
    FIXED_FIELDS,
    HEADER_SIZE,
    PARTITION,
    PLACE,
    PLACE_OFFSETS,
    ROWS_MASK,
    SYMBOL,
    TABLE_SIZE,
    VERSION,
    Partition,
    Place,
    Txn,
    lag_checksum,
    parse_txn,
    place_of,
)
from windrow.storage.failures import local_reads
from windrow.storage.file_changes import Files

__all__ = ["TxnWriter", "create_txn", "empty_txn"]

EMPTY_MIN, EMPTY_MAX = 2**63 - 1, -(2**63)
"""The least and the greatest timestamp of a table without rows."""
_FAST = (
    slice(0, 16),  # txn, transient rows
    slice(32, 40),  # greatest timestamp
    slice(80, 128),  # sequencer transaction, lag, undefined bytes
)
"""The bytes of a record's fixed part that a fast commit may change."""


def empty_txn(*, symbol_columns: int = 0) -> Txn:
    """The state of a new table."""
    return Txn(
        version=0,
        txn=0,
        transient_rows=0,
        fixed_rows=0,
        min_timestamp=EMPTY_MIN,
        max_timestamp=EMPTY_MAX,
        structure_version=0,
        data_version=0,
        partition_table_version=0,
        column_version=0,
        truncate_version=0,
        seq_txn=0,
        checksum=0,
        lag_txn_count=0,
        lag_rows=0,
        lag_min_timestamp=EMPTY_MIN,
        lag_max_timestamp=EMPTY_MAX,
        symbols=((0, 0),) * symbol_columns,
        partitions=(),
    )


def create_txn(path: str | os.PathLike[str], txn: Txn, files: Files | None = None) -> None:
    """Put a new file in place, durably; readers see all of it or none."""
    record, place = _encode(_numbered(txn, txn.version), HEADER_SIZE, fast=False)
    header = bytearray(HEADER_SIZE)
    VERSION.pack_into(header, 0, txn.version)
    PLACE.pack_into(header, PLACE_OFFSETS[txn.version & 1], *place)
    (files or Files()).publish(Path(path), bytes(header) + record)


class TxnWriter:
    """The one writer of a file; a second one would lose commits."""

    def __init__(self, path: str | os.PathLike[str], files: Files | None = None) -> None:
        self._path, self._files = Path(path), files or Files()
        with local_reads(self._path, "no such file; create the table first"):
            data = self._path.read_bytes()
        self.current = parse_txn(data, str(self._path))
        _, self._place = place_of(data[:HEADER_SIZE], str(self._path))

    def commit(self, txn: Txn) -> Txn:
        """Make a state the current one: a whole new record. Returns it with its transaction number."""
        new = _numbered(txn, self.current.version + 1)
        size = len(_encode(new, 0, fast=False)[0])
        offset = HEADER_SIZE if HEADER_SIZE + size <= self._place.offset else self._place.end
        record, place = _encode(new, offset, fast=False)
        self._files.write_at(self._path, offset, record)
        self._files.write_at(self._path, PLACE_OFFSETS[new.version & 1], PLACE.pack(*place))
        return self._publish(new, place)

    def commit_fast(self, txn: Txn) -> Txn:
        """Make a state the current one by patching the record before last; a whole record where more has changed.

        Only rows of the last partition, the greatest timestamp, the sequencer transaction, the lag and the symbol
        counts may differ from that record.
        """
        new = _numbered(txn, self.current.version + 1)
        place = self._other_place()
        if place is None:
            return self.commit(txn)
        with self._path.open("rb") as file:
            file.seek(place.offset)
            old = file.read(place.size)
        record, _ = _encode(new, place.offset, fast=True)
        if not _same_structure(old, record, place):
            return self.commit(txn)
        self._files.write_at(self._path, place.offset, record[: FIXED.size + place.symbols_size])
        return self._publish(new, place)

    def _publish(self, new: Txn, place: Place) -> Txn:
        self._files.sync(self._path)
        self._files.write_at(self._path, 0, VERSION.pack(new.version))
        self._files.sync(self._path)
        self.current, self._place = new, place
        return new

    def _other_place(self) -> Place | None:
        """Where the record before last is; None where it cannot be used."""
        with self._path.open("rb") as file:
            header = file.read(HEADER_SIZE)
        place = Place(*PLACE.unpack_from(header, PLACE_OFFSETS[~self.current.version & 1]))
        apart = place.end <= self._place.offset or place.offset >= self._place.end
        if place.offset < HEADER_SIZE or not apart or place[1:] != self._place[1:]:
            return None
        return place


def _numbered(txn: Txn, version: int) -> Txn:
    """The state under a version, with all that follows from it."""
    partitions = txn.partitions
    if partitions and partitions[-1].rows != txn.transient_rows:
        problem = f"{txn.transient_rows} transient rows, the last partition has {partitions[-1].rows}"
        raise InvalidInput(f"_txn: {problem}; they are the same rows")
    if any(not 0 <= partition.rows <= ROWS_MASK for partition in partitions):
        raise InvalidInput(f"_txn: a partition has from 0 to {ROWS_MASK} rows")
    return replace(txn, version=version, txn=version)


def _encode(txn: Txn, offset: int, *, fast: bool) -> tuple[bytes, Place]:
    lag = txn.lag_min_timestamp, txn.lag_max_timestamp, txn.txn, txn.seq_txn, txn.lag_rows
    # QuestDB drops the sign in a whole record and leaves it in a patched one.
    checksum = lag_checksum(*lag, txn.lag_txn_count if fast else abs(txn.lag_txn_count))
    stamped = replace(txn, checksum=checksum)
    try:
        fixed = FIXED.pack(*(getattr(stamped, field) for field in FIXED_FIELDS), len(txn.symbols))
        symbols = b"".join(SYMBOL.pack(*symbol) for symbol in txn.symbols)
        table = b"".join(map(_encode_partition, txn.partitions))
    except struct.error as error:
        raise InvalidInput(f"_txn: a number of transaction {txn.txn} is out of range: {error}") from error
    return fixed + symbols + TABLE_SIZE.pack(len(table)) + table, Place(offset, len(symbols), len(table))


def _encode_partition(partition: Partition) -> bytes:
    return PARTITION.pack(partition.timestamp, partition.flags | partition.rows, partition.name_txn, partition.word)


def _same_structure(old: bytes, new: bytes, place: Place) -> bool:
    """Whether two records of one place differ only where a fast commit may change them."""
    if len(old) != len(new):
        return False
    first, second = bytearray(old), bytearray(new)
    last = place.size - PARTITION.size + VERSION.size
    symbols = slice(FIXED.size, FIXED.size + place.symbols_size)
    for record in (first, second):
        for part in (*_FAST, symbols):
            record[part] = bytes(len(record[part]))
        if place.partitions_size:
            # Readers take the rows of the last partition from the transient rows.
            (masked,) = struct.unpack_from("<Q", record, last)
            struct.pack_into("<Q", record, last, masked & ~ROWS_MASK)
    return first == second
