"""The stores of obstore: the suite of all stores on memory and S3, and what sets each kind apart."""

import pickle
from datetime import UTC, datetime

import pytest
from obstore.store import HTTPStore, LocalStore, MemoryStore

from windrow.errors import Damaged, InvalidInput, NotFound, Replaced, StorageError
from windrow.storage import ByteRange, CountingStore, Identity, open_store
from windrow.storage.kinds import AZURE, MEMORY, S3
from windrow.storage.remote import ObstoreStore
from windrow.testing import Misbehaviour, StoreTests


class TestMemory(StoreTests):
    @pytest.fixture
    def store(self):
        return open_store("memory://")


@pytest.mark.s3
class TestS3(StoreTests):
    @pytest.fixture
    def store(self, s3_url, s3_options):
        return open_store(s3_url, options=s3_options)


class TestAzureWays:
    """What only Azure makes necessary, over other stores of obstore that behave like it."""

    @pytest.fixture
    def store(self, tmp_path):
        return ObstoreStore(LocalStore(tmp_path), "az://container", AZURE)

    def test_a_suffix_is_a_head_and_a_range(self, range_server):
        range_server.objects["/digits"] = b"0123456789"
        inner = HTTPStore(range_server.url, client_options={"allow_http": True})
        data, info = ObstoreStore(inner, "az://container", AZURE).get_suffix("digits", 4)
        assert (data, info.size) == (b"6789", 10)
        assert range_server.requests == [("HEAD", "/digits", None), ("GET", "/digits", "bytes=6-9")]

    def test_a_shorter_object_is_returned_whole(self, store):
        store.put("digits", b"0123456789")
        store.put("empty", b"")
        assert store.get_suffix("digits", 100)[0] == b"0123456789"
        assert store.get_suffix("empty", 100)[0] == b""

    def test_a_listing_is_put_in_order(self, store):
        expected = sorted(f"{number * 7919 % 50:02}/{name}" for number in range(50) for name in "ba")
        for key in expected:
            store.put(key, b"1")
        assert [info.key for info in store.list()] == expected
        assert [info.key for info in store.list(after=expected[40])] == expected[41:]

    def test_deleting_what_is_missing_is_fine(self, store):
        store.delete("never/was")


def test_the_time_of_a_put_is_the_writers():
    moment = datetime(2024, 5, 1, tzinfo=UTC)
    store = ObstoreStore(MemoryStore(), "memory://", MEMORY, clock=lambda: moment)
    assert store.put("a", b"1").modified == moment
    assert store.head("a").modified > moment


@pytest.mark.s3
class TestBucket:
    def test_the_environment_is_enough(self, s3_url, s3_options, monkeypatch):
        for name, value in s3_options.items():
            monkeypatch.setenv(f"AWS_{name.upper()}", value)
        store = open_store(s3_url)
        store.put("a", b"1")
        assert open_store(s3_url, options=s3_options).get("a") == b"1"

    def test_folders_of_a_bucket_are_stores_of_their_own(self, s3_url, s3_options):
        below = open_store(f"{s3_url}/below", options=s3_options)
        below.put("a", b"1")
        above = open_store(s3_url, options=s3_options)
        assert [info.key for info in above.list()] == ["below/a"]
        assert [info.key for info in below.list()] == ["a"]

    def test_a_missing_bucket_is_told(self, s3_options):
        store = open_store("s3://no-such-bucket/lake", options=s3_options)
        for call in (lambda: store.get("a"), lambda: store.put("a", b"1"), lambda: list(store.list())):
            with pytest.raises(NotFound, match=r"s3://no-such-bucket/lake/.*check the key and that the bucket exists"):
                call()

    def test_a_plain_text_endpoint_must_be_allowed(self, s3_url, s3_options):
        store = open_store(s3_url, options={**s3_options, "allow_http": "false"})
        with pytest.raises(StorageError, match="check its address, region and options"):
            store.get("a")

    def test_a_store_survives_pickling(self, s3_url, s3_options):
        store = open_store(s3_url, options=s3_options)
        store.put("a", b"1")
        assert pickle.loads(pickle.dumps(store)).get("a") == b"1"

    def test_no_secret_is_shown(self, s3_url, s3_options):
        store = open_store(s3_url, options=s3_options)
        assert "something" not in repr(store) + store.url


