"""Slow and failed reads are asked again; what can only be done once is done once."""

from __future__ import annotations

import threading

import pytest

from windrow.errors import Damaged, InvalidInput, NotFound, StorageError
from windrow.storage import ByteRange, Identity, LocalStore, PatientStore, open_store, patient_if_remote
from windrow.testing import Fault, FaultKind, FaultyStore, StoreTests


class TestPatientWithAFolder(StoreTests):
    @pytest.fixture
    def store(self, tmp_path):
        return PatientStore(LocalStore(tmp_path / "root"))


class TestPatient(StoreTests):
    @pytest.fixture
    def store(self):
        return PatientStore(open_store("memory://"))


@pytest.fixture
def inner():
    store = open_store("memory://")
    store.put("digits", b"0123456789")
    return store


def patient(inner, *faults, **options):
    naps = []
    faulty = FaultyStore(inner, faults)
    store = PatientStore(faulty, sleep=naps.append, draw=lambda: 0.0, **{"hedge_after": None, **options})
    return store, faulty, naps


READS = {
    "get": lambda store: store.get("digits"),
    "get_ranges": lambda store: store.get_ranges("digits", [ByteRange(2, 3)]),
    "get_suffix": lambda store: store.get_suffix("digits", 4),
    "head": lambda store: store.head("digits"),
}


@pytest.mark.parametrize("verb", READS)
def test_a_read_that_fails_twice_succeeds_the_third_time(inner, verb):
    store, faulty, naps = patient(inner, Fault(FaultKind.ERROR, 1), Fault(FaultKind.LOST, 2))
    assert READS[verb](store) == READS[verb](inner)
    assert faulty.calls[verb] == 3
    assert naps == [0.1, 0.2]


def test_a_store_that_stays_down_is_an_error(inner):
    store, faulty, _ = patient(inner, Fault(FaultKind.ERROR, 1, onwards=True))
    with pytest.raises(StorageError, match="planned fault"):
        store.get("digits")
    assert faulty.calls["get"] == 3


def test_what_waiting_does_not_help_is_not_tried_again(inner):
    store, faulty, naps = patient(inner, Fault(FaultKind.ERROR, 1, retryable=False))
    with pytest.raises(StorageError):
        store.get("digits")
    with pytest.raises(NotFound):
        store.get("missing")
    with pytest.raises(Damaged):
        store.get_ranges("digits", [ByteRange(0, 1)], expect=Identity(11))
    assert (sum(faulty.calls.values()), naps) == (3, [])


def test_a_write_is_done_once(inner):
    store, faulty, _ = patient(inner, Fault(FaultKind.ERROR, 1))
    with pytest.raises(StorageError):
        store.put("new", b"1")
    assert faulty.calls["put"] == 1
    store.delete("digits")
    assert [each.key for each in store.list()] == []


def test_a_read_without_an_answer_is_asked_a_second_time(inner):
    stuck = threading.Event()
    faulty = FaultyStore(inner, Fault(FaultKind.DELAY, 1), sleep=lambda _: stuck.wait())
    store = PatientStore(faulty, hedge_after=0.05)
    assert store.get("digits") == b"0123456789"
    assert (store.hedged, faulty.calls["get"]) == (1, 2)
    stuck.set()


def test_a_second_read_that_fails_leaves_the_first(inner):
    released = threading.Event()
    plan = [Fault(FaultKind.DELAY, 1), Fault(FaultKind.ERROR, 2)]
    faulty = FaultyStore(inner, plan, sleep=lambda _: released.wait())
    store = PatientStore(faulty, hedge_after=0.05, attempts=1)
    threading.Timer(0.3, released.set).start()
    assert store.get("digits") == b"0123456789"


@pytest.mark.parametrize("options", [{"attempts": 0}, {"pause": -1}, {"hedge_after": 0}])
def test_options_that_cannot_be_are_refused(inner, options):
    with pytest.raises(InvalidInput, match="attempts"):
        PatientStore(inner, **options)


def test_reads_of_local_files_are_tried_again_too(tmp_path):
    folder = LocalStore(tmp_path)
    folder.put("digits", b"0123456789")
    store, faulty, _ = patient(folder, *(Fault(FaultKind.ERROR, 1, verb) for verb in ("open", "read_at", "read_each")))
    assert store.local.open("digits").read_at(2, 3) == b"234"
    assert store.local.read_each([("digits", 10, ByteRange(2, 3))]) == [b"234"]
    assert faulty.struck == {"open": 1, "read_at": 1, "read_each": 1}
    assert PatientStore(folder).local.path("digits") == folder.path("digits")


def test_only_what_is_remote_needs_patience(tmp_path, inner):
    folder = LocalStore(tmp_path)
    assert patient_if_remote(folder) is folder
    assert patient_if_remote(inner).store is inner
