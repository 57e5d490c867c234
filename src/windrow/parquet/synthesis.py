"""Footers of our own: one Parquet file made of row groups, or runs of pages, that lie anywhere in one address space.

    schema = VirtualSchema.of(footer)
    data + synthesise_footer(schema, place_row_groups(footer, schema))      # the same rows again

Left out are page indexes (they hold addresses of their own), page counts by encoding, size statistics, the declared
sort order, and the bounds of floating point columns: writers leave NaN out of those, and readers that believe them
lose the rows that hold NaN. Whoever knows a chunk to be free of NaN sets its flag NAN_FREE.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from windrow.errors import InvalidInput
from windrow.kernels import rules as r
from windrow.parquet import chunk as c
from windrow.parquet import thrift as t
from windrow.parquet.footer import MAGIC
from windrow.parquet.placement import VirtualRowGroup, VirtualSchema
from windrow.parquet.schema import Leaf, PhysicalType

__all__ = ["synthesise_footer"]

_PLACES = {name: place for place, name in enumerate(c.FOOTER_CHUNK.names or ())}
_KIND = slice(_PLACES["codec"], _PLACES["flags"] + 1)


def synthesise_footer(schema: VirtualSchema, row_groups: Sequence[VirtualRowGroup]) -> bytes:
    """The end of a Parquet file with these row groups: metadata, its length, and the magic."""
    columns = [_Column(leaf) for leaf in schema.leaves]
    groups = [_row_group(columns, group) for group in row_groups]
    members = [
        t.i32(1, schema.version),
        t.verbatim(2, schema.elements),
        t.i64(3, sum(group.rows for group in row_groups)),
        t.list_of(4, r.RECORD, groups),
    ]
    if schema.key_value:
        members.append(t.list_of(5, r.RECORD, _key_values(schema.key_value)))
    if schema.created_by is not None:
        members.append(t.binary(6, _bytes(schema.created_by)))
    if schema.column_orders is not None:
        members.append(t.verbatim(7, schema.column_orders))
    metadata = t.struct(*members)
    return metadata + len(metadata).to_bytes(4, "little") + MAGIC


def _bytes(text: str) -> bytes:
    """Text as a footer gave it; bytes that were no UTF-8 come back as they were."""
    return text.encode(errors="surrogateescape")


def _key_values(pairs: Mapping[str, str | None]) -> list[bytes]:
    return [
        t.struct(t.binary(1, _bytes(key)), *([] if value is None else [t.binary(2, _bytes(value))]))
        for key, value in pairs.items()
    ]


def _row_group(columns: Sequence[_Column], group: VirtualRowGroup) -> bytes:
    chunks = group.chunks
    if len(columns) != len(chunks):
        raise InvalidInput(f"a row group of {len(chunks)} chunks for a schema of {len(columns)} leaves; give one each")
    encoded = [column.chunk(values, group.statistics) for column, values in zip(columns, chunks.tolist(), strict=True)]
    members = [
        t.list_of(1, r.RECORD, encoded),
        t.i64(2, int(chunks["total_uncompressed_size"].sum())),
        t.i64(3, group.rows),
    ]
    if columns:
        members.append(t.i64(5, int(c.chunk_starts(chunks[0]))))
    members.append(t.i64(6, int(chunks["total_compressed_size"].sum())))
    return t.struct(*members)


class _Member(NamedTuple):
    """A field that is written if the flags of a chunk have its flag, or if that is 0."""

    id: int
    type: int
    flag: int
    name: str


# Fields of ColumnMetaData before and after its statistics, and fields of Statistics.
_BEFORE = (
    _Member(5, r.I64, 0, "num_values"),
    _Member(6, r.I64, 0, "total_uncompressed_size"),
    _Member(7, r.I64, 0, "total_compressed_size"),
    _Member(9, r.I64, 0, "data_page_offset"),
    _Member(11, r.I64, c.HAS_DICTIONARY_OFFSET, "dictionary_page_offset"),
)
_STATISTICS = (
    _Member(1, r.BINARY, c.HAS_OLD_MAX, "old_max_offset"),
    _Member(2, r.BINARY, c.HAS_OLD_MIN, "old_min_offset"),
    _Member(3, r.I64, c.HAS_NULL_COUNT, "null_count"),
    _Member(4, r.I64, c.HAS_DISTINCT_COUNT, "distinct_count"),
    _Member(5, r.BINARY, c.HAS_MAX_VALUE, "max_offset"),
    _Member(6, r.BINARY, c.HAS_MIN_VALUE, "min_offset"),
    _Member(7, r.FALSE, c.MAX_EXACT_FALSE, ""),
    _Member(8, r.FALSE, c.MIN_EXACT_FALSE, ""),
)
_AFTER = (
    _Member(14, r.I64, c.HAS_BLOOM_OFFSET, "bloom_offset"),
    _Member(15, r.I32, c.HAS_BLOOM_LENGTH, "bloom_length"),
)


class _Template:
    """The bytes that all chunks of a column have that set the same fields; between them, each puts its own values."""

    def __init__(self, start: bytes) -> None:
        self._constant = start
        self._steps: list[tuple[bytes, int, bool]] = []

    def members(self, members: Sequence[_Member], flags: int, *, after: int) -> int:
        """Add those fields of a struct that the flags tell of; the id of the last."""
        for field, kind, flag, name in members:
            if not flag or flags & flag:
                self._constant += t.header(field, kind, after=after)
                after = field
                if name:
                    self._steps.append((self._constant, _PLACES[name], kind == r.BINARY))
                    self._constant = b""
        return after

    def constant(self, data: bytes) -> None:
        """Add bytes that are the same in all chunks."""
        self._constant += data

    def fill(self, values: Sequence[int], statistics: bytes) -> bytes:
        """The bytes of a chunk with these values."""
        out = []
        for constant, place, is_bytes in self._steps:
            value = values[place]
            out.append(constant)
            out.append(t.prefixed(statistics[value : value + values[place + 1]]) if is_bytes else t.zigzag(value))
        out.append(self._constant)
        return b"".join(out)


class _Column:
    """A leaf, with the templates of its chunks."""

    def __init__(self, leaf: Leaf) -> None:
        physical_type = leaf.element.physical_type
        half = leaf.element.meaning is not None and leaf.element.meaning.name == "FLOAT16"
        self._has_nan = half or physical_type in (PhysicalType.FLOAT, PhysicalType.DOUBLE)
        self._type = t.i32(1, int(physical_type or 0))
        self._path = t.list_of(3, r.BINARY, [t.prefixed(name.encode()) for name in leaf.path])
        self._templates: dict[tuple[int, ...], _Template] = {}

    def chunk(self, values: tuple[int, ...], statistics: bytes) -> bytes:
        """A ColumnChunk."""
        kind = values[_KIND]
        template = self._templates.get(kind)
        if template is None:
            template = self._templates[kind] = self._template(*kind)
        return template.fill(values, statistics)

    def _template(self, codec: int, encodings: int, flags: int) -> _Template:
        """A ColumnChunk: its position, which is no longer used, and its ColumnMetaData."""
        numbers = [t.zigzag(number) for number in range(32) if encodings >> number & 1]
        first = t.fields(self._type, t.list_of(2, r.I32, numbers), self._path, t.i32(4, codec))
        template = _Template(t.fields(t.i64(2, 0), t.nested(3, first)))
        after = template.members(_BEFORE, flags, after=4)
        if flags & c.HAS_STATISTICS:
            template.constant(t.header(12, r.RECORD, after=after))
            template.members(_STATISTICS, self._believed(flags), after=0)
            template.constant(t.STOP)
            after = 12
        template.members(_AFTER, flags, after=after)
        template.constant(t.STOP + t.STOP)
        return template

    def _believed(self, flags: int) -> int:
        """The flags without bounds that would mislead, and without old ones beside new ones."""
        if self._has_nan and not flags & c.NAN_FREE:
            flags &= ~c.BOUND_FLAGS
        if flags & (c.HAS_MIN_VALUE | c.HAS_MAX_VALUE):
            flags &= ~(c.HAS_OLD_MIN | c.HAS_OLD_MAX)
        return flags
