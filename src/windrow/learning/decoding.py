"""All values of a column in a row group, decoded by pyarrow: the plain way, which every chunk can be learnt by."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq

from windrow.learning.fetched_bytes import FetchedBytes
from windrow.learning.scanned_files import FlatColumn, ScannedFile
from windrow.parquet.schema import PhysicalType
from windrow.planning.address_space import Part, Piece
from windrow.planning.virtual_file import VirtualFile, lay_out
from windrow.planning.virtual_schema import merged_schema, schema_of
from windrow.storage.handles import Handle

__all__ = ["decoded_values"]

_SHORT_BYTES = 4
"""A text that takes no more bytes in a file stands in a dictionary."""


def decoded_values(scanned: ScannedFile, column: FlatColumn, row_group: int) -> pa.Array:
    """The values, short texts as a dictionary."""
    schema = merged_schema([schema_of(scanned.sidecar)], [column.name])
    virtual = lay_out([scanned.file], schema, [Part(scanned.sidecar, [Piece(0, row_group, row_group)])])
    [chunk] = virtual.placed.chunks.reshape(-1)
    is_text = column.leaf.element.physical_type is PhysicalType.BYTE_ARRAY
    is_short = chunk["total_uncompressed_size"] < _SHORT_BYTES * chunk["num_values"]
    file = pq.ParquetFile(
        Handle(_OneChunk(virtual, scanned.data)), read_dictionary=[column.name] if is_text and is_short else []
    )
    values = _in_one(file.read(use_threads=False).column(0))
    if pa.types.is_dictionary(values.type):
        # The codes of a damaged page may name entries that there are not.
        values.validate(full=True)
    return values


class _OneChunk:
    """A virtual file of one chunk, whose bytes are here."""

    def __init__(self, virtual: VirtualFile, data: FetchedBytes) -> None:
        self.size = virtual.size
        self._segments = virtual.segments
        self._memory = virtual.memory
        self._data = data

    def read_at(self, address: int, length: int) -> bytes:
        """Bytes at an address; zeros where nothing is."""
        out, end = bytearray(length), address + length
        for start, data in self._memory:
            first, last = max(start, address), min(start + len(data), end)
            if first < last:
                out[first - address : last - address] = data[first - start : last - start]
        for segment in self._segments:
            first, last = max(segment.address, address), min(segment.address + segment.length, end)
            if first < last:
                out[first - address : last - address] = self._data.read(
                    segment.offset + first - segment.address, last - first
                )
        return bytes(out)


def _in_one(column: pa.ChunkedArray) -> pa.Array:
    merged = column.unify_dictionaries().combine_chunks()
    return pa.concat_arrays(merged.chunks) if isinstance(merged, pa.ChunkedArray) else merged
