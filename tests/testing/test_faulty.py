"""Faults strike where and how they are planned."""

from itertools import count

import pytest

from windrow.errors import AlreadyExists, InvalidInput, NotFound, StorageError
from windrow.storage import FILE_VERBS, ByteRange, LocalStore, open_store
from windrow.testing import Fault, FaultKind, FaultyStore, StoreTests


class TestFaultyFolderWithoutFaults(StoreTests):
    @pytest.fixture(params=[False, True], ids=["no paths", "paths"])
    def store(self, request, tmp_path):
        return FaultyStore(LocalStore(tmp_path / "root"), paths=request.param)


class TestFaultyStoreWithoutFaults(StoreTests):
    @pytest.fixture
    def store(self):
        return FaultyStore(open_store("memory://"))


def faulty(*plan, **options):
    store = open_store("memory://")
    store.put("a", b"old")
    return FaultyStore(store, plan, **options)


class TestKinds:
    def test_an_error_comes_before_the_effect(self):
        store = faulty(Fault(FaultKind.ERROR))
        with pytest.raises(StorageError, match=r"a: planned fault \(error\) in put"):
            store.put("a", b"new")
        assert store.store.get("a") == b"old"

    @pytest.mark.parametrize(("keep", "landed"), [(None, b"123"), (0, b""), (5, b"12345"), (99, b"123456")])
    @pytest.mark.parametrize("verb", ["put", "put_if_absent"])
    def test_a_torn_write_lands_in_part(self, verb, keep, landed):
        store = faulty(Fault(FaultKind.TORN, keep=keep))
        with pytest.raises(StorageError, match=f"torn.* in {verb}"):
            getattr(store, verb)("b", b"123456")
        assert store.store.get("b") == landed

    def test_a_torn_write_respects_a_taken_key(self):
        store = faulty(Fault(FaultKind.TORN))
        with pytest.raises(AlreadyExists):
            store.put_if_absent("a", b"new")
        assert store.store.get("a") == b"old"

    def test_a_torn_write_counts_writes_only(self):
        store = faulty(Fault(FaultKind.TORN, nth=2))
        store.put("b", b"1")
        store.get("b")
        store.delete("b")
        with pytest.raises(StorageError):
            store.put("c", b"2")

    def test_a_lost_answer_comes_after_the_effect(self):
        store = faulty(Fault(FaultKind.LOST, nth=1, verb="put"), Fault(FaultKind.LOST, verb="delete"))
        with pytest.raises(StorageError, match="lost"):
            store.put("b", b"new")
        assert store.store.get("b") == b"new"
        with pytest.raises(StorageError, match="lost"):
            store.delete("b")
        assert [info.key for info in store.store.list()] == ["a"]

    def test_a_delay_waits_and_succeeds(self):
        waited = []
        store = faulty(Fault(FaultKind.DELAY, nth=2, seconds=7.5), sleep=waited.append)
        assert (store.get("a"), waited) == (b"old", [])
        assert (store.get("a"), waited) == (b"old", [7.5])
        assert store.fired == 1

    @pytest.mark.parametrize("retryable", [True, False])
    def test_the_error_says_what_the_plan_says(self, retryable):
        with pytest.raises(StorageError) as caught:
            faulty(Fault(FaultKind.ERROR, retryable=retryable)).get("a")
        assert caught.value.retryable is retryable


FILE_CALLS = {
    "path": lambda files: files.path("a"),
    "open": lambda files: files.open("a"),
    "read_at": lambda files: files.open("a").read_at(0, 2),
    "check": lambda files: files.open("a").check(),
    "read_each": lambda files: files.read_each([("a", 3, ByteRange(0, 2)), ("a", 3, ByteRange(1, 2))]),
    "unfinished": lambda files: next(files.unfinished("")),
    "remove_unfinished": lambda files: files.remove_unfinished(next(files.unfinished(""))),
}


@pytest.fixture
def folder(tmp_path):
    store = LocalStore(tmp_path)
    store.put("a", b"old")
    (tmp_path / ".windrow-1-1-b.tmp").write_bytes(b"n")
    return store


