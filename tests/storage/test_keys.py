"""No string that passes for a key leads out of a store, and each names one object of its own on every store."""

import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windrow.errors import InvalidInput
from windrow.storage import LocalStore, check_key, open_store
from windrow.storage.keys import check_prefix, key_problem
from windrow.testing.stores import HOSTILE_KEYS, ODD_KEYS

# Strings in which ways out of a root are likely.
tricky = st.lists(
    st.sampled_from(
        ["..", ".", "/", "\\", "%2e", "%2F", "%00", "~", "a", "é", "\0", "\n", "\x7f", ".windrow-", " ", "C:"]
    )
).map("".join)
segments = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="/\\"), min_size=1, max_size=40)
keys = st.lists(segments, min_size=1, max_size=5).map("/".join).filter(lambda text: key_problem(text) is None)
any_text = st.one_of(st.text(max_size=60), tricky, keys)


@pytest.mark.parametrize("key", ODD_KEYS)
def test_odd_keys_are_keys(key):
    assert check_key(key) == key


@pytest.mark.parametrize("key", HOSTILE_KEYS)
def test_hostile_keys_are_refused_with_the_key_and_the_reason(key):
    with pytest.raises(InvalidInput, match=r"^storage key '.*': .+; ") as caught:
        check_key(key)
    assert key_problem(key) in str(caught.value)


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        ("", "it is empty"),
        ("/a", "leading, trailing or double slash"),
        ("a/../b", "'..' is a way and not a name"),
        ("a\\b", r"character '\\' at position 1"),
        ("a/b\0", r"character '\x00' at position 3"),
        ("x" * 256, "longer than 255 bytes"),
        ("é" * 128, "longer than 255 bytes"),
        ("x/" * 512 + "x", "longer than 1024 bytes"),
        ("a/.windrow-7-1.tmp", "kept for unfinished files"),
    ],
)
def test_the_reason_says_what_is_wrong(key, reason):
    assert reason in key_problem(key)


@settings(deadline=None)
@given(any_text)
def test_what_is_no_key_is_told_and_what_is_one_stays_below_the_root(text):
    path = Path(os.path.normpath(os.path.join("/root/of/store", text)))  # noqa: PTH118 (an absolute text would win)
    if key_problem(text) is None:
        assert os.path.normpath(text) == text
        assert path.is_relative_to("/root/of/store")
        assert path != Path("/root/of/store")
        assert not set(text) & set(map(chr, [*range(32), *range(127, 160)]))
    else:
        with pytest.raises(InvalidInput):
            check_key(text)


@settings(deadline=None)
@given(keys)
def test_every_store_holds_every_key_as_it_is(key):
    with tempfile.TemporaryDirectory() as folder:
        for store in (LocalStore(folder), open_store("memory://")):
            store.put(key, b"1")
            assert [info.key for info in store.list()] == [key]
            assert store.get(key) == b"1"


@settings(deadline=None)
@given(any_text)
def test_a_prefix_is_empty_or_a_key_with_or_without_a_slash(text):
    acceptable = text == "" or key_problem(text) is None or (text.endswith("/") and key_problem(text[:-1]) is None)
    if acceptable:
        assert check_prefix(text) == text.removesuffix("/")
    else:
        with pytest.raises(InvalidInput):
            check_prefix(text)