class TestHttp:
    @pytest.fixture
    def store(self, range_server):
        range_server.objects["/lake/a/digits"] = b"0123456789"
        range_server.objects["/lake/empty"] = b""
        return open_store(f"{range_server.url}/lake")

    def test_an_object_is_read_whole_and_in_parts(self, store):
        assert store.get("a/digits") == b"0123456789"
        assert store.head("a/digits").size == 10
        assert store.get_ranges("a/digits", [ByteRange(7, 3), ByteRange(0, 2)]) == [b"789", b"01"]
        with pytest.raises(NotFound, match="lake/nothing"):
            store.get("nothing")

    def test_a_suffix_takes_one_request(self, store, range_server):
        data, info = store.get_suffix("a/digits", 4)
        assert data == b"6789"
        assert (info.size, info.etag) == (10, range_server.etag(b"0123456789"))
        assert range_server.requests == [("GET", "/lake/a/digits", "bytes=-4")]

    def test_a_suffix_of_an_empty_object_is_empty(self, store):
        data, info = store.get_suffix("empty", 4)
        assert (data, info.size) == (b"", 0)

    def test_ranges_close_together_take_one_request(self, store, range_server):
        store.get_ranges("a/digits", [ByteRange(8, 1), ByteRange(1, 2), ByteRange(5, 0)])
        assert range_server.requests == [("GET", "/lake/a/digits", "bytes=1-8")]

    def test_ranges_far_apart_take_one_each(self, store, range_server):
        range_server.objects["/lake/wide"] = bytes(store.gap + 100)
        assert store.get_ranges("wide", [ByteRange(store.gap + 50, 2), ByteRange(0, 2)]) == [bytes(2)] * 2
        asked = sorted(wanted for _, _, wanted in range_server.requests)
        assert asked == ["bytes=0-1", f"bytes={store.gap + 50}-{store.gap + 51}"]

    def test_a_server_without_ranges_is_read_whole(self, store, range_server):
        range_server.behave = lambda request: Misbehaviour.NO_RANGES
        assert store.get_ranges("a/digits", [ByteRange(7, 3), ByteRange(0, 2)]) == [b"789", b"01"]
        assert store.get_ranges("a/digits", [ByteRange(7, 3)], expect=Identity(10)) == [b"789"]
        data, info = store.get_suffix("a/digits", 4)
        assert (data, info.size) == (b"6789", 10)
        with pytest.raises(StorageError, match="only 1 are there"):
            store.get_ranges("a/digits", [ByteRange(9, 2)])
        with pytest.raises(Damaged):
            store.get_ranges("a/digits", [ByteRange(7, 3)], expect=Identity(11))

    def test_an_answer_that_breaks_off_is_no_answer(self, store, range_server):
        range_server.behave = lambda request: Misbehaviour.SHORT
        for expect in (None, Identity(10)):
            with pytest.raises(StorageError, match="digits") as caught:
                store.get_ranges("a/digits", [ByteRange(0, 8)], expect=expect)
            assert caught.value.retryable

    def test_what_the_object_is_comes_with_its_bytes(self, store, range_server):
        expect = Identity(10, range_server.etag(b"0123456789"))
        assert store.get_ranges("a/digits", [ByteRange(7, 3)], expect=expect) == [b"789"]
        assert range_server.requests == [("GET", "/lake/a/digits", "bytes=7-9")]
        range_server.objects["/lake/a/digits"] = b"9876543210"
        with pytest.raises(Replaced, match="was replaced"):
            store.get_ranges("a/digits", [ByteRange(7, 3)], expect=expect)

    def test_percent_signs_stay_what_they_are(self, store, range_server):
        with pytest.raises(NotFound):
            store.get("a%2Fdigits")
        with pytest.raises(NotFound):
            store.get("%2e%2e/secret")
        assert [path for _, path, _ in range_server.requests] == ["/lake/a%252Fdigits", "/lake/%252e%252e/secret"]

    @pytest.mark.parametrize(
        "call",
        [
            lambda store: store.put("a", b"1"),
            lambda store: store.put_if_absent("a", b"1"),
            lambda store: store.delete("a/digits"),
            lambda store: store.list(),
        ],
        ids=["put", "put_if_absent", "delete", "list"],
    )
    def test_http_is_read_only(self, store, range_server, call):
        with pytest.raises(InvalidInput, match="HTTP stores can be read by key and not"):
            call(store)
        assert range_server.requests == []


@pytest.mark.s3
def test_a_bucket_is_asked_as_often_as_is_counted(s3_url, s3_options):
    store = CountingStore(open_store(s3_url, options=s3_options))
    store.put("wide", bytes(S3.gap + 5000))
    store.get_ranges("wide", [ByteRange(S3.gap + 4000, 2), ByteRange(10, 2), ByteRange(0, 2)])
    assert store.counts.requests == {"put": 1, "get_ranges": 2}
    assert store.counts.bytes_read == 14
