"""Bounds of the designated timestamp where a Parquet file has none: read from the column itself.

Row groups are searched by time. One without bounds would be read by every query, so its times are decoded once, when
the sidecar is made.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from windrow.errors import Damaged
from windrow.parquet.footer import MAGIC
from windrow.parquet.schema import PhysicalType
from windrow.sidecar import Sidecar
from windrow.sidecar.layout import StatFlag
from windrow.sidecar.rewrite import put_together, take_apart
from windrow.sidecar.types import TAG_MASK, Tag

__all__ = ["backfill_timestamps", "lacking_bounds"]

_BOUNDS = StatFlag.MIN_PRESENT | StatFlag.MIN_INLINED | StatFlag.MAX_PRESENT | StatFlag.MAX_INLINED
_FLAGS = _BOUNDS | StatFlag.MIN_EXACT | StatFlag.MAX_EXACT
_SIZES = 0x88
"""Eight bytes each."""


def lacking_bounds(sidecar: Sidecar) -> NDArray[np.int64]:
    """The row groups whose designated timestamp has values and no bounds."""
    position = sidecar.designated_timestamp
    if position is None:
        return np.empty(0, np.int64)
    column = sidecar.descriptors[position]
    if int(column["type"]) & TAG_MASK != Tag.TIMESTAMP or column["physical_type"] != PhysicalType.INT64:
        return np.empty(0, np.int64)
    records = sidecar.column(position).records
    return np.flatnonzero((records["num_values"] > 0) & (records["stat_flags"] & _BOUNDS != _BOUNDS))


def backfill_timestamps(data: bytes, parquet: Path, footer: bytes) -> bytes:
    """The sidecar `data` with bounds for its designated timestamp, decoded from the Parquet file.

    `footer` is the file's committed footer: bytes after it belong to nobody.
    """
    sidecar = Sidecar.of(data, name=str(parquet), verify=False)
    groups, position = lacking_bounds(sidecar), sidecar.designated_timestamp
    if not len(groups) or position is None:
        return data
    parts = take_apart(sidecar)
    bounds = parts.groups.long_bounds
    with pa.OSFile(str(parquet)) as file:
        opened = pq.ParquetFile(file, metadata=pq.read_metadata(pa.BufferReader(MAGIC + footer)))
        for group in groups.tolist():
            first, last = _extremes(opened, group, sidecar.column_name(position), str(parquet))
            if first is None or last is None:
                continue
            record = parts.groups.chunks[group, position : position + 1]
            record["stat_flags"] |= np.uint8(_FLAGS)
            record["stat_sizes"] = _SIZES
            record["min_stat"], record["max_stat"] = (np.array([value], "<i8").view("<u8") for value in (first, last))
            if bounds is not None:
                bounds.lengths[group, position] = 0
    return put_together(parts)


def _extremes(file: pq.ParquetFile, group: int, name: str, path: str) -> tuple[int | None, int | None]:
    """The smallest and largest time of a row group: its first and last one, where rows are in order."""
    try:
        times = file.read_row_group(group, columns=[name], use_threads=False).column(0)
        bounds = pc.min_max(times.cast(pa.int64())).as_py()
    except (pa.ArrowException, OSError) as error:
        problem = str(error).partition("\n")[0]
        raise Damaged(f"{path}: row group {group}, column {name!r}: {problem}; restore the file") from error
    return bounds["min"], bounds["max"]
