"""Encoded pages become chunks by one call: dictionary, headers, levels and compressed values behind each other.

A library is what `windrow.kernels.frames` calls. The tables of pages and dictionaries are those that
`windrow.kernels.encode` fills.
"""

# Kernels hand each other arrays and places in them, one by one: an object that holds them would cost more than they.
# ruff: noqa: PLR0913, PLR0917

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from windrow.kernels.checksums import crc32
from windrow.kernels.compiled import kernel
from windrow.kernels.encode import (
    ENCODING,
    ENTRIES,
    LEVEL_BYTES,
    LEVELS,
    NULLS,
    PLACE,
    PLAIN,
    ROWS,
    SIZE,
    VALUE_BYTES,
    VALUES,
)
from windrow.kernels.frames import bound
from windrow.kernels.headers import LONGEST_HEADER, dictionary_header, page_header
from windrow.kernels.native import call, copy

__all__ = ["room_for", "write_chunks"]

Bytes = npt.NDArray[np.uint8]
Longs = npt.NDArray[np.int64]
Grid = np.ndarray[tuple[int, int], np.dtype[np.int64]]

SMALLEST_FRAME = 128
"""Fewer bytes are not worth a frame of their own."""
# The numbers of a chunk that was written: where it begins, the bytes of its dictionary page, all of its bytes, and how
# many there are before compression.
BEGIN, DICTIONARY, BYTES, UNCOMPRESSED = range(4)
CHUNK_WIDTH = 4


@kernel
def room_for(pages: Grid, dictionaries: Grid) -> int:
    """How many bytes all chunks can have."""
    room = 0
    for page in range(pages.shape[0]):
        room += LONGEST_HEADER + pages[page, LEVEL_BYTES] + pages[page, VALUE_BYTES]
    for chunk in range(dictionaries.shape[0]):
        room += LONGEST_HEADER + bound(dictionaries[chunk, SIZE])
    return room


@kernel
def write_chunks(
    library: tuple[int, int],
    pages: Grid,
    chunks: Longs,
    bodies: tuple[Bytes, Bytes, Bytes],
    dictionaries: Grid,
    entries: Bytes,
    places: Grid,
    written: Grid,
    out: Bytes,
) -> int:
    """Write all chunks: where each page begins in its chunk and how many bytes it has goes to `places`; all bytes.

    `bodies` are the levels of all pages, the values of those that are encoded, and those of the others. A page is
    stored as it is when compression would save less than a tenth; a dictionary follows the codec, smaller or not. -1
    when the library fails.
    """
    levels, coded, plain = bodies
    most = 0
    for page in range(pages.shape[0]):
        most = max(most, pages[page, VALUE_BYTES])
    for chunk in range(dictionaries.shape[0]):
        most = max(most, dictionaries[chunk, SIZE])
    frame = np.empty(bound(most), np.uint8)
    at = 0
    for chunk in range(chunks.size - 1):
        begin = at
        written[chunk, BEGIN] = begin
        uncompressed = 0
        if dictionaries[chunk, ENTRIES]:
            size = dictionaries[chunk, SIZE]
            packed = call(frame, 0, frame.size, library[0], library[1], entries, dictionaries[chunk, PLACE], size)
            if packed < 0:
                return -1
            crc = crc32(0, frame, 0, packed)
            at = dictionary_header(out, at, size, packed, dictionaries[chunk, ENTRIES], crc)
            uncompressed = at - begin + size
            at = copy(out, at, frame, 0, packed)
        written[chunk, DICTIONARY] = at - begin
        for page in range(chunks[chunk], chunks[chunk + 1]):
            first = at
            body = plain if pages[page, ENCODING] == PLAIN else coded
            start, size, level_bytes = pages[page, VALUES], pages[page, VALUE_BYTES], pages[page, LEVEL_BYTES]
            packed = size
            if size >= SMALLEST_FRAME:
                packed = call(frame, 0, frame.size, library[0], library[1], body, start, size)
                if packed < 0:
                    return -1
            stored = 10 * packed >= 9 * size
            kept = size if stored else packed
            crc = crc32(0, levels, pages[page, LEVELS], level_bytes)
            crc = crc32(crc, body, start, kept) if stored else crc32(crc, frame, 0, kept)
            rows, nulls, encoding = pages[page, ROWS], pages[page, NULLS], pages[page, ENCODING]
            at = page_header(out, at, level_bytes, size, kept, rows, nulls, encoding, stored, crc)
            uncompressed += at - first + level_bytes + size
            at = copy(out, at, levels, pages[page, LEVELS], level_bytes)
            at = copy(out, at, body, start, kept) if stored else copy(out, at, frame, 0, kept)
            places[page, 0], places[page, 1] = first - begin, at - first
        written[chunk, BYTES], written[chunk, UNCOMPRESSED] = at - begin, uncompressed
    return at
