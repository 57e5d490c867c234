"""Reading `_txn`: which partitions a table has, and how many bytes of each Parquet file are committed.

The file holds two records, A and B. The version in the first eight bytes picks one: even is A, odd is B. A writer
fills the other record, then raises the version. A reader therefore reads the version before and after the record,
and starts again when it changed in between.
"""

from __future__ import annotations

import os
import struct
import time
from dataclasses import dataclass
from typing import Any, NamedTuple

from windrow.errors import Damaged, Incompatible, StorageError, WindrowError
from windrow.storage.failures import local_reads

__all__ = ["Partition", "Place", "Txn", "lag_checksum", "parse_txn", "place_of", "read_txn"]

HEADER_SIZE = 64
"""The version, and where the two records are; the records follow."""
VERSION = struct.Struct("<q")
PLACE = struct.Struct("<3i")
PLACE_OFFSETS = (8, 32)
"""Where the header describes record A and record B."""
FIXED = struct.Struct("<11q3i2q12xi")
"""A record up to its symbols; the twelve bytes before the count of symbols are undefined."""
FIXED_FIELDS = (
    "txn",
    "transient_rows",
    "fixed_rows",
    "min_timestamp",
    "max_timestamp",
    "structure_version",
    "data_version",
    "partition_table_version",
    "column_version",
    "truncate_version",
    "seq_txn",
    "checksum",
    "lag_txn_count",
    "lag_rows",
    "lag_min_timestamp",
    "lag_max_timestamp",
)
"""The fields of `Txn` in the fixed part, in order; the count of symbols follows."""
SYMBOL = struct.Struct("<2i")
TABLE_SIZE = struct.Struct("<i")
PARTITION = struct.Struct("<qQqQ")

ROWS_MASK = (1 << 44) - 1
SQUASH_SHIFT, SQUASH_MASK = 44, 0xFFFF
GENERATED_BIT, PARQUET_BIT, READ_ONLY_BIT, RESERVED_BIT = 1 << 60, 1 << 61, 1 << 62, 1 << 63
VALUE_MASK = (1 << 56) - 1
RESERVED_WORD_BITS = 0x3F << 56
VALID_BIT, REMOTE_BIT = 1 << 62, 1 << 63
CLEARED_WORDS = (0, (1 << 64) - 1)

_PAUSE = 0.0005


@dataclass(frozen=True, slots=True)
class Partition:
    """One partition that is attached to the table."""

    timestamp: int
    """Its low bound, in the table's unit of time."""
    rows: int
    name_txn: int
    """The suffix of its folder; -1 for none."""
    word: int
    """The version word: a Parquet file's committed size or a native partition's sequencer transaction, and flags."""
    flags: int = 0
    """The flag bits of the row count, in place."""

    @property
    def is_parquet(self) -> bool:
        """Whether its rows are in a Parquet file."""
        return bool(self.flags & PARQUET_BIT)

    @property
    def parquet_generated(self) -> bool:
        """Whether a Parquet file of its rows exists, whatever its format is."""
        return bool(self.flags & GENERATED_BIT)

    @property
    def read_only(self) -> bool:
        """Whether its rows must not change."""
        return bool(self.flags & READ_ONLY_BIT)

    @property
    def squash_count(self) -> int:
        """How many times split partitions were joined into it."""
        return self.flags >> SQUASH_SHIFT & SQUASH_MASK

    @property
    def remote(self) -> bool:
        """Whether its Parquet file is in cold storage instead of its folder."""
        return self.word not in CLEARED_WORDS and bool(self.word & REMOTE_BIT)

    @property
    def parquet_size(self) -> int | None:
        """The committed bytes of its Parquet file; None for a native partition."""
        if not self.is_parquet or self.word in CLEARED_WORDS:
            return None
        return self.word & VALUE_MASK

    @property
    def seq_txn(self) -> int | None:
        """The sequencer transaction of a native partition, where it was recorded."""
        if self.is_parquet or self.word in CLEARED_WORDS or not self.word & VALID_BIT:
            return None
        return self.word & VALUE_MASK


