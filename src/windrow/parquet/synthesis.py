"""Footers of our own: one Parquet file made of row groups, or runs of pages, that lie anywhere in one address space.

    schema = VirtualSchema.of(footer)
    data + footer_of(schema, footer.row_group_rows, footer.chunks, [footer.metadata] * groups)  # the same rows

Left out are page indexes (they hold addresses of their own), page counts by encoding, size statistics, the declared
sort order, and the bounds of floating point columns: writers leave NaN out of those, and readers that believe them
lose the rows that hold NaN. A chunk that is free of NaN has the flag NAN_FREE.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from windrow.errors import InvalidInput
from windrow.kernels import rules as r
from windrow.parquet import chunk as c
from windrow.parquet import thrift as t
from windrow.parquet.footer import MAGIC
from windrow.parquet.grammar import Records
from windrow.parquet.placement import VirtualRowGroup, VirtualSchema
from windrow.parquet.schema import Leaf, PhysicalType

__all__ = ["assemble_footer", "footer_of", "row_group_bytes", "synthesise_footer"]

_WORDS = c.FOOTER_CHUNK.itemsize // 8
_WORD_OF = {name: place[1] // 8 for name, place in (c.FOOTER_CHUNK.fields or {}).items()}
# Codec, encodings and flags lie in the first two words of a record; the other words are its own.
_OWN = 2


def synthesise_footer(schema: VirtualSchema, row_groups: Sequence[VirtualRowGroup]) -> bytes:
    """The end of a Parquet file with these row groups: metadata, its length, and the magic."""
    chunks = np.zeros((len(row_groups), len(schema.leaves)), c.FOOTER_CHUNK)
    for place, group in enumerate(row_groups):
        if len(group.chunks) != len(schema.leaves):
            problem = f"a row group of {len(group.chunks)} chunks for a schema of {len(schema.leaves)} leaves"
            raise InvalidInput(f"{problem}; give one each")
        chunks[place] = group.chunks
    rows = np.array([group.rows for group in row_groups], np.int64)
    return footer_of(schema, rows, chunks, [group.statistics for group in row_groups])


def footer_of(
    schema: VirtualSchema, rows: NDArray[np.int64], chunks: Records, statistics: Sequence[bytes | memoryview]
) -> bytes:
    """The same from arrays: rows and chunks of each row group, and the bytes that hold its bounds."""
    encoded = row_group_bytes(schema, rows, chunks, statistics)
    return assemble_footer(schema, len(rows), int(rows.sum()), encoded)


def assemble_footer(schema: VirtualSchema, count: int, rows: int, encoded: bytes) -> bytes:
    """A footer of so many row groups, which have so many rows together and were encoded before."""
    head = t.list_of(4, r.RECORD, [b""] * count).value
    members = [
        t.i32(1, schema.version),
        t.verbatim(2, schema.elements),
        t.i64(3, rows),
        t.verbatim(4, head + encoded),
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


def row_group_bytes(
    schema: VirtualSchema, rows: NDArray[np.int64], chunks: Records, statistics: Sequence[bytes | memoryview]
) -> bytes:
    """All row groups: each has the head of its list of chunks, the chunks, and the fields behind them."""
    if not len(rows):
        return b""
    from windrow.kernels.footers import render

    templates = _Templates()
    words = np.zeros((len(rows), len(schema.leaves) + 2, _WORDS), np.int64)
    words[:, 1:-1] = chunks.view(np.int64).reshape(len(rows), len(schema.leaves), _WORDS)
    kinds = np.empty(words.shape[:2], np.int64)
    kinds[:, 0] = templates.add(_Template(_list_head(len(schema.leaves))))
    for place, leaf in enumerate(schema.leaves):
        kinds[:, place + 1] = _Column(leaf, templates).kinds(chunks[:, place])
    kinds[:, -1] = templates.add(_group_tail(len(schema.leaves)))
    words[:, -1, _OWN] = chunks["total_uncompressed_size"].sum(axis=1)
    words[:, -1, _OWN + 1] = rows
    words[:, -1, _OWN + 2] = chunks["total_compressed_size"].sum(axis=1)
    if len(schema.leaves):
        words[:, -1, _OWN + 3] = c.chunk_starts(chunks[:, 0])
    out = []
    arrays = templates.arrays()
    for _, run in groupby(range(len(rows)), key=lambda group: id(statistics[group])):
        first, *more = run
        stop = more[-1] + 1 if more else first + 1
        texts = np.frombuffer(statistics[first], np.uint8)
        own = words[first:stop].reshape(-1, _WORDS)
        out.append(render(*arrays, own, kinds[first:stop].reshape(-1), texts).tobytes())
    return b"".join(out)


def _list_head(chunks: int) -> bytes:
    """What stands before the chunks of a row group."""
    return t.header(1, r.LIST, after=0) + t.list_of(1, r.RECORD, [b""] * chunks).value


def _group_tail(chunks: int) -> _Template:
    """The fields of a row group behind its chunks."""
    template = _Template(b"")
    after = template.value(2, r.I64, _OWN, after=1)
    after = template.value(3, r.I64, _OWN + 1, after=after)
    if chunks:
        after = template.value(5, r.I64, _OWN + 3, after=after)
    template.value(6, r.I64, _OWN + 2, after=after)
    template.constant(t.STOP)
    return template


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
    """The bytes that all structs have that set the same fields; between them, each puts its own values."""

    def __init__(self, start: bytes) -> None:
        self.end = start
        self.steps: list[tuple[bytes, int, bool]] = []

    def members(self, members: Sequence[_Member], flags: int, *, after: int) -> int:
        """Add those fields of a struct that the flags tell of; the id of the last."""
        for field, kind, flag, name in members:
            if not flag or flags & flag:
                after = self.value(field, kind, _WORD_OF[name] if name else None, after=after)
        return after

    def value(self, field: int, kind: int, word: int | None, *, after: int) -> int:
        """Add a field whose value is in a word of a record, or in its type alone."""
        self.end += t.header(field, kind, after=after)
        if word is not None:
            self.steps.append((self.end, word, kind == r.BINARY))
            self.end = b""
        return field

    def constant(self, data: bytes) -> None:
        """Add bytes that are always the same."""
        self.end += data


class _Templates:
    """Templates as the arrays that compiled code goes by."""

    def __init__(self) -> None:
        self._constants = bytearray()
        self._steps: list[tuple[int, int, int, bool]] = []
        self._templates: list[tuple[int, int, int, int]] = []

    def add(self, template: _Template) -> int:
        """The number that the template has from now on."""
        first = len(self._steps)
        self._steps += [(*self._constant(data), word, is_text) for data, word, is_text in template.steps]
        self._templates.append((first, len(self._steps), *self._constant(template.end)))
        return len(self._templates) - 1

    def arrays(self) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]]:
        """Constant bytes, templates, steps."""
        steps = np.array(self._steps, np.int64).reshape(-1, 4)
        return np.frombuffer(bytes(self._constants), np.uint8), np.array(self._templates, np.int64), steps

    def _constant(self, data: bytes) -> tuple[int, int]:
        start = len(self._constants)
        self._constants += data
        return start, len(self._constants)


class _Column:
    """A leaf, with the templates of its chunks."""

    def __init__(self, leaf: Leaf, templates: _Templates) -> None:
        physical_type = leaf.element.physical_type
        half = leaf.element.meaning is not None and leaf.element.meaning.name == "FLOAT16"
        self._has_nan = half or physical_type in (PhysicalType.FLOAT, PhysicalType.DOUBLE)
        self._type = t.i32(1, int(physical_type or 0))
        self._path = t.list_of(3, r.BINARY, [t.prefixed(name.encode()) for name in leaf.path])
        self._templates = templates

    def kinds(self, chunks: Records) -> list[int]:
        """The template of each chunk."""
        facts = list(zip(*(chunks[name].tolist() for name in ("codec", "encodings", "flags")), strict=True))
        numbers = {kind: self._templates.add(self._template(*kind)) for kind in dict.fromkeys(facts)}
        return [numbers[kind] for kind in facts]

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
