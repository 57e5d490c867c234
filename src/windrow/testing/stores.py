"""What every store has to do: a suite for pytest.

Subclass `StoreTests` in a test module and give it a fixture `store` with an empty store that may be written:

    class TestMyStore(StoreTests):
        @pytest.fixture
        def store(self, tmp_path):
            return MyStore(tmp_path)
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, timedelta
from functools import partial
from itertools import islice
from typing import TypeVar

import pytest

from windrow.errors import AlreadyExists, Damaged, InvalidInput, NotFound, Replaced, StorageError
from windrow.storage.protocol import LIST_PAGE, ByteRange, Identity, ObjectInfo, Store
from windrow.testing.local_files import LocalFilesTests

__all__ = ["HOSTILE_KEYS", "ODD_KEYS", "StoreTests"]

Result = TypeVar("Result")

HOSTILE_KEYS = (
    "",
    "/",
    "/etc/passwd",
    "..",
    "../secret",
    "a/../../secret",
    "a/..",
    ".",
    "./a",
    "a/./b",
    "a//b",
    "a/",
    "a\\b",
    "..\\secret",
    "a\0b",
    "a\nb",
    "a\x7fb",
    "a\x85b",
    "\ud800",
    "x" * 256,
    "x/" * 512 + "x",
    ".windrow-1-1.tmp",
    "a/.windrow-1-1.tmp/b",
)
"""Strings that are no keys on any store."""

ODD_KEYS = (
    "a b",
    " a",
    "a+b",
    "a%2Fb",
    "%2e%2e/secret",
    "a%00b",
    "a?b=c&d",
    "a#b",
    "a*[b]{c}",
    "a:b;c,d@e!f$g",
    "a'b\"c<d>|e^f`g",
    "~a",
    "...",
    "..a",
    "a..",
    ".hidden/_private",
    "partition_id=3/window_start=1700000000/_0001.pm",
    "größe/日本語/🌾",
    "e\u0301",
    "é",
    "x" * 255,
)
"""Strings that look odd and are keys on every store, each for itself."""

RACERS = 8


class StoreTests(LocalFilesTests):
    """The conformance suite of `windrow.storage.Store`, and of its local files where it has any."""

    # One object and whole

    def test_an_object_is_read_as_it_was_written(self, store: Store) -> None:
        store.put("a/b/c.bin", bytes(range(256)))
        assert store.get("a/b/c.bin") == bytes(range(256))

    def test_an_object_can_be_empty(self, store: Store) -> None:
        info = store.put("empty", b"")
        assert info.size == 0
        assert store.get("empty") == b""
        assert store.get_suffix("empty", 10) == (b"", store.head("empty"))

    def test_an_object_can_be_large(self, store: Store) -> None:
        large = b"".join(number.to_bytes(8) for number in range(1_500_000))
        assert store.put("large", large).size == len(large)
        assert store.get("large") == large
        assert store.get_ranges("large", [ByteRange(11_999_992, 8)]) == [(1_499_999).to_bytes(8)]

    @pytest.mark.parametrize("wrap", [bytes, bytearray, memoryview])
    def test_any_bytes_can_be_put(self, store: Store, wrap: Callable[[bytes], bytes]) -> None:
        store.put("put", wrap(b"bytes"))
        store.put_if_absent("put if absent", wrap(b"bytes"))
        assert store.get("put") == store.get("put if absent") == b"bytes"

    def test_an_array_is_put_as_its_bytes(self, store: Store) -> None:
        numbers = memoryview(b"\1\0\0\0\2\0\0\0").cast("I")
        assert store.put("array", numbers).size == 8
        assert store.get("array") == numbers.tobytes()

    def test_what_is_missing_is_not_found(self, store: Store) -> None:
        reads: list[Callable[[], object]] = [
            lambda: store.get("no/such/key"),
            lambda: store.get_ranges("no/such/key", [ByteRange(0, 1)]),
            lambda: store.get_suffix("no/such/key", 1),
            lambda: store.head("no/such/key"),
        ]
        for read in reads:
            with pytest.raises(NotFound, match="no/such/key"):
                read()

    def test_a_folder_is_not_an_object(self, store: Store) -> None:
        store.put("folder/object", b"1")
        with pytest.raises(NotFound):
            store.get("folder")
        with pytest.raises(NotFound):
            store.head("folder")
        store.delete("folder")
        assert keys(store.list()) == ["folder/object"]

    def test_what_is_below_an_object_is_not_found(self, store: Store) -> None:
        store.put("object", b"1")
        with pytest.raises(NotFound):
            store.get("object/below")
        store.delete("object/below")
        assert list(store.list("object")) == []

    # What a store tells of an object

    def test_put_head_list_and_suffix_agree(self, store: Store) -> None:
        put = store.put("a/b", b"12345")
        head = store.head("a/b")
        assert (head.key, head.size, head.etag) == (put.key, put.size, put.etag) == ("a/b", 5, put.etag)
        assert list(store.list()) == [head]
        assert store.get_suffix("a/b", 1) == (b"5", head)

    def test_times_are_in_utc(self, store: Store) -> None:
        put = store.put("a", b"1")
        head = store.head("a")
        assert put.modified.tzinfo == head.modified.tzinfo == UTC
        # By two clocks, and a store may tell whole seconds only.
        assert abs(put.modified - head.modified) < timedelta(minutes=15)

    def test_the_etag_changes_with_the_object(self, store: Store) -> None:
        etags = {store.put("a", bytes([number])).etag for number in range(5)}
        assert len(etags) == 5
        assert store.head("a").etag == store.head("a").etag in etags

    # Ranges

    def test_ranges_come_in_the_order_they_were_asked_for(self, store: Store) -> None:
        store.put("digits", b"0123456789")
        wanted = [(7, 2), (0, 1), (3, 4), (4, 1), (7, 2), (9, 1), (0, 10), (5, 0)]
        expected = [b"78", b"0", b"3456", b"4", b"78", b"9", b"0123456789", b""]
        assert store.get_ranges("digits", ranges(wanted)) == expected

    def test_ranges_far_apart_are_read_too(self, store: Store) -> None:
        size = 3 * store.gap + 4096
        store.put("wide", bytes(size - 4) + b"tail")
        assert store.get_ranges("wide", ranges([(size - 4, 4), (0, 4)])) == [b"tail", bytes(4)]

    def test_no_ranges_are_no_bytes(self, store: Store) -> None:
        store.put("digits", b"0123456789")
        assert store.get_ranges("digits", []) == []
        assert store.get_ranges("digits", ranges([(0, 0), (10, 0)])) == [b"", b""]

    def test_ranges_of_the_expected_object_are_read_and_of_another_one_are_not(self, store: Store) -> None:
        size = 3 * store.gap + 4096
        etag = store.put("wide", bytes(size)).etag
        wanted = ranges([(size - 4, 4), (0, 4)])
        for expect in (Identity(size), Identity(size, etag), store.head("wide").identity):
            assert store.get_ranges("wide", wanted, expect=expect) == [bytes(4), bytes(4)]
        store.put("wide", bytes(size - 1) + b"1")
        assert store.get_ranges("wide", wanted, expect=Identity(size)) == [bytes(3) + b"1", bytes(4)]
        with pytest.raises(Replaced, match="wide"):
            store.get_ranges("wide", wanted, expect=Identity(size, etag))
        for other, problem in ((size - 1, "longer"), (size + 1, "cut short")):
            with pytest.raises(Damaged, match=f"wide.*{problem}"):
                store.get_ranges("wide", wanted, expect=Identity(other))
        with pytest.raises(NotFound):
            store.get_ranges("no/such/key", wanted, expect=Identity(size))

    @pytest.mark.parametrize("beyond", [(10, 1), (9, 2), (0, 11), (5000, 1), (0, 2**40), (2**62, 5)])
    def test_a_range_beyond_the_object_fails(self, store: Store, beyond: tuple[int, int]) -> None:
        store.put("digits", b"0123456789")
        with pytest.raises(StorageError, match="digits") as caught:
            store.get_ranges("digits", ranges([(0, 2), beyond]))
        assert not caught.value.retryable

    @pytest.mark.parametrize(
        ("length", "expected"), [(1, b"9"), (3, b"789"), *((length, b"0123456789") for length in (10, 11, 15, 5000))]
    )
    def test_a_suffix_is_the_end_or_the_whole_object(self, store: Store, length: int, expected: bytes) -> None:
        store.put("digits", b"0123456789")
        assert store.get_suffix("digits", length) == (expected, store.head("digits"))

    @pytest.mark.parametrize("length", [0, -1])
    def test_a_suffix_has_at_least_one_byte(self, store: Store, length: int) -> None:
        store.put("digits", b"0123456789")
        with pytest.raises(InvalidInput, match="suffix"):
            store.get_suffix("digits", length)

    # Writing again, and for the first time only

    def test_put_replaces(self, store: Store) -> None:
        store.put("a", b"a long first version")
        store.put("a", b"second")
        assert store.get("a") == b"second"
        assert keys(store.list()) == ["a"]

    def test_readers_see_whole_versions_while_an_object_is_replaced(self, store: Store) -> None:
        versions = [bytes([number]) * 300_000 for number in range(2)]
        store.put("a", versions[0])
        finished = threading.Event()

        def act(actor: int) -> set[bytes]:
            if actor > 0:
                return {store.get("a") for _ in iter(finished.is_set, True)}
            try:
                for number in range(20):
                    store.put("a", versions[number % 2])
            finally:
                finished.set()
            return set()

        assert set().union(*at_once(3, act)) <= set(versions)

    def test_put_if_absent_writes_once(self, store: Store) -> None:
        assert store.put_if_absent("a/b", b"first").size == 5
        with pytest.raises(AlreadyExists, match="a/b"):
            store.put_if_absent("a/b", b"second")
        assert store.get("a/b") == b"first"
        store.delete("a/b")
        store.put_if_absent("a/b", b"third")
        assert store.get("a/b") == b"third"

    def test_put_if_absent_has_one_winner(self, store: Store) -> None:
        for number in range(5):
            key = f"race/{number}"
            wins = at_once(RACERS, partial(won, store, key))
            assert wins.count(True) == 1
            assert store.get(key) == bytes([wins.index(True)]) * 1000

    def test_delete_may_be_repeated(self, store: Store) -> None:
        store.put("a/b", b"1")
        store.put("a/c", b"2")
        store.delete("a/b")
        store.delete("a/b")
        store.delete("never/was")
        assert keys(store.list()) == ["a/c"]
        with pytest.raises(NotFound):
            store.get("a/b")

    # Listing

    def test_an_empty_store_lists_nothing(self, store: Store) -> None:
        assert list(store.list()) == []
        assert list(store.list("no/such/folder", after="a")) == []

    def test_keys_are_listed_in_their_order(self, store: Store) -> None:
        # "-" and "." sort before the slash, "0" after it; and upper case before lower.
        given = ["a-b", "a.b", "a0b", "a/b-c/d", "a/b/c0", "a/b.c", "B", "a/Z", "é", "z", "🌾"]
        for key in given:
            store.put(key, key.encode())
        assert keys(store.list()) == sorted(given)

    def test_a_prefix_is_a_folder(self, store: Store) -> None:
        for key in ["metrics/a", "metrics/b/c", "metrics2/a", "metricsa", "other"]:
            store.put(key, b"1")
        assert keys(store.list("metrics")) == keys(store.list("metrics/")) == ["metrics/a", "metrics/b/c"]
        assert keys(store.list("metrics/b")) == ["metrics/b/c"]
        assert keys(store.list("metric")) == []
        assert keys(store.list("other")) == []

    @pytest.mark.parametrize(
        ("after", "expected"),
        [
            ("0", ["a/1", "a/b/1", "a/b/2", "a/c", "b"]),
            ("a/1", ["a/b/1", "a/b/2", "a/c", "b"]),
            ("a/b", ["a/b/1", "a/b/2", "a/c", "b"]),
            ("a/b/1", ["a/b/2", "a/c", "b"]),
            ("a/b/15", ["a/b/2", "a/c", "b"]),
            ("a/b0", ["a/c", "b"]),
            ("a/c", ["b"]),
            ("b", []),
        ],
    )
    def test_a_listing_starts_after_a_key(self, store: Store, after: str, expected: list[str]) -> None:
        for key in ["b", "a/c", "a/b/2", "a/b/1", "a/1"]:
            store.put(key, b"1")
        assert keys(store.list(after=after)) == expected
        assert keys(store.list("a", after=after)) == [key for key in expected if key.startswith("a/")]

    def test_a_listing_of_many_pages_is_complete_and_lazy(self, store: Store) -> None:
        expected = [f"many/{number:05}" for number in range(LIST_PAGE + 30)]
        with ThreadPoolExecutor(RACERS) as pool:
            list(pool.map(lambda key: store.put(key, b"1"), expected))
        assert keys(store.list()) == expected
        assert keys(islice(store.list("many"), 3)) == expected[:3]
        assert keys(store.list("many", after=expected[LIST_PAGE - 2])) == expected[LIST_PAGE - 1 :]

    # Keys

    @pytest.mark.parametrize("key", HOSTILE_KEYS)
    def test_a_hostile_key_is_refused_by_every_verb(self, store: Store, key: str) -> None:
        calls: list[Callable[[], object]] = [
            lambda: store.get(key),
            lambda: store.get_ranges(key, [ByteRange(0, 1)]),
            lambda: store.get_ranges(key, []),
            lambda: store.get_suffix(key, 1),
            lambda: store.head(key),
            lambda: store.put(key, b"1"),
            lambda: store.put_if_absent(key, b"1"),
            lambda: store.delete(key),
            lambda: store.list(after=key),
        ]
        for call in calls:
            with pytest.raises(InvalidInput, match="storage key"):
                call()
        assert list(store.list()) == []

    @pytest.mark.parametrize("prefix", [key for key in HOSTILE_KEYS if key not in {"", "a/"}])
    def test_a_hostile_prefix_is_refused(self, store: Store, prefix: str) -> None:
        with pytest.raises(InvalidInput, match="storage key"):
            store.list(prefix)

    def test_odd_keys_name_one_object_each(self, store: Store) -> None:
        for key in ODD_KEYS:
            store.put(key, key.encode())
        assert keys(store.list()) == sorted(ODD_KEYS)
        for key in ODD_KEYS:
            assert store.get(key) == key.encode()
            assert store.head(key).key == key
            store.delete(key)
        assert list(store.list()) == []

    # Many at once

    def test_many_threads_read_one_object(self, store: Store) -> None:
        data = bytes(range(256)) * 40
        store.put("shared", data)

        def read(reader: int) -> bool:
            wanted = [ByteRange(start, 100 + reader) for start in range(0, 10_000, 500)]
            return store.get_ranges("shared", wanted) == [data[each.start : each.end] for each in wanted]

        assert at_once(RACERS, read) == [True] * RACERS

    def test_many_threads_write_their_own_objects(self, store: Store) -> None:
        def write(writer: int) -> None:
            for number in range(10):
                store.put(f"shared/{number}/{writer}", bytes([writer, number]))

        at_once(RACERS, write)
        found = {info.key: store.get(info.key) for info in store.list()}
        assert found == {
            f"shared/{number}/{writer}": bytes([writer, number]) for number in range(10) for writer in range(RACERS)
        }


def keys(listing: Iterator[ObjectInfo]) -> list[str]:
    """The keys of a listing."""
    return [info.key for info in listing]


def ranges(pairs: Sequence[tuple[int, int]]) -> list[ByteRange]:
    """Ranges from pairs of start and length."""
    return [ByteRange(start, length) for start, length in pairs]


def at_once(count: int, work: Callable[[int], Result]) -> list[Result]:
    """Run `work` in so many threads, all let go at the same moment."""
    barrier = threading.Barrier(count)

    def start(number: int) -> Result:
        barrier.wait()
        return work(number)

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(start, range(count)))


def won(store: Store, key: str, racer: int) -> bool:
    """Whether this racer was the one to write an object."""
    try:
        store.put_if_absent(key, bytes([racer]) * 1000)
    except AlreadyExists:
        return False
    return True