@dataclass(frozen=True, slots=True)
class Txn:
    """One committed state of a table."""

    version: int
    txn: int
    transient_rows: int
    """Rows of the last partition."""
    fixed_rows: int
    """Rows of all other partitions."""
    min_timestamp: int
    max_timestamp: int
    structure_version: int
    data_version: int
    partition_table_version: int
    column_version: int
    truncate_version: int
    seq_txn: int
    checksum: int
    """Covers the lag fields alone; `lag_checksum` computes it."""
    lag_txn_count: int
    """Negative when the lag is unordered."""
    lag_rows: int
    lag_min_timestamp: int
    lag_max_timestamp: int
    symbols: tuple[tuple[int, int], ...]
    """For each symbol column its distinct values, committed and transient."""
    partitions: tuple[Partition, ...]
    """By time. The last one has `transient_rows` rows, whatever the partition table holds."""


class Place(NamedTuple):
    """Where a record is in the file."""

    offset: int
    symbols_size: int
    partitions_size: int

    @property
    def size(self) -> int:
        """Bytes of the record."""
        return FIXED.size + self.symbols_size + TABLE_SIZE.size + self.partitions_size

    @property
    def end(self) -> int:
        """The byte after the record."""
        return self.offset + self.size


def parse_txn(data: bytes, name: str) -> Txn:
    """The committed state in the bytes of a whole file; `name` is what errors call it."""
    version, place = place_of(data[:HEADER_SIZE], name)
    return _parse_record(data[place.offset : place.end], version, place, name)


