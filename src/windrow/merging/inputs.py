"""The inputs of a merge: sorted Parquet files in a store, opened by one request each, read by row groups."""

from __future__ import annotations

import io
from base64 import b64decode
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from windrow.bounded import memo
from windrow.errors import Damaged, StorageError
from windrow.model.split import KEY_VALUE_PREFIX
from windrow.parquet.arrow_schema import ARROW_SCHEMA
from windrow.parquet.chunk import HAS_MAX_VALUE, HAS_MIN_VALUE, HAS_NULL_COUNT, chunk_starts
from windrow.parquet.footer import ParquetFooter
from windrow.parquet.footers import parse_footers
from windrow.parquet.schema import PhysicalType
from windrow.sidecar.tails import stored_tail
from windrow.splits.digests import checksum, joined_digest
from windrow.storage import ByteRange, ObjectInfo, Store

__all__ = ["TOLD", "Input", "by_requests", "open_inputs"]

Item = TypeVar("Item")
Result = TypeVar("Result")

TOLD = ("split_id", "sort_schema", "index_uid", "window_start")
"""What a split says of itself that a merge compares with what the metastore says."""
_ASKED = (ARROW_SCHEMA, *(KEY_VALUE_PREFIX + field for field in TOLD))
FIRST_READ = 256 * 1024
"""So many bytes from the end are read at once: a small file comes whole, a large one with its footer."""
PIECE = 16 * 2**20
"""So many bytes are read at once of what nothing but the digest needs."""


