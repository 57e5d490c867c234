"""Merges of a bucket open their inputs by several requests at a time."""

from __future__ import annotations

import dataclasses
import threading

import windrow
from windrow.storage import StoreWrapper, address_of


class Distant(StoreWrapper):
    """A store that is slow to answer: a request for the end of a file waits a moment for another one."""

    def __init__(self, store):
        super().__init__(store)
        self.met = threading.Event()
        self._inside, self._lock = 0, threading.Lock()

    @property
    def gap(self):
        return 2**21

    def around(self, call, run):
        if call.verb != "get_suffix":
            return run()
        with self._lock:
            self._inside += 1
            if self._inside > 1:
                self.met.set()
        try:
            self.met.wait(0.2)
            return run()
        finally:
            with self._lock:
                self._inside -= 1

    def around_list(self, call, listing):
        return listing


def test_a_merge_asks_for_the_ends_of_its_inputs_at_once(lake):
    store = Distant(lake.context.store)
    there = dataclasses.replace(lake.context, url=address_of(store), store=store)
    result = windrow.Lake(there).table("metrics").compact.run(threads=1)
    assert (result.failed, result.done > 0) == (0, True)
    assert store.met.is_set()
