"""How the failures of disks and object stores become Windrow's errors, so that callers know one kind of each."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager

from windrow.config import masked
from windrow.errors import AlreadyExists, NotFound, StorageError, WindrowError

__all__ = ["disk_failure", "local_reads", "missing", "remote_failure", "taken"]

# errno -> the problem and what to do about it.
_DISK_PROBLEMS = {
    errno.ENOSPC: "the disk is full; free some space or move the lake to a larger disk",
    errno.EDQUOT: "the disk quota is used up; free some space or raise the quota",
    errno.EROFS: "the file system is mounted read-only; mount it writable or take another folder",
    errno.EACCES: "permission denied; check the owner and mode of the file and its folders, this user may not do that",
    errno.EFBIG: "the file would be larger than the file system or the limit of this process (ulimit -f) allows",
    errno.EPERM: "the file system refuses the operation; check that the folder may be written and allows hard links",
    errno.EIO: "the disk reports an input/output error; check the disk before writing to it again",
    errno.EISDIR: "a folder has this name; take another key",
    errno.ENOTDIR: "a part of the key is the name of a file; take another key",
    errno.EMFILE: "too many files are open; close some or raise the limit (ulimit -n)",
    errno.ENFILE: "too many files are open on this machine; close some or raise the limit",
    errno.ENOENT: "the folder was taken away while it was written to; try again",
}
_PASSING = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOENT, errno.EAGAIN, errno.EINTR, errno.ETIMEDOUT})

# obstore tells the status and the kind of a failed request only in the text of its errors.
_STATUS = re.compile(r"inner: Status \{\s*status: (\d{3})")
_BROKEN_TRANSFER = re.compile(r"HttpError \{\s*kind: (Connect|Request|Timeout|Interrupted)")
_THROTTLED = frozenset({408, 429})


def missing(name: str) -> NotFound:
    """The error for an object that is not there."""
    return NotFound(f"{name}: there is no such object; check the key, or whether it was deleted")


def taken(name: str) -> AlreadyExists:
    """The error for a key that holds an object already."""
    return AlreadyExists(f"{name}: the key is taken; take another key, or read the object that is there")


def disk_failure(error: OSError, name: str) -> StorageError:
    """The error for a failed operation on a local file."""
    problem = _DISK_PROBLEMS.get(error.errno or 0, f"{error.strerror or error}; check the disk and the folder")
    return StorageError(f"{name}: {problem}", retryable=error.errno in _PASSING)


@contextmanager
def local_reads(path: str | os.PathLike[str], absent: str) -> Iterator[None]:
    """Name a local file in errors of reading it; `absent` is the problem, and what to do, when there is none."""
    try:
        yield
    except FileNotFoundError as error:
        raise NotFound(f"{os.fspath(path)}: {absent}") from error
    except OSError as error:
        problem = f"cannot be read: {error.strerror}; check the path and its permissions"
        raise StorageError(f"{os.fspath(path)}: {problem}") from error


def remote_failure(error: Exception, name: str) -> WindrowError:
    """The error for one of obstore."""
    from obstore import exceptions

    text = str(error)
    match = _STATUS.search(text)
    status = int(match.group(1)) if match else 0
    if isinstance(error, FileNotFoundError) or status == 404:
        return NotFound(f"{name}: not found; check the key and that the bucket exists ({_gist(text)})")
    if isinstance(error, exceptions.AlreadyExistsError):
        return taken(name)
    if isinstance(error, exceptions.PermissionDeniedError | exceptions.UnauthenticatedError) or status in {401, 403}:
        return StorageError(
            f"{name}: access denied; check the credentials and what they are allowed to do there ({_gist(text)})"
        )
    if status >= 500 or status in _THROTTLED or _BROKEN_TRANSFER.search(text):
        return StorageError(
            f"{name}: the store does not answer or is overloaded; try again later ({_gist(text)})", retryable=True
        )
    return StorageError(f"{name}: the store refused; check its address, region and options ({_gist(text)})")


def _gist(text: str) -> str:
    """The sentence that obstore puts before the document of the server and its own debug output, without secrets."""
    return str(masked("", re.split(r"\n|: <", text, maxsplit=1)[0]))[:300].strip(" :")
