"""The sidecar of one partition at the size that `_txn` commits, checked against `_txn`, `_meta` and its file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from windrow.errors import Damaged, NotFound
from windrow.parquet.footer import MAGIC, TAIL_SIZE
from windrow.questdb.described import FileColumn
from windrow.questdb.folders import DATA, SIDECAR, partition_end
from windrow.questdb.meta import Meta
from windrow.questdb.txn import Partition
from windrow.questdb.types import column_type
from windrow.sidecar import Sidecar, layout
from windrow.sidecar.build import build_sidecar
from windrow.sidecar.layout import StatFlag
from windrow.storage.local import OpenedFile

__all__ = ["FileColumn", "file_columns", "open_sidecar"]


def open_sidecar(folder: Path, partition: Partition, meta: Meta, data: OpenedFile, *, recover: bool) -> Sidecar:
    """The sidecar of a partition; before 9.4 QuestDB wrote none, and the Parquet footer stands in for it."""
    path, size = folder / SIDECAR, partition.parquet_size or 0
    try:
        pm = Sidecar.open(path, parquet_size=size)
    except NotFound as error:
        if path.exists():
            pm = _newest(path, partition, recover=recover, problem=error)
        else:
            name = str(folder / DATA)
            pm = Sidecar.of(build_sidecar(data.read_at, size, name=name, extensions=False), name=name)
    _check_rows(pm, partition)
    _check_times(pm, partition, meta)
    _check_places(pm, data, folder / DATA)
    return pm


def file_columns(pm: Sidecar, meta: Meta) -> Iterator[FileColumn]:
    """Those columns of a table that a file has, by field id; a file without ids has them by place."""
    ids = pm.descriptors["id"]
    places: dict[int, int] = {}
    for place, number in enumerate(np.where(ids < 0, np.arange(len(ids)), ids).tolist()):
        places.setdefault(number, place)
    for column in meta.columns:
        if column.id in places:
            place = places[column.id]
            where = f"{pm.name}: column {column.name!r}"
            kind = column_type(int(pm.descriptors["type"][place]), where)
            yield FileColumn(column.name, place, kind, _has_nulls(pm, place))


def _has_nulls(pm: Sidecar, place: int) -> bool:
    """Whether a row group may hold nulls of a column."""
    if not pm.descriptors["max_def_level"][place]:
        return False
    chunks = pm.column(place).records
    is_free = ((chunks["stat_flags"] & StatFlag.NULL_COUNT_PRESENT) != 0) & (chunks["null_count"] == 0)
    return not bool(is_free.all())


def _newest(path: Path, partition: Partition, *, recover: bool, problem: NotFound) -> Sidecar:
    """The newest snapshot of a sidecar that does not know the committed size, where it can be the right one."""
    pm = Sidecar.open(path)
    rows, size = int(pm.row_counts.sum()), partition.parquet_size
    if rows != partition.rows or pm.parquet_size > (size or 0):
        raise Damaged(
            f"{path}: no footer describes the {size} bytes that _txn commits, and the newest has {rows} rows of "
            f"{partition.rows}; remove _pm and let QuestDB's migration write it again, or restore the partition"
        ) from problem
    if not recover:
        raise Damaged(
            f"{path}: no footer describes the {size} bytes that _txn commits; the newest one describes "
            f"{pm.parquet_size} bytes and has all {rows} rows. A QuestDB that was killed during a late insert leaves "
            "this, and refuses the table too; read it with recover=True and write the rows into a new table"
        ) from problem
    return pm


def _check_rows(pm: Sidecar, partition: Partition) -> None:
    rows = int(pm.row_counts.sum())
    if rows != partition.rows:
        raise Damaged(
            f"{pm.name}: it has {rows} rows, and _txn commits {partition.rows}; it is of another partition or version, "
            "restore the partition's folder"
        )


def _check_times(pm: Sidecar, partition: Partition, meta: Meta) -> None:
    """Rows lie in the time of their partition."""
    place = pm.designated_timestamp
    if place is None:
        return
    column = pm.column(place)
    minimum, maximum = column.stored_minimum, column.stored_maximum
    end = partition_end(meta.unit, partition.timestamp, ticks_per_second=meta.ticks_per_second)
    is_early = minimum.present & (minimum.values < partition.timestamp)
    is_late = maximum.present & (maximum.values >= end) if end is not None else np.zeros(1, bool)
    if is_early.any() or is_late.any():
        raise Damaged(
            f"{pm.name}: its times are not those of the partition; it is of another partition, restore the "
            "partition's folder"
        )


def _check_places(pm: Sidecar, data: OpenedFile, path: Path) -> None:
    """Chunks lie before the footer of the file, and the file has that footer."""
    footer = pm.footer
    chunks = pm.chunks
    starts, sizes = chunks["byte_range_start"], chunks["total_compressed"]
    limit = np.uint64(footer.parquet_footer_offset)
    if (starts < len(MAGIC)).any() or (starts > limit).any() or (sizes > limit - np.minimum(starts, limit)).any():
        raise Damaged(f"{pm.name}: a column chunk lies outside of the {pm.parquet_size} bytes of {path}; restore both")
    tail = data.read_at(pm.parquet_size - TAIL_SIZE, TAIL_SIZE)
    if tail != layout.U32.pack(footer.parquet_footer_length) + MAGIC:
        raise Damaged(
            f"{path}: its first {pm.parquet_size} bytes, which are committed, do not end with the footer that "
            f"{SIDECAR} describes; it was replaced or is damaged, restore the partition's folder"
        )
