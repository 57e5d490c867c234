"""Structs that are written by templates."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from windrow.kernels.footers import render
from windrow.parquet.thrift import prefixed, zigzag

TEXTS = bytes(range(256)) * 2
NUMBERS = st.integers(-(2**63), 2**63 - 1)


def plain(templates, rows, kinds):
    """What `render` writes, one value after the other."""
    out = b""
    for row, kind in zip(rows, kinds, strict=True):
        steps, end = templates[kind]
        for before, word, is_text in steps:
            out += before
            out += prefixed(TEXTS[row[word] : row[word] + row[word + 1]]) if is_text else zigzag(row[word])
        out += end
    return out


def arrays(templates):
    constants, table, steps = b"", [], []
    for each, end in templates:
        first = len(steps)
        for before, word, is_text in each:
            steps.append((len(constants), len(constants) + len(before), word, is_text))
            constants += before
        table.append((first, len(steps), len(constants), len(constants) + len(end)))
        constants += end
    to = np.int64
    return np.frombuffer(constants, np.uint8), np.array(table, to), np.array(steps, to).reshape(-1, 4)


WORDS = 6
# Words 0 to 3 are numbers, 4 and 5 the place and the length of a text.
STEPS = st.lists(
    st.tuples(st.binary(max_size=3), st.integers(0, 3), st.just(value=False))
    | st.tuples(st.binary(max_size=3), st.just(4), st.just(value=True)),
    max_size=5,
)
ROWS = st.lists(st.tuples(NUMBERS, NUMBERS, NUMBERS, NUMBERS, st.integers(0, 600), st.integers(0, 300)), max_size=8)


@given(st.data())
def test_structs_are_those_that_plain_code_writes(data):
    templates = data.draw(st.lists(st.tuples(STEPS, st.binary(max_size=4)), min_size=1, max_size=3))
    rows = data.draw(ROWS)
    kinds = [data.draw(st.integers(0, len(templates) - 1)) for _ in rows]
    words = np.array(rows, np.int64).reshape(-1, WORDS)
    written = render(*arrays(templates), words, np.array(kinds, np.int64), np.frombuffer(TEXTS, np.uint8))
    assert written.tobytes() == plain(templates, rows, kinds)


def test_a_text_that_would_lie_outside_is_cut():
    templates = [([(b"", 4, True)], b"")]
    words = np.array([(0, 0, 0, 0, -5, 2**62), (0, 0, 0, 0, 2**62, 2**62), (0, 0, 0, 0, 3, -1)], np.int64)
    written = render(*arrays(templates), words, np.zeros(3, np.int64), np.frombuffer(TEXTS, np.uint8))
    assert written.tobytes() == prefixed(TEXTS) + prefixed(b"") * 2
