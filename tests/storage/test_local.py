"""A folder as a store: the suite of all stores, then what only a disk has: links, crashes, full disks."""

import errno
import os
import pickle
import signal
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest

from windrow.errors import InvalidInput, NotFound, StorageError
from windrow.storage import ByteRange, LocalStore
from windrow.testing import StoreTests

NOBODY = 65534


@pytest.fixture
def store(tmp_path):
    return LocalStore(tmp_path / "lake")


def hidden_files(root):
    return list(Path(root).rglob(".*"))


class TestLocalStore(StoreTests):
    @pytest.fixture
    def store(self, tmp_path):
        return LocalStore(tmp_path / "lake")

    @pytest.fixture(autouse=True)
    def nothing_hidden_is_left(self, tmp_path):
        yield
        names = [path.name for path in hidden_files(tmp_path)]
        assert [name for name in names if name.startswith(".windrow-")] == []


class TestFolder:
    def test_the_folder_is_made_by_the_first_write(self, store, tmp_path):
        assert list(store.list()) == []
        with pytest.raises(NotFound):
            store.get("a")
        store.delete("a")
        assert not (tmp_path / "lake").exists()
        store.put("a", b"1")
        assert (tmp_path / "lake" / "a").read_bytes() == b"1"

    def test_a_folder_that_was_taken_away_is_made_again(self, store, tmp_path):
        store.put("a/b/c", b"1")
        (tmp_path / "lake/a/b/c").unlink()
        (tmp_path / "lake/a/b").rmdir()
        (tmp_path / "lake/a").rmdir()
        store.put("a/b/c", b"2")
        assert store.get("a/b/c") == b"2"

    def test_files_get_the_usual_permissions(self, store, tmp_path):
        store.put("a", b"1")
        (tmp_path / "plain").touch()
        assert (tmp_path / "lake/a").stat().st_mode == (tmp_path / "plain").stat().st_mode

    def test_the_url_leads_back_to_the_folder(self, tmp_path):
        assert LocalStore(tmp_path / "größe #1").url == (tmp_path / "größe #1").as_uri()

    def test_programs_that_read_files_are_told_the_path(self, store, tmp_path):
        assert store.root == tmp_path / "lake"
        assert store.path("a/b") == tmp_path / "lake" / "a" / "b"
        with pytest.raises(InvalidInput, match="storage key"):
            store.path("../b")

    def test_a_relative_folder_stays_where_it_was(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        store = LocalStore("lake")
        monkeypatch.chdir("/")
        store.put("a", b"1")
        assert (tmp_path / "lake/a").exists()

    def test_a_store_survives_pickling(self, store):
        store.put("a", b"1")
        assert pickle.loads(pickle.dumps(store)).get("a") == b"1"

    def test_unfinished_files_strange_names_links_and_pipes_are_not_listed(self, store, tmp_path):
        store.put("a/real", b"1")
        folder = tmp_path / "lake" / "a"
        (folder / ".windrow-77-0.tmp").write_bytes(b"half an obj")
        (folder / "back\\slash").touch()
        (folder / os.fsdecode(b"not utf-8 \xff")).touch()
        (folder / "link").symlink_to("real")
        (folder / "folder").symlink_to(".")
        os.mkfifo(folder / "pipe")
        assert [info.key for info in store.list()] == ["a/real"]
        with pytest.raises(NotFound):
            store.get("a/pipe")

    def test_what_crashes_left_behind_can_be_listed_and_removed(self, store, tmp_path):
        store.put("a/real", b"1")
        named, nameless = tmp_path / "lake/a/b/.windrow-7-0-x.json.tmp", tmp_path / "lake/a/.windrow-7-1.tmp"
        (tmp_path / "lake/.windrow-7-2.tmp").touch()
        named.parent.mkdir()
        for path in (named, nameless, tmp_path / "lake/a/.windrow-strange"):
            path.write_bytes(b"1")
        found = list(store.unfinished("a"))
        assert [(each.path, each.key) for each in found] == [(nameless, None), (named, "a/b/x.json")]
        assert [store.remove_unfinished(each) for each in found * 2] == [True, True, False, False]
        assert [info.key for info in store.list()] == ["a/real"]
        assert list(LocalStore(tmp_path / "nothing").unfinished("a")) == []

    def test_a_name_as_long_as_a_disk_takes_can_be_written(self, store):
        store.put("n" * 255, b"1")
        assert store.get("n" * 255) == b"1"

    def test_a_file_deleted_during_a_listing_is_left_out(self, store):
        for key in "abc":
            store.put(key, b"1")
        listing = store.list()
        assert next(listing).key == "a"
        store.delete("b")
        assert [info.key for info in listing] == ["c"]

    def test_an_object_cannot_be_a_folder_too(self, store):
        store.put("a/b", b"1")
        with pytest.raises(StorageError, match=r"lake/a: a folder has this name"):
            store.put("a", b"2")
        with pytest.raises(StorageError, match=r"lake/a/b/c: a part of the key is the name of a file"):
            store.put("a/b/c", b"2")
        with pytest.raises(StorageError, match="name of a file"):
            store.put("a/b/c/d", b"2")
        assert hidden_files(store.root) == []


class TestLinks:
    """A link may lead to another place in the root; one that leads out of it is refused by every verb."""

    @pytest.fixture
    def outside(self, store, tmp_path):
        store.put("inside/object", b"inside")
        outside = tmp_path / "lake-outside"  # its name starts like the root's
        outside.mkdir()
        (outside / "secret").write_bytes(b"secret")
        (tmp_path / "lake" / "out").symlink_to(outside)
        (tmp_path / "lake" / "out-file").symlink_to(outside / "secret")
        (tmp_path / "lake" / "up").symlink_to("../..")
        (tmp_path / "lake" / "new").symlink_to(outside / "new")
        (tmp_path / "lake" / "in").symlink_to("inside")
        return outside

    @pytest.mark.parametrize("key", ["out/secret", "out/new", "out-file", "up/anything", "new"])
    @pytest.mark.parametrize(
        "call",
        [
            lambda store, key: store.get(key),
            lambda store, key: store.get_ranges(key, [ByteRange(0, 1)]),
            lambda store, key: store.get_suffix(key, 1),
            lambda store, key: store.head(key),
            lambda store, key: store.put(key, b"1"),
            lambda store, key: store.put_if_absent(key, b"1"),
            lambda store, key: store.delete(key),
            lambda store, key: list(store.list(key)),
            lambda store, key: store.path(key),
        ],
        ids=["get", "get_ranges", "get_suffix", "head", "put", "put_if_absent", "delete", "list", "path"],
    )
    def test_a_link_that_leads_out_is_refused(self, store, outside, call, key):
        with pytest.raises(StorageError, match="leads out of"):
            call(store, key)
        assert {path.name: path.read_bytes() for path in outside.iterdir()} == {"secret": b"secret"}

    def test_a_link_within_the_root_works_and_is_not_listed(self, store, outside):
        assert store.get("in/object") == b"inside"
        store.put("in/second", b"2")
        assert [info.key for info in store.list()] == ["inside/object", "inside/second"]

    def test_the_root_itself_may_be_a_link(self, store, tmp_path):
        store.put("a", b"1")
        (tmp_path / "link").symlink_to("lake")
        assert LocalStore(tmp_path / "link").get("a") == b"1"

    def test_a_link_to_itself_fails_cleanly(self, store, tmp_path):
        store.put("a", b"1")
        (tmp_path / "lake" / "loop").symlink_to("loop")
        with pytest.raises(StorageError, match="lake/loop"):
            store.get("loop")


@pytest.fixture
def disk_calls(monkeypatch):
    """What is asked of the disk, in order, as (call, path)."""
    calls = []

    def record(name, path_of):
        real = getattr(os, name)

        def recorded(*arguments, **options):
            calls.append((name, path_of(arguments)))
            return real(*arguments, **options)

        monkeypatch.setattr(os, name, recorded)

    record("fsync", lambda arguments: Path(f"/proc/self/fd/{arguments[0]}").readlink())
    record("mkdir", lambda arguments: Path(arguments[0]))
    for name in ("replace", "link"):
        record(name, lambda arguments: Path(arguments[1]))
    record("unlink", lambda arguments: Path(arguments[0]))
    return calls


def steps(calls, root):
    """The calls with paths relative to the root, and `*` for a hidden file."""
    return [(call, "*" if path.name.startswith(".windrow-") else os.path.relpath(path, root)) for call, path in calls]


class TestDurability:
    def test_put_syncs_the_bytes_then_names_them_then_syncs_the_name(self, store, tmp_path, disk_calls):
        store.put("first", b"1")
        disk_calls.clear()
        store.put("a", b"1")
        assert steps(disk_calls, tmp_path / "lake") == [("fsync", "*"), ("replace", "a"), ("fsync", ".")]

    def test_put_if_absent_links_instead(self, store, tmp_path, disk_calls):
        store.put("first", b"1")
        disk_calls.clear()
        store.put_if_absent("a", b"1")
        assert steps(disk_calls, tmp_path / "lake") == [
            ("fsync", "*"),
            ("link", "a"),
            ("unlink", "*"),
            ("fsync", "."),
        ]

    def test_new_folders_are_synced_from_the_top_before_they_are_used(self, store, tmp_path, disk_calls):
        store.put("a/b/c", b"1")
        assert steps(disk_calls, tmp_path / "lake") == [
            ("mkdir", "."),
            ("fsync", ".."),
            ("mkdir", "a"),
            ("fsync", "."),
            ("mkdir", "a/b"),
            ("fsync", "a"),
            ("fsync", "*"),
            ("replace", "a/b/c"),
            ("fsync", "a/b"),
        ]

    def test_folders_of_others_are_synced_once_too(self, tmp_path, disk_calls):
        (tmp_path / "lake/a/b").mkdir(parents=True)
        store = LocalStore(tmp_path / "lake")
        disk_calls.clear()
        store.put("a/b/c", b"1")
        first = [("fsync", "."), ("fsync", "a")]
        put = [("fsync", "*"), ("replace", "a/b/c"), ("fsync", "a/b")]
        assert steps(disk_calls, tmp_path / "lake") == first + put
        disk_calls.clear()
        store.put("a/b/c", b"2")
        assert steps(disk_calls, tmp_path / "lake") == put

    def test_delete_syncs_the_folder(self, store, tmp_path, disk_calls):
        store.put("a/b", b"1")
        disk_calls.clear()
        store.delete("a/b")
        assert steps(disk_calls, tmp_path / "lake") == [("unlink", "a/b"), ("fsync", "a")]


@pytest.fixture
def failing_sync(monkeypatch):
    """Lets the nth sync from now on fail, and counts them."""

    def plan(nth, number):
        count, real = [0], os.fsync

        def fsync(file):
            count[0] += 1
            if count[0] == nth:
                raise OSError(number, os.strerror(number))
            real(file)

        monkeypatch.setattr(os, "fsync", fsync)
        return count

    return plan


class TestFailures:
    @pytest.mark.parametrize("verb", ["put", "put_if_absent"])
    def test_a_failed_sync_of_the_bytes_publishes_nothing_and_is_not_tried_again(self, store, failing_sync, verb):
        store.put("other", b"1")
        syncs = failing_sync(1, errno.EIO)
        with pytest.raises(StorageError, match=r"lake/a: the disk reports an input/output error") as caught:
            getattr(store, verb)("a", b"1")
        assert not caught.value.retryable
        assert syncs == [1]
        assert [info.key for info in store.list()] == ["other"]
        assert hidden_files(store.root) == []

    def test_a_failed_sync_of_the_name_is_told(self, store, failing_sync):
        store.put("other", b"1")
        syncs = failing_sync(2, errno.EIO)
        with pytest.raises(StorageError, match="lake/a"):
            store.put("a", b"1")
        assert syncs == [2]

    def test_a_full_disk_is_told_and_leaves_the_old_object(self, store, failing_sync):
        store.put("a", b"old")
        failing_sync(1, errno.ENOSPC)
        with pytest.raises(StorageError, match="the disk is full") as caught:
            store.put("a", b"new")
        assert not caught.value.retryable
        assert store.get("a") == b"old"
        assert hidden_files(store.root) == []

    def test_a_file_system_that_cannot_sync_folders_is_fine(self, store, failing_sync):
        store.put("other", b"1")
        failing_sync(2, errno.EINVAL)
        store.put("a", b"1")
        assert store.get("a") == b"1"

    def test_a_folder_that_may_not_be_written_is_told(self, public_folder):
        store = LocalStore(public_folder)
        store.put("a", b"old")
        public_folder.chmod(0o555)
        with as_somebody():
            for call in (lambda: store.put("b", b"1"), lambda: store.put("b/c", b"1"), lambda: store.delete("a")):
                with pytest.raises(StorageError, match="permission denied; check the owner and mode") as caught:
                    call()
                assert not caught.value.retryable

    def test_a_folder_that_may_not_be_read_is_told(self, public_folder):
        store = LocalStore(public_folder)
        store.put("a/b", b"old")
        (public_folder / "a").chmod(0o000)
        with as_somebody():
            for call in (lambda: store.get("a/b"), lambda: store.head("a/b"), lambda: list(store.list())):
                with pytest.raises(StorageError, match="permission denied"):
                    call()

    def test_a_file_cut_short_while_it_is_read_is_told(self, store, tmp_path, monkeypatch):
        store.put("a", b"0123456789")
        real = os.pread

        def pread(file, length, offset):
            os.truncate(tmp_path / "lake/a", 4)
            return real(file, length, offset)

        monkeypatch.setattr(os, "pread", pread)
        with pytest.raises(StorageError, match="10 bytes were asked for at offset 0 and only 4 are there"):
            store.get("a")


@pytest.fixture
def public_folder():
    """A folder that other users can get to, other than pytest's own."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder
        for path in [folder, *folder.rglob("*")]:
            if path.is_dir():
                path.chmod(0o755)


@contextmanager
def as_somebody():
    """Modes do not bind root, so as root become nobody for a moment."""
    user = os.geteuid()
    if user == 0:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(user)


RACER = """
import sys
from windrow.errors import AlreadyExists
from windrow.storage.local import LocalStore
root, name = sys.argv[1:]
store = LocalStore(root)
print("ready", flush=True)
sys.stdin.readline()
for number in range(200):
    try:
        store.put_if_absent(f"race/{number}", name.encode() * 1000)
        print(number)
    except AlreadyExists:
        pass
"""

WRITER = """
import sys
from windrow.storage.local import LocalStore
store = LocalStore(sys.argv[1])
for number in range(1, 1_000_000):
    body = bytes([number % 256]) * 2_000_000
    store.put("replaced", body)
    store.put_if_absent(f"new/{number:06}", body)
    print(number, flush=True)
"""

CUT_OFF = """
import resource, signal, sys
from windrow.storage.local import LocalStore
root, verb, key = sys.argv[1:]
# The kernel kills who writes beyond this size, in the middle of the write.
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000))
signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
getattr(LocalStore(root), verb)(key, bytes(2_000_000))
"""


def start(script, *arguments):
    return subprocess.Popen(
        [sys.executable, "-c", script, *map(str, arguments)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


class TestProcesses:
    def test_of_two_processes_one_wins_each_key(self, store, tmp_path):
        racers = {name: start(RACER, tmp_path / "lake", name) for name in "xy"}
        for racer in racers.values():
            assert racer.stdout.readline() == "ready\n"
        for racer in racers.values():
            racer.stdin.write("go\n")
            racer.stdin.flush()
        wins = {name: set(map(int, racer.communicate()[0].split())) for name, racer in racers.items()}
        assert wins["x"] | wins["y"] == set(range(200))
        assert not wins["x"] & wins["y"]
        for name, numbers in wins.items():
            assert all(store.get(f"race/{number}") == name.encode() * 1000 for number in numbers)

    @pytest.mark.parametrize("verb", ["put", "put_if_absent"])
    @pytest.mark.parametrize("key", ["old", "new"])
    def test_a_writer_killed_in_the_middle_of_a_write_changes_nothing(self, store, tmp_path, verb, key):
        store.put("old", b"as it was")
        writer = start(CUT_OFF, tmp_path / "lake", verb, key)
        writer.communicate()
        assert writer.returncode == -signal.SIGXFSZ
        assert [path.stat().st_size for path in hidden_files(tmp_path)] == [1_000_000]
        assert [(info.key, store.get(info.key)) for info in store.list()] == [("old", b"as it was")]

    def test_a_killed_writer_leaves_no_torn_object(self, store, tmp_path):
        for round_, acknowledged in enumerate([1, 2, 3, 5]):
            root = tmp_path / str(round_)
            writer = start(WRITER, root)
            for _ in range(acknowledged):
                last = int(writer.stdout.readline())
            writer.send_signal(signal.SIGKILL)
            writer.communicate()
            store = LocalStore(root)
            found = {info.key: store.get(info.key) for info in store.list()}
            assert all(set(body) == {body[0]} and len(body) == 2_000_000 for body in found.values())
            assert found["replaced"][0] >= last
            assert {f"new/{number:06}" for number in range(1, last + 1)} <= set(found)
