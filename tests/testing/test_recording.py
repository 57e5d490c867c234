"""Every call is written down with its sizes and its end."""

import pytest

from windrow.errors import AlreadyExists, NotFound, StorageError
from windrow.storage import ByteRange, LocalStore, open_store
from windrow.testing import Fault, FaultKind, FaultyStore, Recorded, RecordingStore, StoreTests
from windrow.testing.stores import at_once


class TestRecordingAFolder(StoreTests):
    @pytest.fixture(params=[False, True], ids=["no paths", "paths"])
    def store(self, request, tmp_path):
        return RecordingStore(LocalStore(tmp_path / "root"), paths=request.param)


class TestRecordingStore(StoreTests):
    @pytest.fixture
    def store(self):
        return RecordingStore(open_store("memory://"))


@pytest.fixture
def store():
    return RecordingStore(open_store("memory://"))


def test_calls_are_written_down_in_order(store):
    store.put("a", memoryview(b"12345"))
    store.put_if_absent("b", b"678")
    with pytest.raises(AlreadyExists):
        store.put_if_absent("b", b"9")
    store.get("a")
    store.get_ranges("a", [ByteRange(0, 2), ByteRange(1, 2)])
    store.get_suffix("a", 3)
    store.head("a")
    list(store.list("folder"))
    store.delete("a")
    with pytest.raises(NotFound):
        store.get("a")
    assert store.calls == (
        Recorded("put", "a", sent=5, received=0, outcome="ok"),
        Recorded("put_if_absent", "b", sent=3, received=0, outcome="ok"),
        Recorded("put_if_absent", "b", sent=1, received=0, outcome="AlreadyExists"),
        Recorded("get", "a", sent=0, received=5, outcome="ok"),
        Recorded("get_ranges", "a", sent=0, received=4, outcome="ok"),
        Recorded("get_suffix", "a", sent=0, received=3, outcome="ok"),
        Recorded("head", "a", sent=0, received=0, outcome="ok"),
        Recorded("list", "folder", sent=0, received=0, outcome="ok"),
        Recorded("delete", "a", sent=0, received=0, outcome="ok"),
        Recorded("get", "a", sent=0, received=0, outcome="NotFound"),
    )


def test_a_listing_stands_where_it_began(store):
    for key in "abc":
        store.put(key, b"1")
    listing = store.list()
    assert len(store.calls) == 3
    next(listing)
    store.delete("c")
    assert [(call.verb, call.outcome) for call in store.calls[3:]] == [("list", "running"), ("delete", "ok")]
    listing.close()
    assert store.calls[3].outcome == "abandoned"


def test_it_records_the_faults_of_a_store_within():
    store = RecordingStore(FaultyStore(open_store("memory://"), Fault(FaultKind.LOST)))
    with pytest.raises(StorageError):
        store.put("a", b"1")
    assert store.calls == (Recorded("put", "a", sent=1, outcome="StorageError"),)


def test_threads_lose_no_call(store):
    at_once(8, lambda thread: [store.put(f"{thread}/{number}", b"12") for number in range(50)])
    assert len(store.calls) == 400
    assert {call.outcome for call in store.calls} == {"ok"}
    assert len({call.key for call in store.calls}) == 400


def test_reads_of_local_files_are_written_down(tmp_path):
    folder = LocalStore(tmp_path)
    folder.put("a", b"12345")
    store = RecordingStore(folder, paths=True)
    store.local.open("a").read_at(1, 3)
    store.local.read_each([("a", 5, ByteRange(0, 2)), ("b", 5, ByteRange(0, 2))])
    store.local.path("a")
    assert [(call.verb, call.key, call.received) for call in store.calls] == [
        ("open", "a", 0),
        ("read_at", "a", 3),
        ("read_each", "a", 2),
        ("read_each", "b", 0),
        ("path", "a", 0),
    ]
