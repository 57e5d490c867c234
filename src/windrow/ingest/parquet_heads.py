"""What footers of many local Parquet files tell before their rows are read: columns, sizes and times of row groups.

Footers are read many at once by our own parser. Files that it cannot read are left to pyarrow, which says why.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windrow.errors import WindrowError
from windrow.parquet.arrow_schema import ARROW_SCHEMA
from windrow.parquet.chunk import HAS_MAX_VALUE, HAS_MIN_VALUE, HAS_NULL_COUNT
from windrow.parquet.footer import TAIL_SIZE, ParquetFooter, footer_length
from windrow.parquet.footers import parse_footers
from windrow.parquet.schema import PhysicalType

__all__ = ["Head", "Signature", "heads_of", "signature_of", "times_of"]

Longs = npt.NDArray[np.int64]

_TAIL = 64 * 1024
"""So many bytes are read first; most footers are smaller."""
_AT_ONCE = 256
_TICKS_A_MICROSECOND = {"MILLIS": (1000, 1), "MICROS": (1, 1), "NANOS": (1, 1000)}

Signature = tuple[bytes, str | None]
"""Files with the same one have the same columns."""


class Head(NamedTuple):
    """What a footer tells."""

    schema: pa.Schema
    rows: Longs
    """Rows of each row group."""
    sizes: Longs
    """Bytes of each row group, compressed."""
    memory: Longs
    """About how many bytes the rows of each row group take as Arrow data."""
    times: Longs | None
    """The first and the last microsecond of each row group; None where the footer does not tell it."""


def heads_of(names: Sequence[str], time: str | None, schema_of: Callable[[str], pa.Schema]) -> dict[str, Head]:
    """Return the heads of those local files that have one which can be read; `time` is the column of times.

    `schema_of` tells the columns of a file; of files with the same columns it is called once.
    """
    schemas: dict[Signature, pa.Schema] = {}
    heads = {}
    for start in range(0, len(names), _AT_ONCE):
        part = names[start : start + _AT_ONCE]
        with suppress(WindrowError, OSError):
            footers = parse_footers([_metadata(name) for name in part], part, [ARROW_SCHEMA])
            for name, footer in zip(part, footers, strict=True):
                signature = signature_of(footer)
                if signature not in schemas:
                    schemas[signature] = schema_of(name)
                heads[name] = _head(footer, schemas[signature], time)
    return heads


def signature_of(footer: ParquetFooter) -> Signature:
    """Return what files with the same columns have in common."""
    return footer.schema_bytes, footer.key_value.get(ARROW_SCHEMA)


def _metadata(name: str) -> bytes:
    """The footer of a file, without its length and its magic."""
    with Path(name).open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(size - _TAIL, 0))
        tail = file.read()
        needed = footer_length(tail[-TAIL_SIZE:], name)
        if len(tail) < needed <= size:
            file.seek(size - needed)
            tail = file.read()
    return tail[max(len(tail) - needed, 0) : -TAIL_SIZE]


def _head(footer: ParquetFooter, schema: pa.Schema, time: str | None) -> Head:
    chunks, rows = footer.chunks, footer.row_group_rows
    width = sum(_width(field.type) for field in schema)
    memory = rows * width + chunks["total_uncompressed_size"].sum(axis=1)
    times = None if time is None else times_of(footer, time)
    return Head(schema, rows, chunks["total_compressed_size"].sum(axis=1), memory, times)


def _width(kind: pa.DataType) -> int:
    """Bytes of a value as Arrow data, beside those that it has in the file."""
    try:
        return int(kind.bit_width + 7) // 8
    except ValueError:
        return 4


def times_of(footer: ParquetFooter, time: str) -> Longs | None:
    """The first and the last microsecond of each row group by its statistics; rows without a time are left out."""
    leaf = next((leaf for leaf in footer.leaves if leaf.path == (time,)), None)
    if leaf is None or leaf.element.physical_type != PhysicalType.INT64:
        return None
    meaning, needed = leaf.element.meaning, HAS_MIN_VALUE | HAS_MAX_VALUE | HAS_NULL_COUNT
    chunks = footer.chunks[:, leaf.index]
    if meaning is None or meaning.name != "TIMESTAMP" or bool((chunks["flags"] & needed != needed).any()):
        return None
    times, per = _TICKS_A_MICROSECOND[meaning.unit or "MICROS"]
    bounds = [
        int.from_bytes(footer.metadata[at : at + 8], "little", signed=True) * times // per
        for bound in ("min", "max")
        for at in chunks[f"{bound}_offset"].tolist()
    ]
    return np.array(bounds, np.int64).reshape(2, -1).T