@dataclass(frozen=True, eq=False)
class Input:
    """A sorted file."""

    store: Store
    key: str
    size: int
    etag: str | None
    tail: bytes
    """The end of the file; all of it when it is small."""
    footer: ParquetFooter
    _fetched: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Checksum and length of the pieces that were fetched, by the places that they begin at."""

    @property
    def whole(self) -> bool:
        """Whether all of the file is in memory."""
        return len(self.tail) == self.size

    @cached_property
    def rows(self) -> int:
        """How many rows the file has."""
        return int(self.footer.row_group_rows.sum())

    @property
    def groups(self) -> int:
        """How many row groups the file has."""
        return int(self.footer.row_group_rows.size)

    def text_bounds(self, column: str, group: int) -> tuple[bytes, bytes] | None:
        """Bytes that no text of a column in a row group is below or above; None where the footer has none."""
        leaf = next((leaf for leaf in self.footer.leaves if leaf.path == (column,)), None)
        if leaf is None or leaf.element.physical_type != PhysicalType.BYTE_ARRAY:
            return None
        chunk = self.footer.chunks[group, leaf.index]
        needed = HAS_MIN_VALUE | HAS_MAX_VALUE | HAS_NULL_COUNT
        if chunk["flags"] & needed != needed or chunk["null_count"]:
            return None
        low, high = int(chunk["min_offset"]), int(chunk["max_offset"])
        metadata = self.footer.metadata
        return metadata[low : low + int(chunk["min_length"])], metadata[high : high + int(chunk["max_length"])]

    @cached_property
    def signature(self) -> tuple[bytes, bytes]:
        """Inputs with the same signature have the same schema; what a file says of itself is left out of it."""
        return self.footer.schema_bytes, _bare_schema(self.footer.key_value.get(ARROW_SCHEMA))

    def arrow_schema(self) -> pa.Schema:
        """The schema as pyarrow reads it."""
        try:
            return pq.read_schema(pa.BufferReader(self.tail)).remove_metadata()
        except (pa.ArrowException, OSError) as error:
            raise Damaged(f"{self.key}: its schema cannot be read: {error}; write it again") from error

    @cached_property
    def spans(self) -> npt.NDArray[np.int64]:
        """The first byte of each row group and the byte after its last."""
        chunks = self.footer.chunks
        starts = chunk_starts(chunks)
        ends = starts + chunks["total_compressed_size"]
        return np.stack([starts.min(axis=1, initial=self.size), ends.max(axis=1, initial=0)], axis=1)

    def fetch(self, groups: Sequence[int]) -> list[tuple[int, bytes]]:
        """The bytes of row groups, each with its place in the file; all of a small file for any of them."""
        if self.whole:
            return [(0, self.tail)] * len(groups)
        spans = self._joined_spans[list(groups)].tolist()
        if any(start < 0 or end < start or end > self.size for start, end in spans):
            raise Damaged(f"{self.key}: a row group lies outside of the file of {self.size} bytes; write it again")
        try:
            pieces = self.store.get_ranges(self.key, [ByteRange(start, end - start) for start, end in spans])
        except StorageError as error:
            raise StorageError(f"{self.key}: input of the merge: {error}", retryable=error.retryable) from error
        parts = [(start, piece) for (start, _), piece in zip(spans, pieces, strict=True)]
        self._fetched.update(
            {start: (checksum(piece), len(piece)) for start, piece in parts if start not in self._fetched}
        )
        return parts

    @cached_property
    def _joined_spans(self) -> npt.NDArray[np.int64]:
        """Where row groups begin and end, with the few bytes up to the next one, so that no byte is left unread."""
        spans, tail = self.spans.copy(), self.size - len(self.tail)
        nexts = np.append(spans[1:, 0], max(tail, int(spans[-1:, 1].max(initial=0))))
        gaps = nexts - spans[:, 1]
        spans[:, 1] += np.where((gaps > 0) & (gaps <= FIRST_READ), gaps, 0)
        if spans.size and 0 <= spans[0, 0] <= FIRST_READ:
            spans[0, 0] = 0
        return spans

    def verify(self, digest: str | None) -> None:
        """Refuse a file that is not what was written, byte by byte; what was not read yet is read now."""
        if digest is not None and joined_digest(self._pieces()) != digest:
            raise Damaged(
                f"{self.key}: its bytes are not those that were written, its digest differs from {digest}; "
                "restore the file or take it out of the table"
            )

    def _pieces(self) -> Iterator[tuple[int, int]]:
        """Checksum and length of all pieces of the file, one behind the other."""
        at, body = 0, self.size - len(self.tail)
        while at < body:
            crc, length = self._fetched.get(at, (0, 0))
            if not length:
                end = min([body, at + PIECE, *(start for start in self._fetched if start > at)])
                (piece,) = self.store.get_ranges(self.key, [ByteRange(at, end - at)])
                crc, length = checksum(piece), end - at
            yield crc, length
            at += length
        yield checksum(self.tail[at - body :]), self.size - at

    def read(self, spans: Sequence[tuple[int, int]]) -> list[bytes]:
        """The bytes of some spans, by offset and length; those near the end of the file are there already."""
        body = self.size - len(self.tail)
        if any(offset < 0 or length < 0 or offset + length > self.size for offset, length in spans):
            raise Damaged(f"{self.key}: a page index lies outside of the file of {self.size} bytes; write it again")
        if all(offset >= body or not length for offset, length in spans):
            return [self.tail[offset - body : offset - body + length] if length else b"" for offset, length in spans]
        ranges = [ByteRange(offset, length) for offset, length in spans if length]
        pieces = iter(self.store.get_ranges(self.key, ranges))
        return [bytes(next(pieces)) if length else b"" for _, length in spans]

    def opened(self) -> pa.NativeFile:
        """The file as pyarrow opens it."""
        if self.whole:
            return pa.BufferReader(self.tail)
        return pa.PythonFile(_StoredFile(self), "r")

    def reader(self) -> pq.ParquetFile:
        """The file as pyarrow reads it; a page that is not what was written is an error."""
        return pq.ParquetFile(self.opened(), page_checksum_verification=True)


@memo("stored schemas", 64)
def _bare_schema(stored: str | None) -> bytes:
    """An Arrow schema as a footer stores it, without what the file says of itself."""
    if stored is None:
        return b""
    try:
        schema = pa.ipc.read_schema(pa.py_buffer(b64decode(stored)))
    except (ValueError, pa.ArrowException, OSError):
        return stored.encode(errors="surrogateescape")
    return bytes(schema.remove_metadata().serialize())


class _StoredFile(io.RawIOBase):
    """An input as a file object, for what is read by pyarrow."""

    def __init__(self, source: Input) -> None:
        super().__init__()
        self._source, self._at = source, 0

    def seekable(self) -> bool:
        return True

    def readable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._source.size}[whence]
        return self._at

    def read(self, size: int = -1) -> bytes:
        end = self._source.size if size < 0 else min(self._at + size, self._source.size)
        (piece,) = self._source.store.get_ranges(self._source.key, [ByteRange(self._at, max(end - self._at, 0))])
        self._at += len(piece)
        return piece


def by_requests(
    work: Callable[[Item], Result], items: Iterable[Item], store: Store, executor: Executor | None
) -> list[Result]:
    """Do work that makes requests, several at a time where a request takes longer than what comes with it."""
    together = executor is not None and store.gap > FIRST_READ
    return list(executor.map(work, items) if together and executor is not None else map(work, items))


def open_inputs(store: Store, keys: Sequence[str], executor: Executor | None = None) -> list[Input]:
    """Open files by their keys; all footers are read by one call."""
    ends = by_requests(lambda key: _end(store, key), keys, store, executor)
    footers = parse_footers([metadata for _, _, metadata in ends], keys, _ASKED)
    return [
        Input(store, key, info.size, info.etag, tail, footer)
        for key, (tail, info, _), footer in zip(keys, ends, footers, strict=True)
    ]


def _end(store: Store, key: str) -> tuple[bytes, ObjectInfo, bytes]:
    """The end of a file, what the store tells of it, and the bytes of its footer."""
    tail, info = stored_tail(store, key, key, FIRST_READ)
    return tail.data, info, tail.metadata