def read_txn(path: str | os.PathLike[str], *, deadline: float = 5.0) -> Txn:
    """The committed state of a file that a writer may be changing; tries again for up to `deadline` seconds."""
    name = os.fspath(path)
    with local_reads(name, "no such file; give the folder of a QuestDB table"):
        descriptor = os.open(name, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return _read_until(descriptor, name, time.monotonic() + deadline)
    finally:
        os.close(descriptor)


def place_of(header: bytes, name: str) -> tuple[int, Place]:
    """The version of a file, and the place of the record that it picks."""
    if len(header) < HEADER_SIZE:
        problem = f"{len(header)} bytes, the header has {HEADER_SIZE}"
        raise Damaged(f"{name}: {problem}; the file is cut short or no `_txn`, restore it")
    (version,) = VERSION.unpack_from(header)
    side = version & 1
    place = Place(*PLACE.unpack_from(header, PLACE_OFFSETS[side]))
    if version < 0:
        raise Damaged(f"{name}: version {version} is negative; restore the file")
    _check_place(place, "AB"[side], name)
    return version, place


def lag_checksum(lag_min: int, lag_max: int, txn: int, seq_txn: int, lag_rows: int, lag_txn_count: int) -> int:
    """QuestDB's checksum of the lag fields."""
    total = lag_min
    for value in (lag_max, txn, seq_txn, lag_rows, lag_txn_count):
        total = total * 31 + value
    total &= (1 << 64) - 1
    folded = (total ^ total >> 32) & 0xFFFFFFFF
    return folded - (1 << 32) if folded & 1 << 31 else folded


def _check_place(place: Place, side: str, name: str) -> None:
    if place.offset < HEADER_SIZE:
        problem = f"record {side} at byte {place.offset} overlaps the header"
    elif place.symbols_size < 0 or place.symbols_size % SYMBOL.size:
        problem = f"record {side} has {place.symbols_size} bytes of symbols, {SYMBOL.size} each"
    elif place.partitions_size < 0 or place.partitions_size % PARTITION.size:
        problem = f"record {side} has {place.partitions_size} bytes of partitions, {PARTITION.size} each"
    else:
        return
    raise Damaged(f"{name}: {problem}; restore the file")


def _read_until(descriptor: int, name: str, deadline: float) -> Txn:
    problem: WindrowError | None = None
    while True:
        try:
            txn = _read_once(descriptor, name)
        except Damaged as error:
            # A writer may be at work: what looks damaged is read again.
            problem, txn = error, None
        if txn is not None:
            return txn
        if time.monotonic() >= deadline:
            break
        time.sleep(_PAUSE)
    if problem is not None:
        raise problem
    raise StorageError(f"{name}: changed during every read; try again when fewer commits run", retryable=True)


def _read_once(descriptor: int, name: str) -> Txn | None:
    """One pass of the protocol; None when a commit came in between."""
    before = _read_version(descriptor)
    header = os.pread(descriptor, HEADER_SIZE, 0)
    version, place = place_of(header, name)
    if version != before or _read_version(descriptor) != version:
        return None
    record = os.pread(descriptor, place.size, place.offset)
    if _read_version(descriptor) != version:
        return None
    return _parse_record(record, version, place, name)


def _read_version(descriptor: int) -> int:
    raw = os.pread(descriptor, VERSION.size, 0)
    return VERSION.unpack(raw)[0] if len(raw) == VERSION.size else -1


def _parse_record(record: bytes, version: int, place: Place, name: str) -> Txn:
    if len(record) < place.size:
        problem = f"the record at byte {place.offset} has {place.size} bytes, the file {len(record)} of them"
        raise Damaged(f"{name}: {problem}; the file is cut short, restore it")
    fields = FIXED.unpack_from(record)
    txn, transient_rows, symbol_count = fields[0], fields[1], fields[-1]
    if txn != version:
        problem = f"record {'AB'[version & 1]} is of transaction {txn}, the version is {version}"
        raise Damaged(f"{name}: {problem}; a commit was torn, restore the file")
    if symbol_count * SYMBOL.size != place.symbols_size:
        problem = f"{symbol_count} symbols in the record, {place.symbols_size} bytes of them in the header"
        raise Damaged(f"{name}: {problem}; restore the file")
    (table_size,) = TABLE_SIZE.unpack_from(record, FIXED.size + place.symbols_size)
    if table_size != place.partitions_size:
        problem = f"{table_size} bytes of partitions in the record, {place.partitions_size} in the header"
        raise Damaged(f"{name}: {problem}; restore the file")
    symbols = tuple(SYMBOL.iter_unpack(record[FIXED.size : FIXED.size + place.symbols_size]))
    raw = record[place.size - place.partitions_size : place.size]
    partitions = _partitions(list(PARTITION.iter_unpack(raw)), transient_rows, name)
    numbers: dict[str, Any] = dict(zip(FIXED_FIELDS, fields, strict=False))
    return Txn(version=version, symbols=symbols, partitions=partitions, **numbers)


def _partitions(records: list[tuple[int, ...]], transient_rows: int, name: str) -> tuple[Partition, ...]:
    partitions = []
    for number, (timestamp, masked, name_txn, word) in enumerate(records):
        _check_flags(number, masked, word, name)
        rows = masked & ROWS_MASK if number < len(records) - 1 else transient_rows
        partitions.append(Partition(timestamp, rows, name_txn, word, masked & ~ROWS_MASK))
    for number in range(1, len(partitions)):
        if partitions[number].timestamp <= partitions[number - 1].timestamp:
            problem = f"partition {number} at {partitions[number].timestamp} is not after the one before"
            raise Damaged(f"{name}: {problem}; restore the file")
    return tuple(partitions)


def _check_flags(number: int, masked: int, word: int, name: str) -> None:
    unknown = masked & RESERVED_BIT
    if unknown:
        problem = f"partition {number} has the unknown flag bit 63 in its row count {masked:#x}"
    elif word not in CLEARED_WORDS and word & RESERVED_WORD_BITS:
        problem = f"partition {number} has unknown flag bits in its version word {word:#x}"
    else:
        return
    raise Incompatible(f"{name}: {problem}; a newer QuestDB wrote it, use a newer Windrow")