class TestLocalFiles:
    def test_every_verb_of_files_is_here(self):
        assert set(FILE_CALLS) == set(FILE_VERBS)

    @pytest.mark.parametrize("verb", FILE_CALLS)
    def test_every_way_to_read_a_file_is_counted_and_struck(self, folder, verb):
        store = FaultyStore(folder, Fault(FaultKind.ERROR, verb=verb), paths=True)
        with pytest.raises(StorageError, match=f"planned fault.*in {verb}"):
            FILE_CALLS[verb](store.local)
        assert store.struck == {verb: 1}
        FILE_CALLS[verb](store.local)
        assert store.calls[verb] >= 2

    def test_there_is_no_path_since_reads_by_it_could_not_be_struck(self, folder):
        store = FaultyStore(folder)
        assert store.local.path("a") is None
        assert not store.calls

    def test_of_many_files_that_are_read_at_once_one_can_be_missing(self, folder):
        for kind in (FaultKind.MISSING, FaultKind.SHORT):
            store = FaultyStore(folder, Fault(kind, nth=2))
            assert FILE_CALLS["read_each"](store.local) == [b"ol", None]

    def test_what_can_be_missing_and_what_can_be_short(self, folder):
        missing = FaultyStore(folder, Fault(FaultKind.MISSING, onwards=True, verb="open"))
        with pytest.raises(NotFound):
            missing.local.open("a")
        short = FaultyStore(folder, Fault(FaultKind.SHORT, onwards=True))
        assert short.get("a") == b"old"
        with pytest.raises(StorageError, match="short") as caught:
            short.local.open("a").read_at(0, 1)
        assert not caught.value.retryable

    def test_a_full_disk_takes_no_write(self, folder):
        store = FaultyStore(folder, Fault(FaultKind.FULL, onwards=True))
        for put in (store.put, store.put_if_absent):
            with pytest.raises(StorageError, match="full") as caught:
                put("b", b"new")
            assert not caught.value.retryable
        assert [info.key for info in store.list()] == ["a"]

    def test_a_store_without_files_has_none_when_it_is_wrapped(self):
        assert FaultyStore(open_store("memory://")).local is None


class TestListings:
    def test_an_error_comes_before_the_first_object(self):
        listing = faulty(Fault(FaultKind.ERROR)).list()
        with pytest.raises(StorageError):
            next(listing)

    def test_a_lost_answer_breaks_off_at_the_end(self):
        listing = faulty(Fault(FaultKind.LOST)).list()
        assert next(listing).key == "a"
        with pytest.raises(StorageError):
            next(listing)

    def test_a_delay_comes_first(self):
        waited = []
        store = faulty(Fault(FaultKind.DELAY, seconds=2), sleep=waited.append)
        assert [info.key for info in store.list()] == ["a"]
        assert waited == [2]


class TestPlan:
    def test_only_the_nth_call_is_struck(self):
        store = faulty(Fault(FaultKind.ERROR, nth=3))
        assert struck(store, 5) == [3]
        assert store.fired == 1

    def test_or_every_call_from_the_nth_on(self):
        store = faulty(Fault(FaultKind.ERROR, nth=3, onwards=True))
        assert struck(store, 5) == [3, 4, 5]
        assert store.fired == 3

    def test_a_verb_is_counted_for_itself(self):
        store = faulty(Fault(FaultKind.ERROR, nth=2, verb="get"))
        store.get("a")
        store.head("a")
        store.head("a")
        with pytest.raises(StorageError):
            store.get("a")
        assert store.calls == {"get": 2, "head": 2}

    def test_several_faults_count_apart_and_the_first_wins(self):
        store = faulty(Fault(FaultKind.ERROR, nth=2), Fault(FaultKind.LOST, nth=2), Fault(FaultKind.ERROR, nth=4))
        assert struck(store, 5) == [2, 4]
        assert store.fired == 2

    def test_calls_are_counted_from_one(self):
        with pytest.raises(InvalidInput, match="counted from 1"):
            Fault(FaultKind.ERROR, nth=0)

    @pytest.mark.parametrize(("kind", "calls"), [(FaultKind.ERROR, 5), (FaultKind.LOST, 5), (FaultKind.TORN, 2)])
    def test_a_loop_over_all_calls_ends(self, kind, calls):
        for nth in count(1):
            store = FaultyStore(open_store("memory://"), Fault(kind, nth))
            try:
                scenario(store)
            except StorageError:
                assert store.fired == 1
            if not store.fired:
                break
        assert nth - 1 == calls


def scenario(store):
    store.put("a", b"1234")
    store.put_if_absent("b", b"5678")
    store.get_ranges("a", [ByteRange(0, 2)])
    list(store.list())
    store.delete("a")


def struck(store, calls):
    numbers = []
    for number in range(1, calls + 1):
        try:
            store.get("a")
        except StorageError:
            numbers.append(number)
    return numbers
