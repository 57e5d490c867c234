"""Each failure of a disk or a remote store becomes one of Windrow's errors, and says whether waiting helps."""

import errno

import pytest

from windrow.errors import NotFound, StorageError
from windrow.storage import ByteRange, open_store
from windrow.storage.failures import disk_failure
from windrow.testing import Misbehaviour


@pytest.mark.parametrize(
    ("number", "words", "retryable"),
    [
        (errno.ENOSPC, "the disk is full; free some space", False),
        (errno.EDQUOT, "quota is used up", False),
        (errno.EROFS, "mounted read-only", False),
        (errno.EACCES, "permission denied; check the owner and mode", False),
        (errno.EPERM, "refuses the operation", False),
        (errno.EIO, "input/output error", False),
        (errno.EMFILE, "too many files are open", True),
        (errno.ENAMETOOLONG, "File name too long; check the disk and the folder", False),
    ],
)
def test_disk(number, words, retryable):
    error = disk_failure(OSError(number, "File name too long"), "/lake/a")
    assert isinstance(error, StorageError)
    assert str(error).startswith("/lake/a: ")
    assert words in str(error)
    assert error.retryable is retryable


@pytest.fixture
def store(range_server):
    return open_store(range_server.url + "/lake", options={"max_retries": "0"})


@pytest.mark.parametrize(
    ("status", "error", "words", "retryable"),
    [
        (404, NotFound, "not found", False),
        (401, StorageError, "access denied; check the credentials", False),
        (403, StorageError, "access denied; check the credentials", False),
        (400, StorageError, "the store refused; check its address", False),
        (408, StorageError, "try again later", True),
        (429, StorageError, "try again later", True),
        (500, StorageError, "try again later", True),
        (503, StorageError, "try again later", True),
    ],
)
def test_status_of_a_remote_store(store, range_server, status, error, words, retryable):
    range_server.objects["/lake/a/b"] = status
    for call in (lambda: store.get("a/b"), lambda: store.head("a/b"), lambda: store.get_suffix("a/b", 5)):
        with pytest.raises(error, match=words) as caught:
            call()
        assert str(caught.value).startswith(f"{range_server.url}/lake/a/b: ")
        assert caught.value.retryable is retryable
        assert "\n" not in str(caught.value)


def test_a_connection_that_breaks_off(store, range_server):
    range_server.behave = lambda request: Misbehaviour.HANG_UP
    with pytest.raises(StorageError, match="try again later") as caught:
        store.get("a")
    assert caught.value.retryable


def test_nobody_listens():
    store = open_store("http://127.0.0.1:1/lake", options={"max_retries": "0"})
    with pytest.raises(StorageError, match="try again later") as caught:
        store.get_ranges("a", [ByteRange(0, 1)])
    assert caught.value.retryable


def test_a_store_that_does_not_answer_in_time(range_server):
    range_server.behave = lambda request: 0.5
    store = open_store(range_server.url, options={"max_retries": "0", "timeout": "100ms"})
    with pytest.raises(StorageError, match="try again later") as caught:
        store.get("a")
    assert caught.value.retryable
