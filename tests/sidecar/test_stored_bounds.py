"""Bounds of up to 8 bytes are in their slot, wherever in the heap they come from; longer ones are out of line."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow.sidecar import layout
from windrow.sidecar.stored_bounds import Spans, joined, place_bounds

HEAPS = st.binary(min_size=1, max_size=40)


@given(st.data(), HEAPS)
def test_slots_and_references_give_back_the_bytes(data: st.DataObject, heap: bytes) -> None:
    places = st.integers(0, len(heap)).flatmap(
        lambda start: st.tuples(st.just(start), st.integers(0, len(heap) - start))
    )
    pairs = data.draw(st.lists(places, min_size=1, max_size=12))
    starts, lengths = (np.array(side, np.int64)[:, None] for side in zip(*pairs, strict=True))
    spans = Spans(starts, lengths, np.ones(starts.shape, bool))
    chunks = np.zeros(starts.shape, layout.CHUNK)
    long = place_bounds(chunks, heap, spans, spans)
    for group, (start, length) in enumerate(pairs):
        wanted = heap[start : start + length]
        if length > 8:
            assert (long.starts[group, 0, 0], long.lengths[group, 0, 0]) == (start, length)
        else:
            assert long.lengths[group, 0].tolist() == [0, 0]
            assert (
                chunks["min_stat"][group, 0].tobytes()
                == chunks["max_stat"][group, 0].tobytes()
                == wanted.ljust(8, b"\0")
            )
    assert (joined([long]) is None) == all(length <= 8 for _, length in pairs)


@pytest.mark.parametrize(("length", "is_inlined"), [(1, True), (4, True), (8, True), (9, False), (12, False)])
def test_up_to_eight_bytes_are_inlined(length: int, is_inlined: bool) -> None:
    chunks = np.zeros((1, 1), layout.CHUNK)
    spans = Spans(np.zeros((1, 1), np.int64), np.array([[length]]), np.ones((1, 1), bool))
    long = place_bounds(chunks, b"x" * length, spans, spans)
    assert bool(chunks["stat_flags"][0, 0] & layout.StatFlag.MIN_INLINED) is is_inlined
    assert long.lengths.ravel().tolist() == ([0, 0] if is_inlined else [length, length])
