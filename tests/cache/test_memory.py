"""The cache in memory: one load for many readers, errors that are not kept, a budget that holds, harmless scans."""

from __future__ import annotations

import threading
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow.cache import CacheKey, CacheKind, MemoryCache
from windrow.errors import InvalidInput, StorageError


def never(key):
    pytest.fail(f"{key} is loaded again")


def test_a_value_is_loaded_once_and_then_served(key):
    cache = MemoryCache(10_000)
    assert cache.get(key(), lambda asked: b"value") == b"value"
    assert cache.get(key(), never) == b"value"
    counts = cache.metrics.counts(CacheKind.DEFAULT)
    assert (counts.misses, counts.hits, counts.coalesced) == (1, 1, 0)
    assert cache.size() == 1


def test_a_key_differs_by_place_kind_and_identity(key):
    cache = MemoryCache(10_000)
    keys = [
        key(),
        key(1),
        key()._replace(position=5),
        key()._replace(length=5),
        key(kind=CacheKind.SIDECAR),
        key(identity="v2"),
        CacheKey.footer("file:///0.parquet"),
    ]
    for number, each in enumerate(keys):
        cache.put(each, bytes([number]))
    assert [cache.get(each, never) for each in keys] == [bytes([number]) for number in range(len(keys))]


def test_the_key_of_a_footer_is_the_uri_with_minus_one_twice():
    assert CacheKey.footer("s3://b/f") == ("s3://b/f", -1, -1, CacheKind.DATA_FILE_FOOTER, None)


def together(count, call):
    """Call from many threads that all are there before the first goes on; gives results and errors."""
    barrier, results, errors = threading.Barrier(count), [], []

    def run():
        barrier.wait()
        try:
            results.append(call())
        except StorageError as error:
            errors.append(error)

    threads = [threading.Thread(target=run) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results, errors


def test_64_cold_readers_are_one_load(key):
    cache, loads = MemoryCache(10_000), []

    def slow(asked):
        loads.append(asked)
        threading.Event().wait(0.5)
        return b"value"

    results, errors = together(64, lambda: cache.get(key(), slow))
    assert results == [b"value"] * 64
    assert not errors
    counts = cache.metrics.counts(CacheKind.DEFAULT)
    assert (len(loads), counts.misses, counts.coalesced, counts.hits) == (1, 1, 63, 0)


def test_an_error_is_not_kept_and_does_not_reach_those_who_could_succeed(key):
    cache, turns = MemoryCache(10_000), iter([StorageError("gone"), None])

    def supply(asked):
        threading.Event().wait(0.2)
        error = next(turns, None)
        if error is not None:
            raise error
        return b"value"

    results, errors = together(8, lambda: cache.get(key(), supply))
    assert results == [b"value"] * 7
    assert len(errors) == 1
    assert cache.get(key(), never) == b"value"


def test_a_lasting_error_reaches_everyone_after_two_loads(key):
    cache, loads = MemoryCache(10_000), []

    def supply(asked):
        loads.append(asked)
        threading.Event().wait(0.3)
        raise StorageError("gone")

    results, errors = together(16, lambda: cache.get(key(), supply))
    assert (len(results), len(errors)) == (0, 16)
    assert len(loads) == 2
    assert cache.get(key(), lambda asked: b"back") == b"back"


def test_a_reader_that_is_interrupted_leaves_the_load_to_another(key):
    cache, inside, interrupted = MemoryCache(10_000), threading.Event(), threading.Event()

    def interrupt(asked):
        inside.set()
        interrupted.wait()
        raise KeyboardInterrupt

    def lead():
        with pytest.raises(KeyboardInterrupt):
            cache.get(key(), interrupt)

    found = []
    leader = threading.Thread(target=lead)
    leader.start()
    inside.wait()
    follower = threading.Thread(target=lambda: found.append(cache.get(key(), lambda asked: b"mine")))
    follower.start()
    interrupted.set()
    leader.join()
    follower.join()
    assert found == [b"mine"]


def test_a_supplier_may_ask_for_the_key_that_it_supplies(key):
    cache = MemoryCache(10_000)
    assert cache.get(key(), lambda asked: cache.get(asked, lambda again: b"inner")) == b"inner"


def test_a_load_under_way_is_not_kept_when_its_key_is_invalidated(key):
    cache = MemoryCache(10_000)

    def supply(asked):
        cache.invalidate(asked)
        return b"old"

    assert cache.get(key(), supply) == b"old"
    assert cache.get(key(), lambda asked: b"new") == b"new"

    def supply_all(asked):
        cache.invalidate_all()
        return b"old"

    assert cache.get(key(1), supply_all) == b"old"
    assert cache.size() == 0
    assert cache.weight == 0


def test_what_is_larger_than_the_budget_is_given_and_not_kept(key):
    cache = MemoryCache(1000)
    assert cache.get(key(), lambda asked: bytes(2000)) == bytes(2000)
    cache.put(key(), bytes(2000))
    assert cache.size() == 0


def test_a_negative_budget_is_refused():
    with pytest.raises(InvalidInput, match="budget of -1"):
        MemoryCache(-1)


def test_values_weigh_what_the_cache_is_told_they_weigh(key):
    cache = MemoryCache(100_000, weigh=lambda value: value)
    cache.put(key(), 60_000)
    cache.put(key(1), 60_000)
    assert cache.size() == 1
    assert cache.weight <= cache.budget
    assert cache.metrics.total().evictions == 1


def test_a_scan_over_eight_times_the_budget_leaves_what_is_asked_for_again(key):
    cache, room = MemoryCache(100 * 1300), Counter()

    def read(number):
        room[number] += 1
        return cache.get(key(number), lambda asked: bytes(1000))

    for _ in range(4):
        for hot in range(20):
            read(hot)
    for cold in range(1000, 1800):
        read(cold)
    before = cache.metrics.total().hits
    for hot in range(20):
        read(hot)
    assert cache.metrics.total().hits - before == 20
    assert cache.weight <= cache.budget


OPERATIONS = st.lists(
    st.tuples(st.sampled_from(["get", "put", "invalidate", "clear"]), st.integers(0, 12), st.integers(0, 900)),
    max_size=120,
)


@given(st.integers(0, 4000), OPERATIONS)
def test_it_serves_what_was_supplied_last_and_stays_in_its_budget(budget, operations):
    cache, model = MemoryCache(budget), {}
    for version, (operation, number, size) in enumerate(operations):
        key = CacheKey(f"file:///{number}", 0, 1)
        value = bytes(size) + version.to_bytes(4, "big")
        match operation:
            case "get":
                found = cache.get(key, lambda asked, value=value: value)
                assert found in (value, model.get(key)), "a value that was forgotten, or never supplied"
                model[key] = found
            case "put":
                cache.put(key, value)
                model[key] = value
            case "invalidate":
                cache.invalidate(key)
                model.pop(key, None)
            case "clear":
                cache.invalidate_all()
                model.clear()
        assert cache.weight <= budget
        assert cache.weight == sum(entry.weight for entry in cache._entries.values())
        assert {*cache._small, *cache._large} == set(cache._entries)
        assert cache.size() <= len(model)
