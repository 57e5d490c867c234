from __future__ import annotations

import numpy as np
import pytest

from windrow.parquet import chunk as c


def test_the_flags_are_bits_of_their_own():
    flags = [value for name, value in vars(c).items() if name.startswith(("HAS_", "MIN_", "MAX_")) or name in SINGLE]
    assert sum(flags) == c.ALL_FLAGS
    assert len(flags) == 20


SINGLE = {"ENCRYPTED", "UNKNOWN_ENCODING", "NAN_FREE"}


def test_records_lie_on_word_boundaries_without_gaps():
    assert c.FOOTER_CHUNK.itemsize == sum(c.FOOTER_CHUNK[name].itemsize for name in c.FOOTER_CHUNK.names)
    assert all(c.FOOTER_CHUNK.fields[name][1] % c.FOOTER_CHUNK[name].itemsize == 0 for name in c.FOOTER_CHUNK.names)


@pytest.mark.parametrize(
    ("dictionary", "data", "start"), [(4, 20, 4), (0, 20, 20), (30, 20, 20), (20, 20, 20), (-1, 20, 20), (4, 0, 4)]
)
def test_a_chunk_starts_with_a_dictionary_only_if_that_can_be(dictionary, data, start):
    chunks = np.zeros((1, 2), c.FOOTER_CHUNK)
    chunks["dictionary_page_offset"], chunks["data_page_offset"] = dictionary, data
    assert c.chunk_starts(chunks).tolist() == [[start, start]]
    assert c.chunk_starts(chunks[0, 0]) == start
