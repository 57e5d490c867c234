"""Where the data pages of a flat chunk are, learnt from their own headers: for files without an offset index.

A chunk is read in windows, so that one of any size takes little memory. What was learnt is a small record that can be
cached; one that does not describe its chunk is as good as none.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from windrow.errors import Damaged
from windrow.kernels import rules as r
from windrow.parquet.page_grammar import DATA_PAGE, DATA_PAGE_V2, DICTIONARY_PAGE, PAGE, PAGE_GRAMMAR
from windrow.parquet.page_headers import read_page_header
from windrow.parquet.page_index import OffsetIndex

__all__ = ["are_places", "decode_places", "encode_places", "find_places"]

_Records = npt.NDArray[np.void]
_Read = Callable[[int, int], bytes]

_WINDOW = 4 * 2**20
_LEAST_PAGE = 256
"""Room for headers is made as if pages were no smaller; where they are, a window gives fewer of them."""
_MAGIC = b"WRPAGES1"
_LONGEST_RECORD = 2**24


def find_places(read: _Read, start: int, length: int, values: int, *, name: str, window: int = _WINDOW) -> OffsetIndex:
    """Walk the headers of a chunk without nested values, which has so many bytes and values."""
    at, left, found = start, values, []
    while left > 0:
        data = read(at, min(window, start + length - at))
        pages = _whole_pages(data, left)
        if not pages.size:
            pages = _first_page(data, start + length - at, name)
        is_data = np.isin(pages["kind"], (DATA_PAGE, DATA_PAGE_V2))
        if not (is_data | (pages["kind"] == DICTIONARY_PAGE)).all():
            raise Damaged(f"{name}: a page is neither data nor a dictionary; write the file again")
        ends = at + pages["body"] + pages["compressed"]
        begins = np.concatenate([[at], ends[:-1]])
        found.append(np.stack([begins, ends - begins, pages["num_values"]])[:, is_data])
        at, left = int(ends[-1]), left - int(pages["num_values"][is_data].sum())
    if left < 0:
        raise Damaged(f"{name}: the pages of a chunk hold more values than it has; write the file again")
    offsets, sizes, counts = np.concatenate([np.zeros((3, 0), np.int64), *found], axis=1)
    return OffsetIndex(offsets, sizes, np.cumsum(counts) - counts)


def _whole_pages(data: bytes, values: int) -> _Records:
    """The headers of the pages that lie within some bytes, which begin with a page."""
    from windrow.kernels import pages

    room = len(data) // _LEAST_PAGE + 16
    layout = np.zeros(r.TABLE_SIZE, np.int64)
    layout[r.WIDTH], layout[r.CAPACITY] = pages.HEADER_WIDTH, room
    records = np.zeros(room * pages.HEADER_WIDTH, np.int64)
    start, end, count = np.array([[0], [len(data)], [values]], np.int64)
    source = np.frombuffer(data, np.uint8)
    whole, _ = pages.scan_pages(source, start, end, count, PAGE_GRAMMAR.compiled, layout, records)
    walked = records.view(PAGE)
    # The walk stops at the first page that ends elsewhere, or for which there is no room: those before it are whole.
    return walked[: whole if whole >= 0 else int(np.count_nonzero(walked["body"]))]


def _first_page(data: bytes, left: int, name: str) -> _Records:
    """The header of a page that is longer than what was read of it."""
    header = read_page_header(data, name=name)
    if header.header_size + header.compressed_size > left:
        raise Damaged(f"{name}: a page ends behind its chunk; write the file again")
    page = np.zeros(1, PAGE)
    page["kind"], page["num_values"], page["body"] = header.type, header.num_values, header.header_size
    page["compressed"] = header.compressed_size
    return page


def encode_places(places: OffsetIndex) -> bytes:
    """The bytes of a record of places."""
    table = np.stack([places.offsets, places.compressed_sizes, places.first_rows]).astype("<i8")
    return _MAGIC + table.tobytes()


def decode_places(data: bytes, start: int, length: int, values: int) -> OffsetIndex | None:
    """The places of a chunk's pages from their record; None where it cannot be about that chunk."""
    body = memoryview(data)[len(_MAGIC) :]
    if data[: len(_MAGIC)] != _MAGIC or len(body) % 24 or len(body) > _LONGEST_RECORD:
        return None
    places = OffsetIndex(*np.frombuffer(body, "<i8").reshape(3, -1))
    return places if are_places(places, start, length, values) else None


def are_places(places: OffsetIndex, start: int, length: int, values: int) -> bool:
    """Whether places can be those of a chunk: its pages follow each other to its end, and their rows ascend."""
    offsets, ends = places.offsets, places.offsets + places.compressed_sizes
    if not offsets.size or offsets[0] < start or ends[-1] > start + length or (places.compressed_sizes <= 0).any():
        return False
    follow = (ends[:-1] == offsets[1:]).all() and (np.diff(places.first_rows) >= 0).all()
    return bool(follow and places.first_rows[0] == 0 and places.first_rows[-1] <= values)
