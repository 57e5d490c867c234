"""The footer of a Parquet file as arrays: one record for each chunk, made in one pass; statistics stay where they are.

A file ends with its metadata (thrift), the length of that in four bytes, and `PAR1`. `footer_length` tells from the
last eight bytes how many the footer has, `read_footer` reads it from the end of a file, `parse_footer` from the
metadata alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from windrow.errors import Damaged, Incompatible, InvalidInput
from windrow.parquet import footer_grammar as g
from windrow.parquet.chunk import ALL_FLAGS, ENCRYPTED, KNOWN_ENCODINGS, UNKNOWN_ENCODING
from windrow.parquet.grammar import Records
from windrow.parquet.schema import Leaf, LogicalType, PhysicalType, Repetition, SchemaElement, leaves_of

__all__ = ["MAGIC", "TAIL_SIZE", "ParquetFooter", "SortingColumn", "footer_length", "parse_footer", "read_footer"]

MAGIC = b"PAR1"
ENCRYPTED_MAGIC = b"PARE"
TAIL_SIZE = 8
"""The bytes at the very end of a file that say how long the footer is."""

_UNITS = (None, "MILLIS", "MICROS", "NANOS")


class SortingColumn(NamedTuple):
    """A column that a row group declares to be sorted by."""

    column: int
    descending: bool
    nulls_first: bool


@dataclass(frozen=True, eq=False)
class ParquetFooter:
    """The footer of a Parquet file, parsed."""

    metadata: bytes
    """The thrift bytes; positions of statistics, schema and column orders count from their first."""
    version: int
    num_rows: int
    created_by: str | None
    key_value: dict[str, str | None]
    schema: tuple[SchemaElement, ...]
    leaves: tuple[Leaf, ...]
    column_orders: tuple[int, ...] | None
    """For each leaf which kind of order its statistics follow (1 is the order of its type, 0 is undefined)."""
    row_group_rows: npt.NDArray[np.int64]
    row_group_bytes: npt.NDArray[np.int64]
    row_group_sorting: tuple[tuple[SortingColumn, ...] | None, ...]
    chunks: Records
    """FOOTER_CHUNK records, one row for each row group and one column for each leaf."""
    element_positions: npt.NDArray[np.int64]
    """Where each schema element begins in the metadata, and last where the schema list ends."""
    schema_span: tuple[int, int]
    """First byte of the schema list (its header) and the byte after its last."""
    column_orders_span: tuple[int, int] | None
    row_group_positions: npt.NDArray[np.int64] | None = None
    """Where each row group begins in the metadata, and last where their list ends."""

    @cached_property
    def row_group_structs(self) -> list[bytes]:
        """Each row group as it stands in the file."""
        if self.row_group_positions is None:
            raise InvalidInput("a footer that was not parsed from a file has no bytes of row groups; parse the file's")
        return [self.metadata[first:last] for first, last in pairwise(self.row_group_positions.tolist())]

    @cached_property
    def schema_bytes(self) -> bytes:
        """The schema list as it stands in the file, its header included."""
        return self.metadata[slice(*self.schema_span)]

    @cached_property
    def column_orders_bytes(self) -> bytes | None:
        """The list of column orders as it stands in the file, its header included."""
        return None if self.column_orders_span is None else self.metadata[slice(*self.column_orders_span)]


def footer_length(tail8: bytes, name: str) -> int:
    """How many bytes at the end of a file are its footer (metadata, length and magic), by the last eight."""
    length, magic = tail8[-TAIL_SIZE:-4], tail8[-4:]
    if magic == ENCRYPTED_MAGIC:
        raise Incompatible(
            f"{name}: the footer is encrypted; Windrow reads no encrypted Parquet, decrypt the file first"
        )
    if magic != MAGIC or len(length) != 4:
        raise Damaged(f"{name}: ends with {magic!r} and not with {MAGIC!r}; the file is cut short or no Parquet")
    return int.from_bytes(length, "little") + TAIL_SIZE


def read_footer(tail: bytes, *, name: str) -> ParquetFooter:
    """Read the footer from bytes that end where the file ends."""
    needed = footer_length(tail[-TAIL_SIZE:], name)
    if needed > len(tail):
        raise Damaged(
            f"{name}: the footer has {needed} bytes, of which {len(tail)} are here;"
            f" read the last {needed} bytes of the file, and if it has no more, it is damaged"
        )
    return parse_footer(tail[len(tail) - needed : len(tail) - TAIL_SIZE], name=name)


def parse_footer(metadata: bytes | memoryview, *, name: str = "Parquet") -> ParquetFooter:
    """Read the footer from its thrift bytes alone; `name` is what an error calls the file."""
    data = bytes(metadata)
    tables = g.FOOTER_GRAMMAR.walk(data, name=name).tables
    file, groups = tables["file"][0], tables["groups"]
    schema = _schema(data, tables["schema"], name)
    leaves = leaves_of(schema, name=name)
    schema_end = int(file["schema_offset"] + file["schema_length"])
    return ParquetFooter(
        metadata=data,
        version=int(file["version"]),
        num_rows=int(file["num_rows"]),
        created_by=_created_by(data, file),
        key_value=_key_values(data, tables["key_values"]),
        schema=schema,
        leaves=leaves,
        column_orders=_column_orders(file, tables["orders"], leaves, name),
        row_group_rows=groups["num_rows"].copy(),
        row_group_bytes=groups["total_byte_size"].copy(),
        row_group_sorting=_sorting(groups, tables["sorting"]),
        chunks=_chunks(file, groups, tables["chunks"], leaves, name),
        element_positions=np.append(tables["schema"]["place"], schema_end),
        schema_span=(int(file["schema_offset"]), schema_end),
        column_orders_span=_column_orders_span(file),
        row_group_positions=np.append(groups["place"], file["row_groups_offset"] + file["row_groups_length"]),
    )


def _text(data: bytes, offset: int, length: int) -> str:
    """Text that nothing depends on: bytes that are no UTF-8 become surrogates."""
    return data[offset : offset + length].decode(errors="surrogateescape")


def _created_by(data: bytes, file: np.void) -> str | None:
    if not file["flags"] & g.HAS_CREATED_BY:
        return None
    return _text(data, int(file["created_by_offset"]), int(file["created_by_length"]))


def _key_values(data: bytes, table: Records) -> dict[str, str | None]:
    return {
        _text(data, key_offset, key_length): _text(data, offset, length) if flags & g.HAS_VALUE else None
        for flags, key_offset, key_length, offset, length in table.tolist()
    }


def _sorting(groups: Records, table: Records) -> tuple[tuple[SortingColumn, ...] | None, ...]:
    if not table.size and not (groups["flags"] & g.HAS_SORTING).any():
        return (None,) * groups.size
    columns = [SortingColumn(column, bool(descending), bool(first)) for _, column, descending, first in table.tolist()]
    spans = zip(
        groups["flags"].tolist(), groups["sorting_first"].tolist(), groups["sorting_count"].tolist(), strict=True
    )
    return tuple(tuple(columns[at : at + count]) if flags & g.HAS_SORTING else None for flags, at, count in spans)


def _column_orders(file: np.void, table: Records, leaves: tuple[Leaf, ...], name: str) -> tuple[int, ...] | None:
    if not file["flags"] & g.HAS_COLUMN_ORDERS:
        return None
    if table.size != len(leaves):
        raise Damaged(f"{name}: footer, {table.size} column_orders for {len(leaves)} columns; write the file again")
    return tuple(table["order"].tolist())


def _column_orders_span(file: np.void) -> tuple[int, int] | None:
    if not file["flags"] & g.HAS_COLUMN_ORDERS:
        return None
    offset = int(file["column_orders_offset"])
    return offset, offset + int(file["column_orders_length"])


def _column_name(data: bytes, offset: int, length: int, name: str) -> str:
    try:
        return data[offset : offset + length].decode()
    except UnicodeDecodeError as error:
        raise Damaged(f"{name}: footer, the column name at byte {offset} is no UTF-8; write the file again") from error


def _schema(data: bytes, table: Records, name: str) -> tuple[SchemaElement, ...]:
    # Most columns differ in name and field id alone: the meaning of the rest of a record is worked out once.
    meanings: dict[tuple[int, ...], tuple[Any, ...]] = {}
    elements = []
    for record in table.tolist():
        label = _column_name(data, record[1], record[2], name)
        rest = record[4:]
        meaning = meanings.get(rest)
        if meaning is None:
            meaning = meanings[rest] = _meaning(rest, f"{name}: schema element {label!r}")
        elements.append(SchemaElement(label, record[3] if rest[0] & g.HAS_FIELD_ID else None, *meaning))
    return tuple(elements)


def _meaning(rest: tuple[int, ...], name: str) -> tuple[Any, ...]:
    flags, physical_type, type_length, repetition, num_children, converted_type, scale, precision, *logical = rest
    if not 0 <= physical_type < len(PhysicalType):
        raise Damaged(f"{name} has the unknown physical type {physical_type}; write the file again")
    if not 0 <= repetition < len(Repetition):
        raise Damaged(f"{name} has the unknown repetition {repetition}; write the file again")
    if num_children < 0:
        raise Damaged(f"{name} announces {num_children} children; write the file again")
    return (
        PhysicalType(physical_type) if flags & g.HAS_PHYSICAL_TYPE else None,
        type_length if flags & g.HAS_TYPE_LENGTH else None,
        Repetition(repetition) if flags & g.HAS_REPETITION else None,
        num_children if flags & g.HAS_NUM_CHILDREN else None,
        converted_type if flags & g.HAS_CONVERTED_TYPE else None,
        scale if flags & g.HAS_SCALE else None,
        precision if flags & g.HAS_PRECISION else None,
        _logical_type(*logical) if flags & g.HAS_LOGICAL_TYPE else None,
    )


def _logical_type(
    tag: int, scale: int, precision: int, unit: int, utc: int, bit_width: int, is_signed: int
) -> LogicalType:
    kind = g.LOGICAL_TYPES.get(tag, "UNDEFINED")
    if kind == "DECIMAL":
        return LogicalType(kind, precision=precision, scale=scale)
    if kind in ("TIME", "TIMESTAMP"):
        return LogicalType(kind, unit=_UNITS[unit], is_adjusted_to_utc=bool(utc))
    if kind == "INTEGER":
        return LogicalType(kind, bit_width=bit_width, is_signed=bool(is_signed))
    return LogicalType(kind)


def _chunks(file: np.void, groups: Records, chunks: Records, leaves: tuple[Leaf, ...], name: str) -> Records:
    counts = groups["columns_count"]
    if (counts != len(leaves)).any():
        group = int(np.argmax(counts != len(leaves)))
        raise Damaged(
            f"{name}: row group {group} has not the {len(leaves)} columns of the schema; write the file again"
        )
    if file["flags"] & g.HAS_ENCRYPTION or (chunks["flags"] & ENCRYPTED).any():
        raise Incompatible(f"{name}: columns are encrypted; Windrow reads no encrypted Parquet, decrypt the file first")
    unknown = (chunks["encodings"] & ~np.uint32(KNOWN_ENCODINGS)) != 0
    chunks["encodings"] &= KNOWN_ENCODINGS
    chunks["flags"] &= ALL_FLAGS
    chunks["flags"][unknown] |= UNKNOWN_ENCODING
    shaped = chunks.reshape(groups.size, len(leaves))
    _check_types(shaped, leaves, name)
    return shaped


def _check_types(chunks: Records, leaves: tuple[Leaf, ...], name: str) -> None:
    types = np.array([leaf.element.physical_type for leaf in leaves], np.int32)
    wrong = np.argwhere(chunks["physical_type"] != types)
    if wrong.size:
        group, column = wrong[0].tolist()
        path = ".".join(leaves[column].path)
        raise Damaged(
            f"{name}: row group {group}, column {path!r} has another physical type than the schema; write it again"
        )
