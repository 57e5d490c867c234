"""The least and the greatest text are those of Python's order of bytes."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from windrow.kernels.extents import extent_of_texts

# Texts that are alike at their beginning, and differ by length, by a zero, or by a byte above 127.
TEXTS = st.text(alphabet="ab\0\xff", max_size=20).map(lambda text: text.encode("latin-1"))


@given(st.lists(st.one_of(TEXTS, TEXTS.map(lambda text: b"the same beginning" + text)), min_size=1), TEXTS)
@settings(deadline=None)  # the first call compiles
def test_the_least_and_the_greatest_of_some_texts(values, before):
    data = np.frombuffer(before + b"".join(values), np.uint8)
    bounds = np.cumsum([len(before), *map(len, values)]).astype(np.int64)
    least, greatest = extent_of_texts(data, data[: data.size // 8 * 8].view(np.uint64), bounds)
    assert (values[least], values[greatest]) == (min(values), max(values))
