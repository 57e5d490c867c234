"""The files of TPC-H three times over: as pyarrow writes them, without statistics, and with keys far apart."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.tpch import TABLES

__all__ = ["SETS", "written"]

_ROWS = 122_880
"""Of a row group, as DuckDB writes them."""
_SPARSE = 982_451_653 * 733
"""Keys that are multiplied by it have a range that says nothing of how many there are; they stay below 63 bits."""


def _as_they_are(rows: pa.Table) -> pa.Table:
    return rows


def _sparse(rows: pa.Table) -> pa.Table:
    for at, name in enumerate(rows.column_names):
        if name.endswith("key"):
            rows = rows.set_column(at, name, pa.array(rows.column(name).to_numpy().astype(np.int64) * _SPARSE))
    return rows


SETS: dict[str, tuple[Callable[[pa.Table], pa.Table], bool]] = {
    "normal": (_as_they_are, True),
    "nostats": (_as_they_are, False),
    "sparse": (_sparse, True),
}
"""What is done to the rows of each set, and whether its writer leaves statistics."""


def written(source: Path, folder: Path, name: str) -> Path:
    """Write one of the sets; a folder that has it is left as it is."""
    change, has_statistics = SETS[name]
    place = folder / name
    place.mkdir(parents=True, exist_ok=True)
    if not (place / "done").exists():
        for table in TABLES:
            _write(source / f"{table}.parquet", place / f"{table}.parquet", change, write_statistics=has_statistics)
        (place / "done").touch()
    return place


def _write(source: Path, target: Path, change: Callable[[pa.Table], pa.Table], *, write_statistics: bool) -> None:
    file = pq.ParquetFile(source)
    # texts of tpchgen-cli are views, which other readers see as plain text
    fields = [each.with_type(pa.string()) if each.type == pa.string_view() else each for each in file.schema_arrow]
    schema = change(pa.schema(fields).empty_table()).schema
    with pq.ParquetWriter(target, schema, write_statistics=write_statistics) as writer:
        for batch in file.iter_batches(_ROWS):
            rows = change(pa.Table.from_batches([batch]).cast(pa.schema(fields)))
            writer.write_table(rows.cast(schema), row_group_size=_ROWS)
