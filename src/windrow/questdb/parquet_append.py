"""Growing a Parquet file in place: new row groups after the committed bytes, then a footer of all row groups.

Row groups that did not change are copied into the new footer as they stand in the old one. The cost of an append
therefore follows its own rows and the length of the footer, not the rows of the file.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from windrow.parquet.file_writer import FileSchema, FileWriter, file_chunks
from windrow.parquet.footer import TAIL_SIZE, ParquetFooter, parse_footer
from windrow.parquet.placement import VirtualSchema
from windrow.parquet.synthesis import assemble_footer
from windrow.questdb.committed import CommittedFile
from windrow.sidecar.aligned_pages import find_granules
from windrow.sidecar.convert import Source, convert_changes
from windrow.sidecar.writer import Update
from windrow.splits.layout import GRANULE_ROWS

__all__ = ["Growth", "grow", "has_columns", "open_writer"]


class Growth(NamedTuple):
    """What is written to grow a partition: bytes of `data.parquet` at `start`, and an update of `_pm`."""

    start: int
    data: bytes
    update: Update
    unused_bytes: int

    @property
    def size(self) -> int:
        """The committed size of the Parquet file afterwards."""
        return self.start + len(self.data)


def open_writer(sink: Any, schema: pa.Schema, timestamp: int) -> pq.ParquetWriter:
    """A writer of rows that are sorted by the timestamp, with a page index and checksums."""
    texts = [field.name for field in schema if pa.types.is_string(field.type) or pa.types.is_binary(field.type)]
    return pq.ParquetWriter(
        sink,
        schema,
        compression="zstd",
        compression_level=3,
        use_dictionary=texts,
        column_encoding={schema.field(timestamp).name: "DELTA_BINARY_PACKED"},
        max_rows_per_page=GRANULE_ROWS,
        write_page_index=True,
        write_page_checksum=True,
        sorting_columns=[pq.SortingColumn(timestamp)],
        store_schema=False,
    )


def has_columns(file: CommittedFile, schema: pa.Schema) -> bool:
    """Whether row groups of a schema can stand in a file: types, nullability, names and field ids are the same."""
    return FileSchema(schema, "").footer.leaves == file.footer.leaves


def grow(file: CommittedFile, changes: Mapping[int, pa.Table], *, timestamp: int) -> Growth:
    """Replace row groups of a file, or add some after its last: the rows of each, by its place."""
    old, schema, targets = file.footer, VirtualSchema.of(file.footer), sorted(changes)
    sink = io.BytesIO()
    structs = _write_groups(sink, file, changes, timestamp)
    only_new = assemble_footer(schema, len(structs), sum(map(len, changes.values())), b"".join(structs))
    new = parse_footer(only_new[:-TAIL_SIZE], name=str(file.path))
    replaced = [target for target in targets if target < len(old.row_group_rows)]
    rows = old.num_rows - int(old.row_group_rows[replaced].sum()) + new.num_rows
    groups = dict(enumerate(old.row_group_structs)) | dict(zip(targets, structs, strict=True))
    footer = assemble_footer(schema, len(groups), rows, b"".join(groups[place] for place in sorted(groups)))
    data = sink.getvalue() + footer
    unused = file.sidecar.footer.unused_bytes + file.footer_size + file.live_bytes(replaced)
    source = _source(file, new, data)
    length = len(footer) - TAIL_SIZE
    update = convert_changes(file.sidecar, source, targets, footer_length=length, unused_bytes=unused)
    return Growth(file.size, data, update, unused)


def _source(file: CommittedFile, new: ParquetFooter, data: bytes) -> Source:
    """The new row groups, to be described; their bytes begin where the file ends."""

    def read(offset: int, length: int) -> bytes:
        return data[offset - file.size : offset - file.size + length]

    name, size = str(file.path), file.size + len(data)
    extended = file.sidecar.extensions.schema_bytes is not None
    return Source(new, size, name, read, granules=find_granules(new, read, name=name) if extended else None)


def _write_groups(
    sink: io.BytesIO, file: CommittedFile, changes: Mapping[int, pa.Table], timestamp: int
) -> list[bytes]:
    """Write row groups that begin where the file ends; what a footer says of each."""
    arrow = next(iter(changes.values())).schema
    encoded = pa.BufferOutputStream()
    with open_writer(encoded, arrow, timestamp) as writer:
        for place in sorted(changes):
            writer.write_table(changes[place], row_group_size=changes[place].num_rows)
    chunks = file_chunks(memoryview(encoded.getvalue()), name=str(file.path))
    sorting = next((group for group in file.footer.row_group_sorting if group), ())
    groups = FileWriter(sink, FileSchema(arrow, ""), sorting, start=file.size)
    for place, group in zip(sorted(changes), chunks, strict=True):
        groups.append(changes[place].num_rows, group, number=place)
    return groups.finish_row_groups()
