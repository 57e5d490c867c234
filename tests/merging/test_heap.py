"""Freed memory is kept where the C library can keep it."""

import ctypes

from windrow.merging.heap import keep_freed_memory


def test_the_setting_is_made_where_there_is_one():
    has_setting = hasattr(ctypes.CDLL(None), "mallopt")
    assert keep_freed_memory.__wrapped__() == has_setting


def test_a_library_without_the_setting_is_left_alone(monkeypatch):
    monkeypatch.setattr(ctypes, "CDLL", lambda _: object())
    assert not keep_freed_memory.__wrapped__()
