"""What a QuestDB table is made of: its partitions, how much of each file is committed, and what is unused in it.

Read from `_txn`, `_meta` and sidecars; no Parquet file is opened.
"""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from windrow.errors import Damaged, NotFound, WindrowError
from windrow.model.moments import instant
from windrow.model.shown import ShownByField
from windrow.questdb.folders import SIDECAR, partition_folder
from windrow.questdb.meta import Meta, load_meta
from windrow.questdb.registry import is_table_folder, table_name
from windrow.questdb.txn import Partition, Txn, read_txn
from windrow.sidecar import Sidecar

__all__ = ["PartitionState", "TableState", "inspect_table", "read_meta"]

_PAUSE = 0.005


@dataclass(frozen=True, slots=True, repr=False)
class PartitionState(ShownByField):
    """One partition."""

    folder: str
    format: str
    """"parquet", "native", or "cold" for a Parquet file in cold storage."""
    rows: int
    parquet_bytes: int | None
    """The committed size of the Parquet file."""
    sidecar_bytes: int | None
    """The committed size of the sidecar; None without one."""
    row_groups: int | None
    footers: int | None
    """Snapshots in the chain of the sidecar."""
    unused_bytes: int | None
    """Bytes of the Parquet file that no row group of this commit uses."""
    problem: str | None = None
    """Why the sidecar cannot be used."""
    timestamp: int = 0
    """The low bound of its time, in the table's unit."""

    @property
    def unused_ratio(self) -> float | None:
        """The share of the Parquet file that is unused."""
        if self.unused_bytes is None or not self.parquet_bytes:
            return None
        return self.unused_bytes / self.parquet_bytes

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {**asdict(self), "unused_ratio": self.unused_ratio}


@dataclass(frozen=True, slots=True, repr=False)
class TableState(ShownByField):
    """One table at one commit."""

    table: str
    folder: str
    unit: str
    """What a partition holds: a day, a month."""
    columns: int
    is_wal: bool
    version: int
    """The version of `_txn`."""
    seq_txn: int
    structure_version: int
    rows: int
    first_time: str | None
    last_time: str | None
    partitions: tuple[PartitionState, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        plain = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return plain | {"partitions": [partition.to_dict() for partition in self.partitions]}

    def summary(self) -> dict[str, Any]:
        """Return plain values, the partitions summed up."""
        parquet = [each for each in self.partitions if each.format != "native"]
        return self.to_dict() | {
            "partitions": len(self.partitions),
            "parquet_partitions": len(parquet),
            "parquet_bytes": sum(each.parquet_bytes or 0 for each in parquet),
            "sidecars": sum(each.sidecar_bytes is not None for each in parquet),
            "unused_bytes": sum(each.unused_bytes or 0 for each in parquet),
        }


def inspect_table(folder: Path) -> TableState:
    """The newest commit of the table in a folder."""
    txn = read_txn(folder / "_txn")
    meta = read_meta(folder, txn.structure_version)
    return TableState(
        table=table_name(folder),
        folder=str(folder),
        unit=meta.unit.name.lower(),
        columns=len(meta.columns),
        is_wal=meta.is_wal,
        version=txn.version,
        seq_txn=txn.seq_txn,
        structure_version=txn.structure_version,
        rows=sum(partition.rows for partition in txn.partitions),
        first_time=_moment(txn.min_timestamp, txn, meta),
        last_time=_moment(txn.max_timestamp, txn, meta),
        partitions=tuple(_state(folder, partition, meta) for partition in txn.partitions),
    )


def read_meta(folder: Path, version: int | None = None, *, deadline: float = 2.0) -> Meta:
    """The structure of the table in a folder, once it has this version; after the deadline, the one that is there.

    QuestDB replaces the file before it commits: for a moment there is none, or one that is ahead of `_txn`.
    """
    end = time.monotonic() + deadline
    while True:
        try:
            meta = load_meta(folder)
            if version is None or meta.structure_version == version or time.monotonic() >= end:
                return meta
        except (NotFound, Damaged):
            if time.monotonic() >= end or not is_table_folder(folder):
                raise
        time.sleep(_PAUSE)


def _moment(timestamp: int, txn: Txn, meta: Meta) -> str | None:
    if not txn.partitions:
        return None
    try:
        return instant(timestamp * 10**6 // meta.ticks_per_second).isoformat()
    except OverflowError:
        return None


def _state(table: Path, partition: Partition, meta: Meta) -> PartitionState:
    folder = partition_folder(table, meta, partition)
    kind = "cold" if partition.remote and not partition.parquet_generated else "parquet"
    size, path = partition.parquet_size, folder / SIDECAR
    state = PartitionState(folder.name, kind, partition.rows, size, None, None, None, None, None, partition.timestamp)
    if not partition.is_parquet:
        return replace(state, format="native")
    try:
        sidecar = Sidecar.open(path, parquet_size=size)
        footers = sum(1 for _ in sidecar.snapshots())
    except WindrowError as error:
        return replace(state, problem=str(error) if path.exists() else None)
    return replace(
        state,
        sidecar_bytes=sidecar.header.committed_size,
        row_groups=sidecar.row_group_count,
        footers=footers,
        unused_bytes=sidecar.footer.unused_bytes,
    )
