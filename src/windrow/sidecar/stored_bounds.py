"""Placing minimum and maximum values in chunk records: up to 8 bytes inside of the record, longer ones out of line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from windrow.errors import InvalidInput
from windrow.sidecar import layout
from windrow.sidecar.layout import Side


class Spans(NamedTuple):
    """One bound for every chunk: where its bytes are in a heap, how many (0: no bound), and whether it is exact."""

    starts: NDArray[np.int64]
    lengths: NDArray[np.int64]
    exact: NDArray[np.bool_]


class LongBounds(NamedTuple):
    """Bounds that go out of line, by row group, column and side (minimum, maximum); length 0 is none."""

    heap: bytes
    starts: NDArray[np.int64]
    lengths: NDArray[np.int64]


_LOW_BYTES = np.array([256**length - 1 for length in range(layout.LONGEST_INLINE + 1)], np.uint64)
"""By a length: the word that keeps so many bytes of another."""


def place_bounds(chunks: NDArray[np.void], heap: bytes, minimum: Spans, maximum: Spans) -> LongBounds:
    """Fill flags, sizes and slots of chunk records, by row group and column; gives back bounds too long for a slot."""
    for side, spans in zip(layout.SIDES, (minimum, maximum), strict=True):
        _refuse_too_long(spans, side.slot)
        has = spans.lengths > 0
        short = has & (spans.lengths <= layout.LONGEST_INLINE)
        flags = has * side.present | short * side.inlined | (has & spans.exact) * side.exact
        chunks["stat_flags"] |= flags.astype(np.uint8)
        chunks["stat_sizes"] |= (np.where(short, spans.lengths, 0) << side.size_shift).astype(np.uint8)
        chunks[side.slot][short] = _inline(heap, spans.starts[short], spans.lengths[short])
    starts = np.stack([minimum.starts, maximum.starts], axis=-1)
    lengths = np.stack([minimum.lengths, maximum.lengths], axis=-1)
    return LongBounds(heap, starts, np.where(lengths > layout.LONGEST_INLINE, lengths, 0))


def _refuse_too_long(spans: Spans, slot: str) -> None:
    longest = int(spans.lengths.max(initial=0))
    if longest > layout.LONGEST_BOUND:
        where = np.argwhere(spans.lengths == longest)[0].tolist()
        problem = f"{slot} of row group {where[0]}, column {where[1]} has {longest} bytes"
        raise InvalidInput(f"sidecar: {problem}; leave out bounds beyond {layout.LONGEST_BOUND} bytes")


def _inline(heap: bytes, starts: NDArray[np.int64], lengths: NDArray[np.int64]) -> NDArray[np.uint64]:
    """The slots of short bounds: their bytes, then zeros."""
    if len(heap) < layout.WORD:
        heap = heap + bytes(layout.WORD)
    last = len(heap) - layout.WORD
    # A word at every byte, so that one lookup takes all bytes of a slot; the last ones begin inside of the last word.
    words: NDArray[np.uint64] = np.ndarray(last + 1, "<u8", heap, strides=(1,))
    beyond = np.maximum(starts - last, 0)
    slots: NDArray[np.uint64] = (
        words[starts - beyond] >> (beyond * 8).astype(np.uint64) if beyond.any() else words[starts]
    )
    return slots & _LOW_BYTES[lengths]


def far_places(
    chunks: NDArray[np.void], side: Side, regions: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where bounds begin that are out of line, and how long they are; regions are those of their row groups."""
    slots = chunks[side.slot]
    starts = regions + (slots >> np.uint64(16)).astype(np.int64)
    return starts, (slots & np.uint64(layout.LONGEST_BOUND)).astype(np.int64)


def joined(parts: Sequence[LongBounds]) -> LongBounds | None:
    """The bounds of row groups after each other, all out of one heap; None where none is long."""
    if not any(part.lengths.any() for part in parts):
        return None
    starts, lengths = (np.concatenate(arrays) for arrays in zip(*((p.starts, p.lengths) for p in parts), strict=True))
    return LongBounds(parts[0].heap, starts, lengths)
