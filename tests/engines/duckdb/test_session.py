"""Sessions: the one that was used last is taken first, and what a broken query leaves behind is not used again."""

from __future__ import annotations

import threading

import duckdb
import pytest

from windrow.engines.duckdb.session import Session, Sessions
from windrow.errors import Closed

ENDLESS = "select sum(hash(a.range * b.range)) from range(1000000) a, range(2000000) b"


class Shut:
    """Counts how often everything was shut."""

    def __init__(self, connection):
        self.count = 0
        self._connection = connection

    def __call__(self):
        self.count += 1
        self._connection.close()


@pytest.fixture
def shut():
    with duckdb.connect() as connection:
        yield Shut(connection)


@pytest.fixture
def sessions(shut):
    return Sessions(lambda: Session(shut._connection.cursor(), lambda _: None), lambda: Closed("closed"), shut)


def test_a_thread_that_asks_alone_always_has_the_same_one(sessions):
    first = sessions.take()
    sessions.give_back(first, is_sound=True)
    for _ in range(5):
        again = sessions.take()
        assert again is first
        sessions.give_back(again, is_sound=True)


def test_the_one_that_was_used_last_is_taken_first(sessions):
    some = [sessions.take() for _ in range(3)]
    assert len(set(some)) == 3
    for each in some:
        sessions.give_back(each, is_sound=True)
    assert [sessions.take() for _ in range(3)] == some[::-1]


def test_a_session_in_doubt_is_closed(sessions):
    session = sessions.take()
    sessions.give_back(session, is_sound=False)
    assert session.is_closed
    assert sessions.take() is not session


def test_no_more_than_a_few_wait(sessions):
    some = [sessions.take() for _ in range(20)]
    for each in some:
        sessions.give_back(each, is_sound=True)
    assert [each.is_closed for each in some] == [False] * 8 + [True] * 12


def test_a_fresh_one_was_not_used_before(sessions):
    session = sessions.take()
    sessions.give_back(session, is_sound=True)
    assert sessions.take(fresh=True) is not session
    assert sessions.take() is session


class TestClosing:
    def test_closes_all_and_nothing_can_be_taken(self, sessions, shut):
        idle, taken = sessions.take(), sessions.take()
        sessions.give_back(idle, is_sound=True)
        sessions.close()
        sessions.close()
        assert (idle.is_closed, taken.is_closed, shut.count) == (True, True, 1)
        with pytest.raises(Closed):
            sessions.take()
        sessions.give_back(taken, is_sound=True)
        assert shut.count == 1

    def test_a_session_at_work_is_interrupted_and_waited_for(self, sessions, shut):
        session, errors = sessions.take(), []
        running = threading.Event()

        def work():
            with session.lock:
                running.set()
                try:
                    session.cursor.execute(ENDLESS)
                except duckdb.Error as error:
                    errors.append(error)
            sessions.give_back(session, is_sound=True)

        thread = threading.Thread(target=work)
        thread.start()
        running.wait()
        sessions.close()
        thread.join()
        assert isinstance(errors[0], duckdb.InterruptException)
        assert (session.is_closed, shut.count) == (True, 1)

    def test_a_thread_that_closes_in_the_middle_of_its_own_work_goes_on(self, sessions, shut):
        session = sessions.take()
        with session.lock:
            session.owner = threading.get_ident()
            sessions.close()
            assert (session.is_closed, shut.count) == (False, 0)
        sessions.give_back(session, is_sound=True)
        assert (session.is_closed, shut.count) == (True, 1)
