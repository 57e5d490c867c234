"""Caches that count entries: bounds hold, what is used stays, keys of identity are never confused, counters add up."""

from __future__ import annotations

import gc
import threading

import pytest

from windrow.bounded import BoundedCache, entry_counts, memo


def never():
    pytest.fail("the value is there already")


def test_the_value_that_was_used_longest_ago_makes_room():
    cache = BoundedCache("letters", 2)
    cache.put("a", 1)
    cache.put("b", 2)
    assert cache.get("a") == 1
    cache.put("c", 3)
    assert ("a" in cache, "b" in cache, "c" in cache, len(cache)) == (True, False, True, 2)


def test_a_value_is_made_once_and_none_is_a_value_too():
    cache = BoundedCache("letters", 2)
    assert cache.get_or_make("a", lambda: None) is None
    assert cache.get_or_make("a", never) is None
    counts = cache.counts()
    assert (counts.hits, counts.misses, counts.evictions, counts.values) == (1, 1, 0, 1)


def test_an_error_of_what_makes_a_value_is_not_cached():
    cache = BoundedCache("letters", 2)
    with pytest.raises(ZeroDivisionError):
        cache.get_or_make("a", lambda: 1 // 0)
    assert cache.get_or_make("a", lambda: 1) == 1


def test_a_budget_counts_what_values_weigh_as_they_gain_weight():
    cache = BoundedCache("lists", budget=5)
    cache.put("a", "first", 1)
    cache.put("b", "second", 2)
    cache.put("b", "second", 4)
    assert ("a" in cache, "b" in cache) == (True, True)
    cache.put("b", "second", 5)
    assert ("a" in cache, cache.get("b"), cache.counts().evictions) == (False, "second", 1)
    cache.drop("b")
    cache.put("c", "third", 5)
    assert "c" in cache
    cache.clear()
    cache.put("d", "fourth", 6)
    assert "d" not in cache


def test_so_many_values_stay_whatever_they_weigh():
    cache = BoundedCache("lists", budget=1, least=1)
    cache.put("a", "first", 2)
    cache.put("b", "second", 3)
    assert ("a" in cache, "b" in cache) == (False, True)


def test_values_are_dropped_one_by_one_and_all_at_once():
    cache = BoundedCache("letters", 9)
    cache.put("a", 1)
    cache.put("b", 2)
    cache.drop("a")
    cache.drop("never there")
    assert (cache.get("a", 7), len(cache)) == (7, 1)
    cache.clear()
    assert len(cache) == 0


def test_a_key_that_is_equal_to_itself_alone_is_held():
    class Thing:
        pass

    cache = BoundedCache("things", 100)
    for number in range(100):
        cache.put(Thing(), number)  # each would get the place of the one before, were that let go
    gc.collect()
    assert len(cache) == 100


def test_caches_of_one_name_are_counted_together_as_long_as_they_are_there():
    first, second = BoundedCache("pairs of a test", 9), BoundedCache("pairs of a test", 9)
    for cache in (first, second):
        cache.get_or_make("a", lambda: 1)
        cache.get_or_make("a", never)
    [counts] = [each for each in entry_counts() if each.name == "pairs of a test"]
    assert (counts.hits, counts.misses, counts.values) == (2, 2, 2)
    del second, cache
    [counts] = [each for each in entry_counts() if each.name == "pairs of a test"]
    assert counts.hits == 1


def test_a_function_remembers_the_results_of_its_last_calls():
    @memo("squares of a test", 2)
    def square(number):
        return number * number

    assert [square(n) for n in (1, 1, 2, 3)] == [1, 1, 4, 9]
    [counts] = [each for each in entry_counts() if each.name == "squares of a test"]
    assert (counts.hits, counts.misses, counts.evictions, counts.values) == (1, 3, 1, 2)


def test_threads_share_a_cache():
    cache = BoundedCache("numbers", 50)

    def work():
        for n in range(3000):
            assert cache.get_or_make(n % 70, lambda n=n: n % 70) == n % 70

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    counts = cache.counts()
    assert counts.hits + counts.misses == 12_000
    assert len(cache) <= 50


def test_a_forked_child_lets_go_of_what_was_being_changed():
    cache = BoundedCache("letters", 2)
    cache.put("a", 1)
    cache.after_fork()
    assert len(cache) == 1
    inside, leave = threading.Event(), threading.Event()

    def change():
        with cache._lock:
            inside.set()
            leave.wait()

    thread = threading.Thread(target=change)
    thread.start()
    inside.wait()
    cache.after_fork()
    leave.set()
    thread.join()
    assert len(cache) == 0
