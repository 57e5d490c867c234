"""Freed memory is kept in processes of our own, where the C library can keep it."""

from __future__ import annotations

import ctypes

import pytest

from windrow.merging import heap
from windrow.tricks import Trick, without


@pytest.fixture
def settings(monkeypatch):
    """What is set in a C library that takes any setting."""
    made = []

    class Library:
        def mallopt(self, name, value):
            made.append((name, value))
            return 1

        def malloc_trim(self, rest):
            made.append(("trim", rest))
            return 1

    monkeypatch.setattr(ctypes, "CDLL", lambda _: Library())
    monkeypatch.setattr(heap, "_is_own", False)
    heap._set_thresholds.cache_clear()
    yield made
    heap._set_thresholds.cache_clear()


def test_a_process_that_hosts_others_keeps_its_settings(settings):
    assert not heap.keep_freed_memory()
    assert settings == []


def test_the_settings_are_made_once_in_a_process_of_our_own(settings):
    heap.own_process()
    assert heap.keep_freed_memory()
    assert heap.keep_freed_memory()
    assert settings == [(heap.TRIM_THRESHOLD, heap.KEPT), (heap.MMAP_THRESHOLD, heap.LARGEST)]


def test_without_the_trick_nothing_is_set_and_nothing_trimmed(settings):
    heap.own_process()
    with without(Trick.FREED_MEMORY):
        assert not heap.keep_freed_memory()
        heap.return_freed_memory()
    assert settings == []


def test_freed_memory_is_handed_back(settings):
    heap.return_freed_memory()
    assert settings == [("trim", 0)]


def test_a_library_without_the_settings_is_left_alone(settings, monkeypatch):
    monkeypatch.setattr(ctypes, "CDLL", lambda _: object())
    heap.own_process()
    assert not heap.keep_freed_memory()
    heap.return_freed_memory()
