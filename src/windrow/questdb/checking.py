"""Checks a QuestDB table: `_txn`, `_meta`, every sidecar and every Parquet file must tell the same."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from windrow.errors import WindrowError
from windrow.model.shown import ShownVerdict
from windrow.parquet.footer import MAGIC
from windrow.questdb.folders import DATA, SIDECAR, partition_end, partition_folder
from windrow.questdb.inspection import read_meta
from windrow.questdb.meta import Meta
from windrow.questdb.migration import committed_bytes
from windrow.questdb.registry import table_name
from windrow.questdb.txn import Partition, Txn, read_txn
from windrow.sidecar import Sidecar
from windrow.sidecar.build import footer_bytes_of, footer_of
from windrow.sidecar.check import check_against, check_bytes
from windrow.sidecar.convert import Read

__all__ = ["TableCheck", "TableFinding", "check_table"]


@dataclass(frozen=True, slots=True)
class TableFinding:
    """Something wrong with a table."""

    where: str
    problem: str


@dataclass(frozen=True, slots=True, repr=False)
class TableCheck(ShownVerdict):
    """The scope and the findings of a check."""

    table: str
    folder: str
    partitions: int
    parquet_partitions: int
    cold_partitions: int
    """Parquet files in cold storage, which are not looked at."""
    missing_sidecars: tuple[str, ...]
    """Partitions without one; `windrow migrate` writes them."""
    rows_read: int | None
    """Rows that were decoded, all page checksums verified; None without `data`."""
    findings: tuple[TableFinding, ...]


def check_table(folder: Path, *, data: bool = False) -> TableCheck:
    """Check the newest commit of a table; with `data`, decode every row and verify page checksums, where there are any.

    QuestDB may replace files while they are looked at: findings count only if no commit came in between.
    """
    while True:
        txn = read_txn(folder / "_txn")
        check = _check_table(folder, txn, data=data)
        if check.sound or read_txn(folder / "_txn").version == txn.version:
            return check


def _check_table(folder: Path, txn: Txn, *, data: bool) -> TableCheck:
    meta = read_meta(folder, txn.structure_version)
    findings = list(_check_commit(folder, txn, meta))
    parquet = [(each, partition_folder(folder, meta, each)) for each in txn.partitions if each.is_parquet]
    local = [(each, path) for each, path in parquet if not each.remote or each.parquet_generated]
    rows = 0
    for partition, path in local:
        checked = _Partition(path, partition, meta)
        findings += checked.findings(data=data)
        rows += checked.rows_read
    return TableCheck(
        table=table_name(folder),
        folder=str(folder),
        partitions=len(txn.partitions),
        parquet_partitions=len(parquet),
        cold_partitions=len(parquet) - len(local),
        missing_sidecars=tuple(path.name for _, path in local if not (path / SIDECAR).exists()),
        rows_read=rows if data else None,
        findings=tuple(findings),
    )


def _check_commit(folder: Path, txn: Txn, meta: Meta) -> Iterator[TableFinding]:
    name = str(folder / "_txn")
    if meta.structure_version != txn.structure_version:
        problem = f"structure version {txn.structure_version}, `_meta` has {meta.structure_version}"
        yield TableFinding(name, problem)
    rows = sum(partition.rows for partition in txn.partitions)
    if rows != txn.fixed_rows + txn.transient_rows:
        yield TableFinding(name, f"{txn.fixed_rows + txn.transient_rows} rows in all, its partitions have {rows}")
    if txn.partitions and meta.timestamp is not None:
        first, last = txn.partitions[0].timestamp, txn.partitions[-1].timestamp
        end = partition_end(meta.unit, last, ticks_per_second=meta.ticks_per_second)
        if txn.min_timestamp < first or (end is not None and txn.max_timestamp >= end):
            problem = f"times {txn.min_timestamp} to {txn.max_timestamp} are outside of its partitions"
            yield TableFinding(name, problem)


class _Partition:
    """A partition on its way through the checks."""

    def __init__(self, folder: Path, partition: Partition, meta: Meta) -> None:
        self.folder, self.partition, self.meta = folder, partition, meta
        self.rows_read = 0

    def findings(self, *, data: bool) -> list[TableFinding]:
        """All that is wrong; an error of one file ends its checks."""
        size, path = self.partition.parquet_size, self.folder / DATA
        if size is None:
            return [TableFinding(str(self.folder), "it is Parquet, and `_txn` has no size of its file")]
        try:
            with committed_bytes(path, size) as read:
                findings = [*self._check_sidecar(read, size), *self._check_rows(read, size)]
                return [*findings, *self._check_data(read, size)] if data and not findings else findings
        except WindrowError as error:
            return [TableFinding(str(path), str(error))]

    def _check_sidecar(self, read: Read, size: int) -> Iterator[TableFinding]:
        path = self.folder / SIDECAR
        if not path.exists():
            return
        for each in check_bytes(path.read_bytes(), name=str(path)):
            yield TableFinding(str(path), f"{each.where}: {each.problem}")
        try:
            sidecar = Sidecar.open(path, parquet_size=size)
        except WindrowError as error:
            yield TableFinding(str(path), str(error))
            return
        for each in check_against(sidecar, footer_of(read, size, name=str(self.folder / DATA)), size):
            yield TableFinding(str(path), f"{each.where}: {each.problem}")

    def _check_rows(self, read: Read, size: int) -> Iterator[TableFinding]:
        path = str(self.folder / DATA)
        rows = int(footer_of(read, size, name=path).row_group_rows.sum())
        if rows != self.partition.rows:
            yield TableFinding(path, f"{rows} rows, `_txn` has {self.partition.rows}")

    def _check_data(self, read: Read, size: int) -> Iterator[TableFinding]:
        path = self.folder / DATA
        footer = pq.read_metadata(pa.BufferReader(MAGIC + footer_bytes_of(read, size, name=str(path))))
        with pa.OSFile(str(path)) as file:
            opened = pq.ParquetFile(file, metadata=footer, page_checksum_verification=True)
            for group in range(footer.num_row_groups):
                try:
                    self.rows_read += opened.read_row_group(group, use_threads=False).num_rows
                except (pa.ArrowException, OSError) as error:
                    problem = str(error).partition("\n")[0]
                    yield TableFinding(str(path), f"row group {group} cannot be decoded: {problem}")
