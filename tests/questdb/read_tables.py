"""Tables of QuestDB for tests: the golden ones, and ones of our own with any columns, units and partitions."""

from __future__ import annotations

import json
import shutil
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from windrow.questdb.folders import folder_name
from windrow.questdb.meta import PartitionUnit
from windrow.questdb.txn import GENERATED_BIT, PARQUET_BIT, Partition, Txn, parse_txn
from windrow.questdb.txn_writer import create_txn, empty_txn
from windrow.sidecar.build import build_sidecar

GOLDEN = Path(__file__).parents[1] / "data/golden/questdb-tables"
CASES = {case["case"]: case for case in json.loads((GOLDEN / "manifest.json").read_text())}
WITH_ROWS = [name for name, case in CASES.items() if not case.get("no_rows")]


def copy_case(case: str, folder: Path) -> Path:
    """A golden table that can be changed; of migrated ones only the first partition was saved."""
    target = folder / CASES[case]["directory"]
    shutil.copytree(GOLDEN / case, target, dirs_exist_ok=True)
    if case.startswith("migrated"):
        edit_txn(target, lambda txn: replace(txn, partitions=txn.partitions[:1], transient_rows=txn.partitions[0].rows))
    return target


def edit_txn(table: Path, change: Any) -> None:
    """Write `_txn` again as a change leaves it."""
    path = table / "_txn"
    txn: Txn = change(parse_txn(path.read_bytes(), str(path)))
    path.unlink()
    create_txn(path, txn)


def edit_partition(table: Path, number: int, **fields: Any) -> None:
    """Change fields of one partition of `_txn`."""

    def change(txn: Txn) -> Txn:
        partitions = list(txn.partitions)
        partitions[number] = replace(partitions[number], **fields)
        return replace(txn, partitions=tuple(partitions))

    edit_txn(table, change)


def golden_rows(case: str) -> tuple[list[str], list[list[Any]]]:
    """The columns and rows of QuestDB's own answer, those of Parquet partitions, without columns it does not show."""
    found = json.loads((GOLDEN / case / "rows.json").read_text())
    parquet = sum(each["rows"] for each in CASES[case]["partitions"] if each["parquet"])
    shown = [place for place, column in enumerate(found["columns"]) if column["type"] != "BINARY"]
    rows = [[row[place] for place in shown] for row in found["dataset"][:parquet]]
    floats = {place for place, at in enumerate(shown) if found["columns"][at]["type"] == "FLOAT"}
    for row in rows:
        for place in floats:
            row[place] = None if row[place] is None else float(np.float32(row[place]))
    return [found["columns"][place]["name"] for place in shown], rows


def as_json(table: pa.Table, columns: Sequence[str]) -> list[list[Any]]:
    """The rows of a table as QuestDB's /exec spells them."""
    spelled = [[_spelled(value) for value in table.column(name).to_pylist()] for name in columns]
    for place, name in enumerate(columns):
        if table.schema.field(name).type == pa.timestamp("ms", "UTC"):
            spelled[place] = [value and value[:-4] + "Z" for value in spelled[place]]
    return [list(row) for row in zip(*spelled, strict=True)]


def _spelled(value: Any) -> Any:
    if isinstance(value, datetime):
        digits = f"{getattr(value, 'nanosecond', 0):03}" if hasattr(value, "nanosecond") else ""
        return f"{value:%Y-%m-%dT%H:%M:%S.%f}{digits}Z"
    return str(value) if isinstance(value, Decimal) else value


@dataclass(frozen=True)
class MetaColumn:
    """A column of a `_meta` that is to be written."""

    name: str
    type: int
    replaces: int | None = None


def meta_bytes(
    columns: Sequence[MetaColumn],
    *,
    unit: PartitionUnit = PartitionUnit.DAY,
    timestamp: int = 0,
    structure_version: int = 0,
    version: int = 426,
) -> bytes:
    """A `_meta`; a negative type is a dropped column."""
    head = struct.pack("<6iqqB", len(columns), unit, timestamp, version, 1, 500_000, 600_000_000, structure_version, 0)
    records = b"".join(
        struct.pack("<iq5i", each.type, 0, 0, 256, 0, 0 if each.replaces is None else each.replaces + 1, 0)
        for each in columns
    )
    names = b"".join(struct.pack("<i", len(each.name)) + each.name.encode("utf-16-le") for each in columns)
    return head.ljust(128, b"\0") + records + names


@dataclass(frozen=True)
class MadePartition:
    """A partition that is to be written: field ids with their names, types and values."""

    timestamp: int
    columns: Mapping[int, tuple[str, int, pa.Array]]
    name_txn: int = -1


def make_table(
    folder: Path,
    meta: bytes,
    partitions: Sequence[MadePartition],
    *,
    unit: PartitionUnit = PartitionUnit.DAY,
    ticks_per_second: int = 10**6,
    structure_version: int = 0,
    sidecars: bool = True,
    row_group_size: int = 4,
    blooms: Sequence[str] = (),
) -> Path:
    """Write a table whose partitions are all Parquet; without `sidecars`, as QuestDB 9.3 did.

    Columns that are named in `blooms` have bloom filters.
    """
    folder.mkdir(parents=True)
    (folder / "_meta").write_bytes(meta)
    write = {
        "row_group_size": row_group_size,
        "compression": "zstd",
        "bloom_filter_options": {name: {"ndv": 100, "fpp": 0.001} for name in blooms} or None,
    }
    made = [_write_partition(folder, each, unit, ticks_per_second, sidecars, write) for each in partitions]
    rows = [each.rows for each in made]
    txn = replace(
        empty_txn(),
        structure_version=structure_version,
        partitions=tuple(made),
        fixed_rows=sum(rows[:-1]),
        transient_rows=rows[-1] if rows else 0,
    )
    create_txn(folder / "_txn", txn)
    return folder


def _write_partition(
    folder: Path, made: MadePartition, unit: PartitionUnit, ticks: int, sidecars: bool, write: Mapping[str, Any]
) -> Partition:
    place = folder / folder_name(unit, made.timestamp, made.name_txn, ticks_per_second=ticks)
    place.mkdir()
    fields = [
        pa.field(name, values.type, nullable=number != 0, metadata={"PARQUET:field_id": str(number)})
        for number, (name, _, values) in made.columns.items()
    ]
    noted = [{"column_type": kind, "column_top": 0, "id": number} for number, (_, kind, _) in made.columns.items()]
    noted[0]["column_type"] |= 1 << 17
    key = {"questdb": json.dumps({"version": 1, "schema": noted})}
    table = pa.table([values for _, _, values in made.columns.values()], schema=pa.schema(fields, metadata=key))
    path = place / "data.parquet"
    pq.write_table(table, path, **write)
    data = path.read_bytes()
    if sidecars:
        sidecar = build_sidecar(lambda at, length: data[at : at + length], len(data), name=str(path), extensions=False)
        (place / "_pm").write_bytes(sidecar)
    return Partition(made.timestamp, table.num_rows, made.name_txn, len(data), PARQUET_BIT | GENERATED_BIT)
