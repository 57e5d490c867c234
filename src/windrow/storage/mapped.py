"""Files that are mapped: pages that were read count as memory of this process until they are let go."""

from __future__ import annotations

import mmap
from collections.abc import Iterator

from windrow.storage.protocol import BytesLike

__all__ = ["let_go", "pieces"]

PIECE = 8 * 2**20


def let_go(data: BytesLike) -> None:
    """Unmap the pages of a mapped file; the next read maps them again. Other bytes stay as they are."""
    mapped = _mapped(data)
    if mapped is not None:
        mapped.madvise(mmap.MADV_DONTNEED)


def pieces(data: BytesLike) -> Iterator[BytesLike]:
    """Yield all of the data; a mapped file by pieces, each let go when the next one is taken."""
    mapped = _mapped(data)
    if mapped is None:
        yield data
        return
    for start in range(0, len(data), PIECE):
        yield data[start : start + PIECE]
        mapped.madvise(mmap.MADV_DONTNEED, start, min(PIECE, len(data) - start))


def _mapped(data: BytesLike) -> mmap.mmap | None:
    """The mapped file that some bytes are all of."""
    mapped = data.obj if isinstance(data, memoryview) else None
    return mapped if isinstance(mapped, mmap.mmap) and len(data) == len(mapped) else None
