"""What is counted, and how."""

import pytest

from windrow.errors import NotFound
from windrow.storage import ByteRange, CountingStore, LocalStore, open_store
from windrow.storage.kinds import LOCAL_GAP
from windrow.testing import StoreTests
from windrow.testing.stores import at_once


class TestCountingAFolder(StoreTests):
    @pytest.fixture(params=[False, True], ids=["no paths", "paths"])
    def store(self, request, tmp_path):
        return CountingStore(LocalStore(tmp_path / "root"), paths=request.param)


class TestCountingStore(StoreTests):
    @pytest.fixture
    def store(self):
        return CountingStore(open_store("memory://"))


@pytest.fixture
def store(tmp_path):
    return CountingStore(LocalStore(tmp_path))


def test_nothing_is_counted_before_the_first_call(store):
    assert dict(store.counts.requests) == {}
    assert (store.counts.total, store.counts.bytes_read, store.counts.bytes_written) == (0, 0, 0)


def test_requests_are_counted_by_verb_and_bytes_by_direction(store):
    store.put("a", b"12345")
    store.put_if_absent("b", b"678")
    store.get("a")
    store.get_suffix("a", 2)
    store.head("a")
    store.delete("b")
    list(store.list())
    assert store.counts.requests == {
        "put": 1,
        "put_if_absent": 1,
        "get": 1,
        "get_suffix": 1,
        "head": 1,
        "delete": 1,
        "list": 1,
    }
    assert store.counts.total == 7
    assert (store.counts.bytes_read, store.counts.bytes_written) == (7, 8)


def test_ranges_cost_their_fetches_and_the_gaps_within(store):
    store.put("a", bytes(3 * LOCAL_GAP))
    before = store.counts
    store.get_ranges("a", [ByteRange(0, 10), ByteRange(90, 10), ByteRange(2 * LOCAL_GAP, 5), ByteRange(7, 0)])
    cost = store.counts - before
    assert cost.requests == {"get_ranges": 2}
    assert cost.bytes_read == 105


def test_empty_ranges_cost_nothing(store):
    store.put("a", b"12345")
    before = store.counts
    store.get_ranges("a", [ByteRange(3, 0)])
    assert (store.counts - before).total == 0


@pytest.mark.parametrize(("objects", "pages"), [(0, 1), (1, 1), (1000, 1), (1001, 2)])
def test_a_listing_costs_its_pages(objects, pages):
    store = CountingStore(open_store("memory://"))
    for number in range(objects):
        store.store.put(f"{number:04}", b"")
    assert len(list(store.list())) == objects
    assert store.counts.requests == {"list": pages}


def test_a_failed_call_is_a_request_too(store):
    with pytest.raises(NotFound):
        store.get("nothing")
    assert store.counts.requests == {"get": 1}
    assert store.counts.bytes_read == 0


def test_a_snapshot_stays_as_it_is(store):
    store.put("a", b"1")
    counts = store.counts
    store.put("a", b"1")
    assert counts.requests == {"put": 1}
    with pytest.raises(TypeError):
        counts.requests["put"] = 5


def test_threads_lose_no_count(store):
    store.put("a", b"12345")
    at_once(8, lambda _: [store.get("a") for _ in range(50)])
    assert store.counts.requests["get"] == 400
    assert store.counts.bytes_read == 2000


def test_it_passes_for_the_store_it_wraps(store):
    assert store.url == store.store.url
    assert store.gap == store.store.gap
    assert repr(store) == f"CountingStore({store.store!r})"


def test_local_files_are_counted_by_their_verbs(tmp_path):
    store = CountingStore(LocalStore(tmp_path))
    store.store.put("a", b"0123456789")
    opened = store.local.open("a")
    assert [opened.read_at(0, 4), opened.read_at(4, 4)] == [b"0123", b"4567"]
    store.local.read_each([("a", 10, ByteRange(0, 3)), ("none", 10, ByteRange(0, 3))])
    assert store.counts.requests == {"open": 1, "read_at": 2, "read_each": 2}
    assert store.counts.bytes_read == 11
