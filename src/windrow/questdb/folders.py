"""The names of partition folders and of the files in them, and the time that each partition holds.

A folder is named after the low bound of its partition: `2024`, `2024-01`, `2024-W01`, `2024-01-01`, `2024-01-01T00`. A
split partition begins later than its unit does: `2024-04-02T200000-000001`. A name transaction follows after a dot.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from pathlib import Path

from windrow.errors import Damaged
from windrow.model.moments import EPOCH
from windrow.questdb.meta import Meta, PartitionUnit
from windrow.questdb.txn import Partition

__all__ = ["DATA", "SIDECAR", "folder_name", "partition_end", "partition_folder"]

DATA, SIDECAR = "data.parquet", "_pm"

_UNPARTITIONED = "default"
_FORMATS = {
    PartitionUnit.DAY: "%Y-%m-%d",
    PartitionUnit.MONTH: "%Y-%m",
    PartitionUnit.YEAR: "%Y",
    PartitionUnit.HOUR: "%Y-%m-%dT%H",
    PartitionUnit.WEEK: "%G-W%V",
}


def folder_name(unit: PartitionUnit, timestamp: int, name_txn: int = -1, *, ticks_per_second: int = 10**6) -> str:
    """The folder of the partition whose low bound is `timestamp`."""
    name = _UNPARTITIONED if unit is PartitionUnit.NONE else _name(unit, timestamp, ticks_per_second)
    return name if name_txn < 0 else f"{name}.{name_txn}"


def partition_folder(table: Path, meta: Meta, partition: Partition) -> Path:
    """The folder of a partition of the table in a folder."""
    ticks = meta.ticks_per_second
    return table / folder_name(meta.unit, partition.timestamp, partition.name_txn, ticks_per_second=ticks)


def partition_end(unit: PartitionUnit, timestamp: int, *, ticks_per_second: int = 10**6) -> int | None:
    """The first tick after the unit that a timestamp lies in; None without partitions, and at the end of time."""
    if unit is PartitionUnit.NONE:
        return None
    start = _floor(unit, _moment(timestamp // ticks_per_second))
    try:
        return int((_next(unit, start) - EPOCH).total_seconds()) * ticks_per_second
    except (OverflowError, ValueError):
        return None


def _name(unit: PartitionUnit, timestamp: int, ticks_per_second: int) -> str:
    seconds, ticks = divmod(timestamp, ticks_per_second)
    moment = _moment(seconds)
    if not ticks and moment == _floor(unit, moment):
        return moment.strftime(_FORMATS[unit]).rjust(4, "0")
    if ticks:
        width = len(str(ticks_per_second)) - 1
        return f"{moment:%Y-%m-%dT%H%M%S}-{ticks:0{width}}"
    if moment.minute or moment.second:
        return f"{moment:%Y-%m-%dT%H%M%S}"
    return f"{moment:%Y-%m-%dT%H}" if moment.hour else f"{moment:%Y-%m-%d}"


def _moment(seconds: int) -> datetime:
    try:
        return EPOCH + timedelta(seconds=seconds)
    except OverflowError as error:
        raise Damaged(f"_txn: a partition begins at second {seconds}, which is no date; restore the file") from error


def _floor(unit: PartitionUnit, moment: datetime) -> datetime:
    hour = moment.replace(minute=0, second=0, microsecond=0)
    if unit is PartitionUnit.HOUR:
        return hour
    day = hour.replace(hour=0)
    match unit:
        case PartitionUnit.WEEK:
            return day - timedelta(days=day.weekday())
        case PartitionUnit.MONTH:
            return day.replace(day=1)
        case PartitionUnit.YEAR:
            return day.replace(month=1, day=1)
    return day


def _next(unit: PartitionUnit, start: datetime) -> datetime:
    match unit:
        case PartitionUnit.HOUR:
            return start + timedelta(hours=1)
        case PartitionUnit.WEEK:
            return start + timedelta(days=7)
        case PartitionUnit.MONTH:
            return _midnight(start.year + start.month // 12, start.month % 12 + 1)
        case PartitionUnit.YEAR:
            return _midnight(start.year + 1, 1)
    return start + timedelta(days=1)


def _midnight(year: int, month: int) -> datetime:
    return datetime.combine(date(year, month, 1), datetime.min.time(), UTC)
