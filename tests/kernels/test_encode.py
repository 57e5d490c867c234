"""What is packed in the hybrid encoding comes out of it as it went in, chunk by chunk and page by page."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windrow.kernels import encode
from windrow.kernels.hybrid import next_run, signed

ROWS, NULLS, LEVELS, LEVEL_BYTES, VALUES, VALUE_BYTES, ENCODING, LOW, HIGH = range(9)


def unpacked(data, count, width):
    """The numbers of the hybrid encoding."""
    words = np.frombuffer(data + bytes(-len(data) % 8 + 16), np.uint64)
    at, out = 0, []
    while len(out) < count:
        left, value, bit, at = next_run(words, at, len(data), width)
        assert at > 0
        if bit < 0:
            out += [value] * left
        else:
            bits = int.from_bytes(data[bit // 8 :], "little")
            out += [bits >> (width * n) & ((1 << width) - 1) for n in range(left)]
    return out[:count]


def texts_of(data, count):
    """Texts, each behind its length."""
    at, out = 0, []
    for _ in range(count):
        size = int.from_bytes(data[at : at + 4], "little")
        out.append(data[at + 4 : at + 4 + size])
        at += 4 + size
    assert at == len(data)
    return out


@given(
    st.lists(st.tuples(st.integers(-1, 40), st.integers(1, 40)), min_size=1, max_size=40),
    st.integers(1, 50),
    st.integers(1, 4),
)
@settings(deadline=None)  # the first call compiles
def test_texts_come_back_from_their_pages(pairs, granule, pages_a_chunk):
    rows = [code for code, length in pairs for _ in range(length)]
    ends = np.cumsum([length for _, length in pairs])
    texts = [b"text %d" % code for code in range(41)]
    lengths = np.array([len(text) for text in texts])
    bounds = np.append(np.arange(0, len(rows), granule), len(rows))
    chunks = np.append(np.arange(0, bounds.size - 1, pages_a_chunk), bounds.size - 1)
    pages, found = np.zeros((bounds.size - 1, 9), np.int64), np.zeros((chunks.size - 1, 3), np.int64)
    out = np.zeros(6 * len(rows) + 64 * bounds.size + chunks.size * 1000, np.uint8)
    spans = np.cumsum(lengths) - lengths, lengths, np.frombuffer(b"".join(texts), np.uint8)
    codes = np.array([code for code, _ in pairs], np.int32)
    used = encode.encode_texts(codes, ends, bounds, chunks, True, spans, 1 << 20, pages, found, out)
    data, read = out[:used].tobytes(), []
    for chunk, (first, last) in enumerate(zip(chunks[:-1].tolist(), chunks[1:].tolist(), strict=True)):
        entries, at, size = found[chunk].tolist()
        known = texts_of(data[at : at + size], entries)
        assert len(set(known)) == len(known)
        for page in range(first, last):
            own = rows[bounds[page] : bounds[page + 1]]
            count, nulls, levels, level_bytes, values, value_bytes, _, low, high = pages[page].tolist()
            assert (count, nulls) == (len(own), own.count(-1))
            assert (low, high) == (min([code for code in own if code >= 0], default=-1), max(own))
            is_set = unpacked(data[levels : levels + level_bytes], count, 1)
            body = data[values : values + value_bytes]
            local = iter(unpacked(body[1:], sum(is_set), body[0]) if entries else ())
            read += [known[next(local)] if one else None for one in is_set]
    assert read == [None if code < 0 else texts[code] for code in rows]


def test_a_dictionary_that_is_too_large_is_left_out():
    pages, found, out = np.zeros((1, 9), np.int64), np.zeros((1, 3), np.int64), np.zeros(1000, np.uint8)
    spans = np.array([0]), np.array([100]), np.zeros(100, np.uint8)
    bounds, chunks = np.array([0, 5]), np.array([0, 1])
    encode.encode_texts(np.zeros(1, np.int32), np.array([5]), bounds, chunks, True, spans, 103, pages, found, out)
    assert found.tolist() == [[0, 0, 0]]
    assert pages[0, [ROWS, NULLS, VALUE_BYTES, ENCODING]].tolist() == [5, 0, 0, 0]


def coded_fixed(values, bounds, chunks, most=1024):
    pages, found = np.zeros((len(bounds) - 1, 9), np.int64), np.zeros((len(chunks) - 1, 3), np.int64)
    entries, out = np.zeros(most * len(found), np.uint64), np.zeros(4 * values.size + 1000, np.uint8)
    encode.encode_fixed(values, np.array(bounds), np.array(chunks), most, pages, found, entries, out)
    return pages, found, entries, out.tobytes()


@pytest.mark.parametrize("distinct", [1, 2, 3, 200])
def test_values_that_repeat_are_coded_and_others_are_not(distinct):
    rng = np.random.default_rng(0)
    repeated = rng.integers(0, distinct, 2000).astype(np.uint64)
    unique = np.arange(10_000, 12_000, dtype=np.uint64)
    values = np.concatenate([unique, repeated, unique, repeated, repeated])
    pages, found, entries, data = coded_fixed(values, range(0, 10_001, 2000), [0, 2, 5])
    assert pages[:, ENCODING].tolist() == [0, 8, 0, 8, 8]
    for chunk, own in enumerate(([1], [3, 4])):
        count, first, _ = found[chunk].tolist()
        known = entries[first : first + count]
        assert sorted(known.tolist()) == sorted(set(repeated.tolist()))
        for page in own:
            at, size = pages[page, [VALUES, VALUE_BYTES]].tolist()
            codes = unpacked(data[at + 1 : at + size], 2000, data[at])
            assert known[codes].tolist() == repeated.tolist()


def test_levels_tell_nulls_apart_and_a_page_without_any_is_one_run():
    valid = np.array([1, 1, 0, 1, 0, 0, 1, 1, 1, 1], np.uint8)
    pages, out = np.zeros((2, 9), np.int64), np.zeros(200, np.uint8)
    encode.encode_levels(valid, np.array([0, 6, 10]), pages, out)
    data = out.tobytes()
    assert pages[:, NULLS].tolist() == [3, 0]
    at, size = pages[0, [LEVELS, LEVEL_BYTES]].tolist()
    assert unpacked(data[at : at + size], 6, 1) == [1, 1, 0, 1, 0, 0]
    at, size = pages[1, [LEVELS, LEVEL_BYTES]].tolist()
    assert data[at : at + size] == bytes([8, 1])
    encode.encode_levels(np.empty(0, np.uint8), np.array([0, 6, 10]), pages[:, :] * 0, out)
    assert out.tobytes()[:4] == bytes([12, 1, 8, 1])


def test_numbers_that_kernels_calculate_with_are_signed():
    assert signed(np.uint64(7)) == 7
