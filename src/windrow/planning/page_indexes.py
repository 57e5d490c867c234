"""Page indexes of files: what their column indexes say of each page, for a plan to leave pages out.

They are part of the file. Of a file on this machine they are read when they are first asked for. A remote file is not
asked for them, which would be a request before the first byte of data; but when they came along with its footer, they
are in the cache.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from windrow.cache import Cache, CacheKey, CacheKind
from windrow.planning.data_files import DataFile
from windrow.planning.units import Unit
from windrow.sidecar import Sidecar
from windrow.sidecar.granule_bounds import PageIndexes
from windrow.storage import ByteRange

__all__ = ["keep_page_indexes", "page_indexes"]


def page_indexes(cache: Cache[bytes] | None, files: Sequence[DataFile], unit: Unit) -> PageIndexes:
    """Gives column indexes of the files of a unit."""

    def find(row_group: int, column: int) -> bytes | None:
        records = unit.sidecar.extensions.page_records(row_group)
        file = files[int(unit.files[row_group])]
        wanted = None if records is None else _extent(records[[column]], file.identity.size)
        if wanted is None:
            return None
        if not file.store.is_remote:
            return file.read(wanted.start, wanted.length)
        return None if cache is None else _kept(cache, file, unit.singles[int(unit.owners[row_group])], wanted)

    return find


def keep_page_indexes(cache: Cache[bytes], file: DataFile, chunks: NDArray[np.void], tail: bytes) -> None:
    """Keep the column indexes of a remote file if they are all in its end, which was read for the footer."""
    extent, before = _extent(chunks, file.identity.size), file.identity.size - len(tail)
    if extent is not None and extent.start >= before:
        first = extent.start - before
        cache.put(_key(file, extent), tail[first : first + extent.length])


def _kept(cache: Cache[bytes], file: DataFile, sidecar: Sidecar, wanted: ByteRange) -> bytes | None:
    records = [sidecar.extensions.page_records(row_group) for row_group in range(sidecar.row_group_count)]
    extent = _extent(np.concatenate([each for each in records if each is not None]), file.identity.size)
    if extent is None:
        return None
    try:
        data = cache.get(_key(file, extent), _absent)
    except _AbsentError:
        return None
    first = wanted.start - extent.start
    return data[first : first + wanted.length]


def _absent(_: CacheKey) -> bytes:
    raise _AbsentError


class _AbsentError(Exception):
    """What is asked for is not in the cache."""


def _extent(records: NDArray[np.void], size: int) -> ByteRange | None:
    """The bytes from the first column index of some chunks to the last; None where none of them has one."""
    offsets, lengths = records["column_index_offset"].astype(np.int64), records["column_index_length"]
    there = (offsets > 0) & (lengths > 0)
    starts, ends = offsets[there], (offsets + lengths)[there]
    if not starts.size or ends.max() > size:
        return None
    start = int(starts.min())
    return ByteRange(start, int(ends.max()) - start)


def _key(file: DataFile, extent: ByteRange) -> CacheKey:
    return CacheKey(file.uri, extent.start, extent.length, CacheKind.DATA_FILE_FOOTER, file.cache_identity)
