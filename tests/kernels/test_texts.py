"""Texts of many dictionaries get one number each."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from windrow.kernels.texts import copy_texts, hash_texts, unify_texts


def laid_out(texts):
    """Texts behind each other in words, with their places."""
    data = b"".join(texts)
    words = np.frombuffer(data + bytes(-len(data) % 8 + 16), np.uint64)
    lengths = np.array([len(text) for text in texts], np.int64)
    return words, np.cumsum(lengths) - lengths, lengths


@given(st.lists(st.one_of(st.sampled_from([b"", b"a", b"ab", b"host-0001", b"host-0002"]), st.binary(max_size=40))))
@settings(deadline=None)  # the first call compiles
def test_equal_texts_share_a_number_given_by_first_appearance(texts):
    numbers, firsts = unify_texts(*laid_out(texts))
    distinct = list(dict.fromkeys(texts))
    assert [distinct[number] for number in numbers.tolist()] == texts
    assert [texts[first] for first in firsts.tolist()] == distinct


@given(st.lists(st.sets(st.integers(0, 30)), max_size=12))
@settings(deadline=None)  # the first call compiles
def test_dictionaries_that_lack_some_texts_share_numbers(dictionaries):
    texts = [b"host-%d" % number for dictionary in dictionaries for number in sorted(dictionary)]
    numbers, firsts = unify_texts(*laid_out(texts))
    distinct = list(dict.fromkeys(texts))
    assert [distinct[number] for number in numbers.tolist()] == texts
    assert [texts[first] for first in firsts.tolist()] == distinct


def test_many_texts_outgrow_the_first_table():
    texts = [f"{n % 20_000:05d}".encode() for n in range(50_000)]
    numbers, firsts = unify_texts(*laid_out(texts))
    assert numbers.tolist() == [n % 20_000 for n in range(50_000)]
    assert firsts.tolist() == list(range(20_000))


@given(st.lists(st.binary(max_size=20)), st.sampled_from([0, 4]))
@settings(deadline=None)  # the first call compiles
def test_texts_are_copied_behind_their_lengths(texts, prefix):
    words, offsets, lengths = laid_out(texts)
    expected = b"".join(len(text).to_bytes(4, "little")[:prefix] + text for text in texts)
    out, ends = np.zeros(len(expected), np.uint8), np.zeros(len(texts), np.int64)
    assert copy_texts(words.view(np.uint8), offsets, lengths, prefix, out, ends) == len(expected)
    assert out.tobytes() == expected
    assert ends.tolist() == np.cumsum(lengths + prefix).tolist()


@given(st.lists(st.binary(max_size=40), unique=True))
@settings(deadline=None)  # the first call compiles
def test_hashes_tell_texts_apart_wherever_they_lie(texts):
    words, offsets, lengths = laid_out(texts)
    hashes = np.zeros(len(texts), np.uint64)
    hash_texts(words, offsets, lengths, hashes)
    assert len(set(hashes.tolist())) == len(texts)
    shifted, places, sizes = laid_out([b"xyz", *texts])
    again = np.zeros(len(texts) + 1, np.uint64)
    hash_texts(shifted, places, sizes, again)
    assert again[1:].tolist() == hashes.tolist()
