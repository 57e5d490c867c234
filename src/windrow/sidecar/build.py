"""Makes the sidecar of a Parquet file from the file itself: its tail, its page index, its bloom filters."""

from __future__ import annotations

from collections.abc import Sequence

from windrow.parquet.footer import ParquetFooter, read_footer
from windrow.parquet.tail import FIRST_READ, complete_tail
from windrow.sidecar.aligned_pages import find_granules
from windrow.sidecar.convert import Read, Source, convert
from windrow.sidecar.granules import FirstKeys

__all__ = ["build_sidecar", "footer_bytes_of", "footer_of"]


def build_sidecar(  # noqa: PLR0913 - what few callers need is given by name
    read: Read,
    size: int,
    *,
    name: str,
    etag: str | None = None,
    extensions: bool = True,
    external_blooms: bool = False,
    keys: Sequence[Sequence[FirstKeys]] | None = None,
    footer: ParquetFooter | None = None,
    unused_bytes: int = 0,
) -> bytes:
    """Return the sidecar of a file of `size` bytes; without `extensions`, the bytes that QuestDB's converter writes.

    With `external_blooms`, the bits of bloom filters stay in the Parquet file, and the sidecar says where they are.
    `keys` are the first sort keys of every granule, by row group, where the caller has them; so is `footer`.
    `unused_bytes` are those of the file that no row group uses.
    """
    footer = footer or footer_of(read, size, name=name)
    granules = find_granules(footer, read, name=name, keys=keys) if extensions else None
    source = Source(footer, size, name, read, etag, granules)
    return convert(source, extensions=extensions, external_blooms=external_blooms, unused_bytes=unused_bytes)


def footer_of(read: Read, size: int, *, name: str) -> ParquetFooter:
    """Return the footer of a file of `size` bytes, in one read if it is small and two if it is not."""
    return read_footer(footer_bytes_of(read, size, name=name), name=name)


def footer_bytes_of(read: Read, size: int, *, name: str) -> bytes:
    """Return the bytes of that footer: metadata, its length and the magic."""
    first = min(size, FIRST_READ)
    return complete_tail(read(size - first, first), size, read, name=name).footer
