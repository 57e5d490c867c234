"""A virtual file as a real one: a sparse local file that has only the needed bytes, at their addresses.

For readers that take nothing but paths, such as Polars. It takes the disk space of what is read, not of its size.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from windrow.scan.context import ReadContext
from windrow.scan.reading import VirtualReader
from windrow.scan.virtual import VirtualFile
from windrow.storage import ByteRange, coalesce

__all__ = ["write_twin"]

_MOST_AT_ONCE = 16 * 2**20


def write_twin(virtual: VirtualFile, context: ReadContext, path: str | Path) -> None:
    """Write the chunks, null chunks and footer of a virtual file to a sparse file, or raise and leave none."""
    target = Path(path)
    try:
        with VirtualReader(virtual, context) as reader, target.open("wb") as file:
            file.truncate(virtual.size)
            for address, length in _pieces(virtual):
                os.pwrite(file.fileno(), reader.read_at(address, length), address)
            reader.finish()
    except BaseException:
        target.unlink(missing_ok=True)
        raise


def _pieces(virtual: VirtualFile) -> Iterator[tuple[int, int]]:
    """Addresses that have needed bytes, end to end where they touch."""
    needed = [ByteRange(address, length) for address, length in virtual.chunks.tolist()]
    needed += [ByteRange(address, len(data)) for address, data in virtual.memory]
    for run in coalesce(needed, 0):
        for start in range(run.start, run.start + run.length, _MOST_AT_ONCE):
            yield start, min(_MOST_AT_ONCE, run.start + run.length - start)
