"""Some rows of one data page of a flat chunk, as pages again: what lies on both sides of a cut through a page.

Arrow decodes the page, whatever its encoding, as the only page of a file of its own. Columns have a physical type there
and
no meaning, so that values come out as they are. They are written in PLAIN, as pages of version 2 that say that
they are not compressed: such a page fits into a chunk of any codec.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from windrow.errors import Damaged, Incompatible
from windrow.kernels import rules as r
from windrow.parquet import chunk as c
from windrow.parquet import thrift as t
from windrow.parquet.footer import MAGIC
from windrow.parquet.page_headers import read_page_header
from windrow.parquet.placement import FIRST_ADDRESS, VirtualSchema
from windrow.parquet.schema import Leaf, PhysicalType, Repetition, SchemaElement
from windrow.parquet.synthesis import footer_of

__all__ = ["can_be_trimmed", "trimmed_pages"]

_ENCODINGS = 1 << c.Encoding.PLAIN | 1 << c.Encoding.RLE
_NAME = "value"


def can_be_trimmed(leaf: Leaf) -> bool:
    """Whether the pages of a column can be trimmed: it is flat, and its type is one that Arrow changes in no way."""
    is_flat = leaf.max_repetition == 0 and leaf.max_definition <= 1 and len(leaf.path) == 1
    return is_flat and leaf.element.physical_type not in (None, PhysicalType.INT96)


def trimmed_pages(leaf: Leaf, codec: int, dictionary: bytes, page: bytes, rows: range, *, name: str) -> bytes:
    """Some rows of a data page, as pages; `page` and `dictionary` are with their headers."""
    try:
        values = _decoded(leaf, codec, dictionary, page, name)
        return _encoded(leaf, values.slice(rows.start, len(rows)), len(rows))
    except (pa.ArrowException, OSError) as error:
        raise Damaged(f"{name}: a page cannot be decoded: {error}") from error


def _decoded(leaf: Leaf, codec: int, dictionary: bytes, page: bytes, name: str) -> pa.ChunkedArray:
    count = read_page_header(page, name=name).num_values
    chunk = np.zeros((1, 1), c.FOOTER_CHUNK)
    chunk["physical_type"], chunk["codec"] = leaf.element.physical_type, codec
    chunk["encodings"], chunk["num_values"] = _ENCODINGS, count
    chunk["flags"] = c.HAS_META | (c.HAS_DICTIONARY_OFFSET if dictionary else 0)
    chunk["total_compressed_size"] = chunk["total_uncompressed_size"] = len(dictionary) + len(page)
    chunk["dictionary_page_offset"] = FIRST_ADDRESS if dictionary else 0
    chunk["data_page_offset"] = FIRST_ADDRESS + len(dictionary)
    footer = footer_of(_schema(leaf), np.array([count], np.int64), chunk, [b""])
    file = pq.ParquetFile(pa.BufferReader(b"".join([MAGIC, dictionary, page, footer])))
    return file.read(use_threads=False).column(0)


def _schema(leaf: Leaf) -> VirtualSchema:
    """A file of one column with the physical type of a leaf."""
    own = leaf.element
    repetition = Repetition.OPTIONAL if leaf.max_definition else Repetition.REQUIRED
    length = [] if own.type_length is None else [t.i32(2, own.type_length)]
    column = t.struct(
        t.i32(1, int(own.physical_type or 0)), *length, t.i32(3, int(repetition)), t.binary(4, _NAME.encode())
    )
    root = t.struct(t.binary(4, b"schema"), t.i32(5, 1))
    bare = SchemaElement(_NAME, physical_type=own.physical_type, type_length=own.type_length, repetition=repetition)
    return VirtualSchema(
        t.list_of(2, r.RECORD, [root, column]).value, (leaf._replace(index=0, path=(_NAME,), element=bare),)
    )


def _encoded(leaf: Leaf, values: pa.ChunkedArray, rows: int) -> bytes:
    if len(values) != rows:
        raise Damaged(f"a page has {len(values)} of {rows} rows")
    sink = pa.BufferOutputStream()
    schema = pa.schema([pa.field(_NAME, values.type, nullable=leaf.max_definition > 0)])
    pq.write_table(
        pa.Table.from_arrays([values], schema=schema),
        sink,
        row_group_size=rows,
        use_dictionary=False,
        compression="NONE",
        data_page_version="2.0",
        write_statistics=False,
        store_schema=False,
    )
    written = sink.getvalue()
    chunk = pq.read_metadata(pa.BufferReader(written)).row_group(0).column(0)
    if chunk.physical_type != PhysicalType(leaf.element.physical_type or 0).name:
        raise Incompatible(f"a page of {leaf.element.physical_type} would become one of {chunk.physical_type}")
    start = chunk.data_page_offset
    return bytes(memoryview(written)[start : start + chunk.total_compressed_size])
