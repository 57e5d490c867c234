"""The columns of a file: by which way each becomes chunks, and how these are encoded."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import cache
from importlib.metadata import version
from typing import Any

import numpy as np
import pyarrow as pa

from windrow.parquet.chunk_writer import ChunkWriter, EncodedChunk, Pages
from windrow.parquet.file_writer import FileSchema, arrow_chunks
from windrow.parquet.schema import Leaf
from windrow.splits.blooms import BLOOM_FILTER, blooms, has_filter

__all__ = ["ColumnPlan", "Way", "created_by", "encode", "plan_columns"]


@cache
def created_by() -> str:
    """How our files name their writer."""
    return f"windrow version {version('windrow')}"


class Way(Enum):
    """How a column is held in memory, and by whom it is written."""

    FIXED = "fixed"
    """One value of 4 or 8 bytes for each row."""
    CODED = "coded"
    """Runs of codes of texts."""
    ARROW = "arrow"
    """Whatever else there is, by pyarrow."""


@dataclass(frozen=True, eq=False)
class ColumnPlan:
    """A column of a file."""

    field: pa.Field
    way: Way
    leaves: tuple[Leaf, ...]
    """Its leaves in the file."""
    dtype: np.dtype[Any] | None
    """How fixed-width values compare."""
    bloom: bool = False
    """Whether its chunks get a bloom filter."""

    @property
    def name(self) -> str:
        """Its name."""
        return str(self.field.name)


def plan_columns(schema: FileSchema, *, plain: bool = False, blooms: Collection[str] = ()) -> list[ColumnPlan]:
    """The columns of a file, some with bloom filters; with `plain` all of them go by pyarrow."""
    leaves: dict[str, list[Leaf]] = {}
    for leaf in schema.footer.leaves:
        leaves.setdefault(leaf.path[0], []).append(leaf)
    planned = []
    for field in schema.arrow:
        own = tuple(leaves.get(field.name, ()))
        way, dtype = (Way.ARROW, None) if plain else _way(field.type)
        planned.append(ColumnPlan(field, way, own, dtype, field.name in blooms and has_filter(field.type)))
    return planned


def _way(kind: pa.DataType) -> tuple[Way, np.dtype[Any] | None]:
    types = pa.types
    if types.is_string(kind) or types.is_binary(kind):
        return Way.CODED, None
    if types.is_float32(kind) or types.is_float64(kind):
        return Way.FIXED, np.dtype(f"f{kind.bit_width // 8}")
    if types.is_integer(kind):
        return Way.FIXED, np.dtype(f"{'u' if types.is_unsigned_integer(kind) else 'i'}{max(kind.bit_width // 8, 4)}")
    if types.is_timestamp(kind) or types.is_date32(kind) or types.is_time(kind):
        return Way.FIXED, np.dtype(f"i{kind.bit_width // 8}")
    return Way.ARROW, None


def encode(
    values: Any, column: ColumnPlan, rows: Sequence[int], granule_rows: int, encoding: str | None = None
) -> list[list[EncodedChunk]]:
    """The chunks of row groups of so many rows: for each row group one for each leaf.

    `encoding` is for what pyarrow writes, in its words; without it, pyarrow tries a dictionary.
    """
    if column.way is Way.ARROW:
        bloom = BLOOM_FILTER if column.bloom else None
        return arrow_chunks(values, column.field, rows, granule_rows, bloom=bloom, encoding=encoding)
    leaf = column.leaves[0]
    writer = ChunkWriter(
        leaf.path,
        int(leaf.element.physical_type or 0),
        bool(leaf.max_definition),
        column.dtype,
    )
    write = writer.coded if column.way is Way.CODED else writer.fixed
    chunks = write(values, Pages.of(rows, granule_rows))
    if column.bloom:
        chunks = [replace(chunk, bloom=bloom) for chunk, bloom in zip(chunks, blooms(values, rows), strict=True)]
    return [[chunk] for chunk in chunks]
