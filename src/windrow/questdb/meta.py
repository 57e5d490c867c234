"""Reading `_meta`: the columns of a table, its unit of partitions, and the version of its structure.

A column keeps its index for ever. A dropped column keeps its record with a negative type. A retyped column is a new
record that points to the one it replaces; it takes the place and the Parquet field id of the first record of the chain.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

from windrow.errors import Damaged, Incompatible
from windrow.sidecar.types import NANOSECONDS, TAG_MASK, Tag
from windrow.storage.failures import local_reads

__all__ = ["Meta", "PartitionUnit", "TableColumn", "load_meta", "parse_meta"]

_HEADER = struct.Struct("<6iqqB")
_COLUMNS_OFFSET = 128
_RECORD = struct.Struct("<iq5i")
_LENGTH = struct.Struct("<i")
_VERSION = 426
_LONGEST_NAME = 2**16


class PartitionUnit(IntEnum):
    """How much time one partition holds."""

    DAY = 0
    MONTH = 1
    YEAR = 2
    NONE = 3
    HOUR = 4
    WEEK = 5


@dataclass(frozen=True, slots=True)
class TableColumn:
    """One column that the table has now."""

    name: str
    type: int
    """QuestDB's type code."""
    id: int
    """The Parquet field id, the same through every rename and change of type."""


@dataclass(frozen=True, slots=True)
class Meta:
    """The structure of a table at one version."""

    columns: tuple[TableColumn, ...]
    """In the order of `select *`."""
    unit: PartitionUnit
    timestamp: TableColumn | None
    """The designated timestamp."""
    structure_version: int
    table_id: int
    is_wal: bool

    @property
    def ticks_per_second(self) -> int:
        """How many units of the designated timestamp a second has."""
        return 10**9 if self.timestamp is not None and self.timestamp.type & NANOSECONDS else 10**6


def load_meta(table: Path) -> Meta:
    """The structure of the table in a folder as it is now."""
    path = table / "_meta"
    with local_reads(path, "no such file; give the folder of a QuestDB table, or create one"):
        return parse_meta(path.read_bytes(), str(path))


def parse_meta(data: bytes, name: str) -> Meta:
    """The structure in the bytes of a whole file; `name` is what errors call it."""
    if len(data) < _COLUMNS_OFFSET:
        raise _damaged(name, f"{len(data)} bytes, the header has {_COLUMNS_OFFSET}")
    count, unit, timestamp_index, version, table_id, _, _, structure_version, is_wal = _HEADER.unpack_from(data)
    if version != _VERSION:
        problem = f"{name}: it has version {version}, this Windrow reads {_VERSION}"
        raise Incompatible(f"{problem}; open the database once with QuestDB 9.3 or later, or use another Windrow")
    if unit not in PartitionUnit.__members__.values():
        raise _damaged(name, f"{unit} is no unit of partitions")
    if not 0 <= count <= (len(data) - _COLUMNS_OFFSET) // _RECORD.size:
        raise _damaged(name, f"{count} columns do not fit in {len(data)} bytes")
    records = [_RECORD.unpack_from(data, _COLUMNS_OFFSET + at * _RECORD.size) for at in range(count)]
    names = _names(data, _COLUMNS_OFFSET + count * _RECORD.size, count, name)
    roots = _roots([record[5] - 1 for record in records], name)
    live = sorted((roots[at], at) for at, record in enumerate(records) if record[0] > 0)
    _check_live(live, names, name)
    columns = {at: TableColumn(names[at], records[at][0], root) for root, at in live}
    timestamp = columns.get(timestamp_index)
    if timestamp_index >= 0 and (timestamp is None or timestamp.type & TAG_MASK != Tag.TIMESTAMP):
        raise _damaged(name, f"column {timestamp_index}, the designated timestamp, is dropped or no timestamp")
    return Meta(
        tuple(columns[at] for _, at in live), PartitionUnit(unit), timestamp, structure_version, table_id, bool(is_wal)
    )


def _names(data: bytes, position: int, count: int, name: str) -> list[str]:
    names = []
    for at in range(count):
        if position + _LENGTH.size > len(data):
            raise _damaged(name, f"the name of column {at} is cut off")
        (length,) = _LENGTH.unpack_from(data, position)
        start, position = position + _LENGTH.size, position + _LENGTH.size + 2 * length
        if not 0 < length <= _LONGEST_NAME or position > len(data):
            raise _damaged(name, f"the name of column {at} has {length} characters at byte {start}")
        try:
            names.append(data[start:position].decode("utf-16-le"))
        except UnicodeDecodeError as error:
            raise _damaged(name, f"the name of column {at} is no UTF-16") from error
    return names


def _roots(replaced: list[int], name: str) -> list[int]:
    """The first column of the chain that each column replaces; its own index where there is none."""
    roots: list[int] = []
    for at, before in enumerate(replaced):
        if before >= at:
            raise _damaged(name, f"column {at} replaces column {before}, which is not before it")
        roots.append(at if before < 0 else roots[before])
    return roots


def _check_live(live: list[tuple[int, int]], names: list[str], name: str) -> None:
    roots = [root for root, _ in live]
    if len(set(roots)) < len(roots):
        raise _damaged(name, "two columns replace the same one")
    spelled = [names[at].lower() for _, at in live]
    if len(set(spelled)) < len(spelled):
        raise _damaged(name, "two columns have one name")


def _damaged(name: str, problem: str) -> Damaged:
    return Damaged(f"{name}: {problem}; restore the file from a backup of the table")
