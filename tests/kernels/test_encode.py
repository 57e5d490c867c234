"""What is packed in the hybrid encoding comes out of it as it went in, chunk by chunk and page by page."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windrow.kernels import encode, hybrid
from windrow.kernels.encode_fixed import DELTAS, JUDGED, SPLIT, encode_fixed, write_otherwise
from windrow.kernels.fixed import decode_fixed
from windrow.kernels.hybrid import next_run, signed
from windrow.parquet.zstd import zstd_compressor

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


def coded_fixed(values, bounds, chunks, most=1024, way=0):
    pages, found = np.zeros((len(bounds) - 1, 9), np.int64), np.zeros((len(chunks) - 1, 3), np.int64)
    entries, out = np.zeros(most * len(found), values.dtype), np.zeros(9 * values.size + 384 * len(bounds), np.uint8)
    cuts, groups = np.array(bounds), np.array(chunks)
    encode_fixed(zstd_compressor(), values, cuts, groups, most, way, pages, found, entries, out)
    return pages, found, entries, out.tobytes()


@pytest.mark.parametrize("distinct", [1, 2, 3, 200])
@pytest.mark.parametrize("pages_at_once", [1, 4])
def test_values_that_repeat_are_coded_and_others_are_not(distinct, pages_at_once):
    rng, page = np.random.default_rng(0), JUDGED // pages_at_once
    repeated = rng.integers(0, distinct, JUDGED).astype(np.uint64)
    unique = np.arange(10_000, 10_000 + JUDGED, dtype=np.uint64)
    values = np.concatenate([unique, repeated, unique, repeated, repeated])
    bounds, chunks = range(0, values.size + 1, page), np.array([0, 2, 5]) * pages_at_once
    pages, found, entries, data = coded_fixed(values, bounds, chunks)
    assert pages[:, ENCODING].tolist() == np.repeat([0, 8, 0, 8, 8], pages_at_once).tolist()
    for chunk, (first, last) in enumerate(zip(chunks[:-1].tolist(), chunks[1:].tolist(), strict=True)):
        count, place, _ = found[chunk].tolist()
        known = entries[place : place + count]
        assert sorted(known.tolist()) == sorted(set(repeated.tolist()))
        for number in range(first, last):
            if pages[number, ENCODING]:
                at, size = pages[number, [VALUES, VALUE_BYTES]].tolist()
                codes = unpacked(data[at + 1 : at + size], page, data[at])
                assert known[codes].tolist() == values[number * page : (number + 1) * page].tolist()


def widths_of(values):
    """The bits of a code on each page."""
    pages, _, _, data = coded_fixed(values, range(0, values.size + 1, 2048), [0, values.size // 2048])
    assert (pages[:, ENCODING] == 8).all()
    return {data[at] for at in pages[:, VALUES].tolist()}


def test_codes_take_whole_bytes_where_they_compress_better_so():
    rng = np.random.default_rng(3)
    walk = np.clip(50 + np.cumsum(rng.normal(size=8192)), 0, 100).astype(np.uint64)
    assert widths_of(walk) == {8}
    assert widths_of(rng.integers(0, 128, 8192).astype(np.uint64)) == {7}
    assert widths_of(rng.integers(0, 2, 8192).astype(np.uint64)) == {1}
    assert widths_of(np.zeros(8192, np.uint64)) == {1}


def test_packed_codes_are_written_in_stretches():
    codes = np.random.default_rng(5).integers(0, 128, 2000).astype(np.int32)
    out = np.zeros(4000, np.uint8)
    size = encode.literal(out, 0, codes, codes.size, 7)
    assert unpacked(out[:size].tobytes(), codes.size, 7) == codes.tolist()
    assert out[0] == encode.STRETCH // 8 << 1 | 1


numbers = st.integers(0, 2**64 - 1) | st.integers(0, 300) | st.sampled_from([2**63 - 1, 2**63, 2**31, 2**32 - 1])


@pytest.mark.parametrize("kind", [np.uint64, np.uint32])
@pytest.mark.parametrize("way", [DELTAS, SPLIT])
@given(values=st.lists(numbers, min_size=1, max_size=300), granule=st.integers(1, 300))
@settings(deadline=None)
def test_values_come_back_from_pages_in_any_other_way(kind, way, values, granule):
    array = np.array([value % 2 ** (8 * np.dtype(kind).itemsize) for value in values], kind)
    for first in range(0, array.size, granule):
        part = array[first : first + granule]
        out = np.zeros(9 * part.size + 384, np.uint8)
        size = write_otherwise(np.concatenate([array[:1], part]), 1, part.size + 1, way, out, 0)
        form = hybrid.DELTA if way == DELTAS else hybrid.SPLIT
        page = np.array([form, 0, 0, 0, size, part.size, 0, part.size, 0, 0])
        words = np.frombuffer(out[:size].tobytes() + bytes(-size % 8 + 16), np.uint64)
        read = np.zeros(part.size, kind)
        assert decode_fixed(words, page, np.zeros(1, kind), read, np.ones(part.size, np.uint8)) == -1
        assert read.tolist() == part.tolist()


@pytest.mark.parametrize("way", [DELTAS, SPLIT])
def test_a_way_is_taken_where_it_saves_a_fifth(way):
    rng = np.random.default_rng(1)
    noise = rng.integers(0, 2**63, 8192).astype(np.uint64)
    smooth = np.cumsum(rng.integers(0, 200, 8192)).astype(np.uint64)
    if way == SPLIT:
        smooth = (1000 + 1e-2 * np.cumsum(rng.normal(size=8192))).view(np.uint64)
    values = np.concatenate([noise, smooth])
    pages, _, _, _ = coded_fixed(values, range(0, values.size + 1, 2048), [0, 4, 8], way=way)
    assert pages[:, ENCODING].tolist() == [0] * 4 + [way] * 4


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
