"""A lease lives as long as the work, and a beat that fails is tried again."""

from __future__ import annotations

import threading

import pytest

from windrow.errors import LeaseExpired, MetastoreError
from windrow.runners.heartbeat import Heartbeat


class Beats:
    """Counts heartbeats and fails those that it is told to."""

    def __init__(self, failures=()):
        self.failures = list(failures)
        self.calls = 0
        self.third = threading.Event()

    def heartbeat(self, commit_id, *, attempt, lease):
        self.calls += 1
        if self.calls == 3:
            self.third.set()
        if self.failures and (failure := self.failures.pop(0)) is not None:
            raise failure


@pytest.mark.parametrize("failures", [[], [MetastoreError("gone"), MetastoreError("gone")]])
def test_it_beats_on_while_the_block_runs_even_when_a_beat_fails(failures):
    beats = Beats(failures)
    with Heartbeat(beats, "c1", 1, lease=0.03):
        assert beats.third.wait(timeout=10)


def test_it_stops_when_the_lease_is_lost_and_when_the_block_ends():
    beats = Beats([LeaseExpired("too late")])
    with Heartbeat(beats, "c1", 1, lease=0.03) as heartbeat:
        heartbeat._thread.join(timeout=10)
        assert not heartbeat._thread.is_alive()
    assert beats.calls == 1
