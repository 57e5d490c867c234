"""A lease lives as long as the work, and a beat that fails is tried again."""

from __future__ import annotations

import threading

import pytest

from windrow.errors import CommitUnknown, LeaseExpired, MetastoreError
from windrow.runners.leases import given_up_on_error, held


class Beats:
    """Counts heartbeats and fails those that it is told to."""

    def __init__(self, failures=()):
        self.failures = list(failures)
        self.named = []
        self.first = threading.Event()
        self.third = threading.Event()

    def heartbeat(self, commit_id, *, attempt, lease):
        self.named.append(commit_id)
        if len(self.named) >= 3:
            self.third.set()
        self.first.set()
        if self.failures and (failure := self.failures.pop(0)) is not None:
            raise failure


@pytest.mark.parametrize("failures", [[], [MetastoreError("gone"), MetastoreError("gone")]])
def test_it_beats_on_while_the_block_runs_even_when_a_beat_fails(failures):
    beats = Beats(failures)
    with held(beats, "c1", 1, lease=0.03):
        assert beats.third.wait(timeout=10)


def test_a_lease_that_is_lost_is_let_go_and_the_others_are_kept():
    beats = Beats([LeaseExpired("too late")])
    with held(beats, "c1", 1, lease=0.03) as leases:
        assert beats.first.wait(timeout=10)
        leases.hold("c2", 1)
        assert beats.third.wait(timeout=10)
    assert beats.named[0] == "c1"
    assert set(beats.named[1:]) == {"c2"}


def test_it_ends_with_the_block():
    beats = Beats()
    with held(beats, "c1", 1, lease=0.03) as leases:
        assert beats.first.wait(timeout=10)
    assert not leases._thread.is_alive()


class Aborts:
    """Counts the attempts that are given up; a commit that cannot be aborted is left open."""

    def __init__(self, failure=None):
        self.failure = failure
        self.given_up = []

    def abort(self, commit_id, *, attempt):
        self.given_up.append((commit_id, attempt))
        if self.failure is not None:
            raise self.failure


@pytest.mark.parametrize("failure", [None, MetastoreError("gone")])
@pytest.mark.parametrize("error", [ValueError("bad rows"), KeyboardInterrupt()])
def test_a_block_that_fails_gives_its_attempt_up_and_raises_its_own_error(failure, error):
    aborts = Aborts(failure)
    with pytest.raises(type(error)), given_up_on_error(aborts, "c1", 2):
        raise error
    assert aborts.given_up == [("c1", 2)]


def test_what_may_have_been_published_is_not_given_up_nor_what_succeeds():
    aborts = Aborts()
    with given_up_on_error(aborts, "c1", 1):
        pass
    with pytest.raises(CommitUnknown), given_up_on_error(aborts, "c1", 1):
        raise CommitUnknown("lost", "c1")
    assert aborts.given_up == []
