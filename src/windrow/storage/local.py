"""A folder as a store whose writes last: what `put` has acknowledged is there after a power cut, whole.

A write goes to a hidden file in the same folder, is forced to the disk, takes its name in one step, and then the name
is forced to the disk too. So no moment exists at which a key shows part of an object, and a crash leaves at most a
hidden file behind. Links that lead out of the root are refused; against someone who swaps links while a call
is under way only the permissions of the folder help.
"""

from __future__ import annotations

import errno
import itertools
import os
import re
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Self

from windrow.errors import StorageError
from windrow.model.moments import instant
from windrow.storage.failures import disk_failure, missing, taken
from windrow.storage.keys import RESERVED, check_key, check_prefix, key_problem
from windrow.storage.kinds import LOCAL_GAP
from windrow.storage.mapped import pieces
from windrow.storage.protocol import ByteRange, BytesLike, Identity, ObjectInfo, Pieces, Unfinished
from windrow.storage.ranges import Fetch, check_identity, check_suffix, read_ranges, too_short

__all__ = ["LocalStore", "OpenedFile"]


_HIDDEN = re.compile(rf"{re.escape(RESERVED)}\d+-\d+(?:-(?P<name>.+))?\.tmp")
_LONGEST_NAME = 255

# One counter for the process: two stores on one folder never try the same name.
_serial = itertools.count()


class LocalStore:
    """The objects are the plain files in and below a folder, which is made by the first write.

    A file whose name cannot be a key, a link, and a file that is still being written are not listed.
    """

    # Read for every file of every plan, so not a property.
    is_remote = False

    def __init__(self, root: str | Path) -> None:
        self._root = Path(os.path.realpath(root))
        # As text, since making a path of a key costs as much as opening the file; only a root at the top has the slash.
        self._folder = f"{str(self._root).rstrip('/')}/"
        # Folders whose own names are on the disk for certain.
        self._settled = {self._root} if self._root.is_dir() else set()

    def __repr__(self) -> str:
        return f"LocalStore({str(self._root)!r})"

    @property
    def url(self) -> str:
        """The folder as a `file://` URL."""
        return self._root.as_uri()

    @property
    def root(self) -> Path:
        """The folder."""
        return self._root

    @property
    def local(self) -> Self:
        """The objects are files, and the store itself reads them as such."""
        return self

    def path(self, key: str) -> Path:
        """Where the object of a key is, for programs that read files by themselves.

        A link that leads out of the root is refused.
        """
        return Path(self._place(key))

    def _place(self, key: str) -> str:
        """The path of a key as text: making a path of it costs as much as opening the file."""
        path = self._name(check_key(key))
        if self._meets_link(key) and not Path(os.path.realpath(path)).is_relative_to(self._root):
            raise StorageError(f"{path}: a link leads out of {self._root}; remove it or open the folder it leads to")
        return path

    def _meets_link(self, key: str) -> bool:
        """Whether a link stands between the root, which is none, and what a key names, as far as that exists."""
        path, at = self._name(key), len(self._folder)
        try:
            while at >= 0:
                at = path.find("/", at + 1)
                if stat.S_ISLNK(os.lstat(path if at < 0 else path[:at]).st_mode):
                    return True
        except OSError:
            pass
        return False

    @property
    def gap(self) -> int:
        """What a disk reads in the time of a system call."""
        return LOCAL_GAP

    def get(self, key: str) -> bytes:
        """All bytes of a file."""
        with self._opened(key) as (file, status):
            return _read(file, ByteRange(0, status.st_size), status.st_size, self._name(key))

    def get_ranges(self, key: str, ranges: Sequence[ByteRange], *, expect: Identity | None = None) -> Pieces:
        """The bytes of several ranges of a file, opened once."""

        def read(fetches: Sequence[Fetch]) -> Iterator[bytes]:
            with self._opened(key) as (file, status):
                check_identity(name, expect, _info(key, status))
                for fetch in fetches:
                    yield _read(file, fetch, status.st_size, name)

        name = self._name(check_key(key))
        return read_ranges(name, ranges, self.gap, read)

    def get_suffix(self, key: str, length: int) -> tuple[bytes, ObjectInfo]:
        """The last bytes of a file."""
        check_suffix(length)
        with self._opened(key) as (file, status):
            start = max(0, status.st_size - length)
            wanted = ByteRange(start, status.st_size - start)
            return _read(file, wanted, status.st_size, self._name(key)), _info(key, status)

    def head(self, key: str) -> ObjectInfo:
        """Size, etag and time of a file."""
        with self._opened(key) as (_, status):
            return _info(key, status)

    def put(self, key: str, data: BytesLike) -> ObjectInfo:
        """Write a file durably, over the one that was there."""
        return self._write(key, data, _replace)

    def put_if_absent(self, key: str, data: BytesLike) -> ObjectInfo:
        """Write a file durably unless its name is taken."""
        return self._write(key, data, _link)

    def list(self, prefix: str = "", *, after: str | None = None) -> Iterator[ObjectInfo]:
        """Every file in and below a folder, ordered by key; a folder is read when the iterator gets there."""
        folder = check_prefix(prefix)
        start = "" if after is None else check_key(after)
        return self._walk(f"{folder}/" if folder else "", start)

    def delete(self, key: str) -> None:
        """Remove a file durably."""
        path = self.path(key)
        try:
            path.unlink()
            _sync_folder(path.parent)
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            return
        except OSError as error:
            raise disk_failure(error, self._name(key)) from error

    def unfinished(self, prefix: str) -> Iterator[Unfinished]:
        """Every hidden file in and below a folder: a writer is at work on it, or was stopped."""
        folder = check_prefix(prefix)
        for place, folders, names in os.walk(self.path(folder) if folder else self._root):
            folders.sort()
            for name in sorted(names):
                match = _HIDDEN.fullmatch(name)
                path = Path(place, name)
                # A writer that finishes takes its hidden file away.
                with suppress(FileNotFoundError):
                    if match is not None:
                        yield Unfinished(path, self._target(path, match["name"]), _modified(path.lstat()))

    def remove_unfinished(self, file: Unfinished) -> bool:
        """Remove a hidden file; whether it was still there."""
        try:
            file.path.unlink()
        except FileNotFoundError:
            return False
        except OSError as error:
            raise disk_failure(error, str(file.path)) from error
        return True

    def _target(self, path: Path, name: str | None) -> str | None:
        return None if name is None else (path.parent / name).relative_to(self._root).as_posix()

    def _name(self, key: str) -> str:
        return f"{self._folder}{key}"

    def open(self, key: str, *, expect: Identity | None = None) -> OpenedFile:
        """Open a file for many reads; it stays the one that it is now, whatever its name stands for later."""
        return OpenedFile(*self._open(key), key, self._name(key), expect)

    def read_each(self, wanted: Sequence[tuple[str, int, ByteRange]]) -> Sequence[bytes | None]:
        """One range of each of many files, given by key and size; None where a file is to be read by itself.

        It is for files that never change. What is odd in any way is left alone: opening it gives the reason.
        """
        is_plain: dict[str, bool] = {}
        contents = []
        for key, size, place in wanted:
            folder = check_key(key).rpartition("/")[0]
            if folder not in is_plain:
                is_plain[folder] = not self._meets_link(folder)
            contents.append(_read_whole(self._name(key), size, place) if is_plain[folder] else None)
        return contents

    @contextmanager
    def _opened(self, key: str) -> Iterator[tuple[int, os.stat_result]]:
        file, status = self._open(key)
        try:
            yield file, status
        finally:
            os.close(file)

    def _open(self, key: str) -> tuple[int, os.stat_result]:
        path = self._place(key)
        try:
            # Without O_NONBLOCK, opening a named pipe would wait for its writer.
            file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except (FileNotFoundError, NotADirectoryError) as error:
            raise missing(path) from error
        except OSError as error:
            raise disk_failure(error, path) from error
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode):
            os.close(file)
            raise missing(path)
        return file, status

    def _write(self, key: str, data: BytesLike, publish: Callable[[Path, Path], None]) -> ObjectInfo:
        path = self.path(key)
        try:
            self._settle(path.parent)
            status = _publish(path, data, publish)
            _sync_folder(path.parent)
        except FileExistsError as error:
            raise taken(str(path)) from error
        except OSError as error:
            raise disk_failure(error, str(path)) from error
        return _info(key, status)

    def _settle(self, folder: Path) -> None:
        """Have a folder, and have its name on the disk.

        Whoever made the folder may not have forced it to the disk yet, so existing is not enough: the first write of
        this store into a folder settles all folders above it too.
        """
        inside = folder.is_relative_to(self._root)
        if folder.is_dir() and (folder in self._settled or not inside):
            return
        self._settle(folder.parent)
        if not folder.is_dir():
            _make_folder(folder)
        _sync_folder(folder.parent)
        self._settled.add(folder)

    def _walk(self, folder: str, after: str) -> Iterator[ObjectInfo]:
        for key, entry in self._entries(folder):
            if key.endswith("/"):
                if key > after or after.startswith(key):
                    yield from self._walk(key, after)
            elif key > after:
                try:
                    status = entry.stat(follow_symlinks=False)
                except FileNotFoundError:  # deleted since the folder was read
                    continue
                yield _info(key, status)

    def _entries(self, folder: str) -> Sequence[tuple[str, os.DirEntry[str]]]:
        """Files and folders in a folder in the order of keys: there, a folder sorts with its slash."""
        path = self.path(folder.removesuffix("/")) if folder else self._root
        try:
            with os.scandir(path) as entries:
                listed = [(f"{folder}{entry.name}{_mark(entry)}", entry) for entry in entries if _is_listed(entry)]
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise disk_failure(error, str(path)) from error
        return sorted(listed, key=lambda item: item[0])


class OpenedFile:
    """A file of a local store that is open for reading; many threads may read at once."""

    __slots__ = ("_expect", "_file", "_key", "_name", "_size")

    def __init__(self, file: int, status: os.stat_result, key: str, name: str, expect: Identity | None) -> None:
        self._file = file
        self._key = key
        self._name = name
        self._expect = expect
        self._size = status.st_size
        self._compare(status)

    def __del__(self) -> None:
        os.close(self._file)

    def read_at(self, offset: int, length: int) -> bytes:
        """Exactly so many bytes, or an error."""
        return _read(self._file, ByteRange(offset, length), self._size, self._name)

    def is_at_hand(self, offset: int) -> bool:
        """Whether a byte can be read without waiting for a disk, where the system tells."""
        if not hasattr(os, "RWF_NOWAIT"):
            return True
        try:
            os.preadv(self._file, [bytearray(1)], offset, os.RWF_NOWAIT)
        except OSError as error:
            return error.errno != errno.EAGAIN
        return True

    def announce(self, offset: int, length: int) -> None:
        """Let the system fetch bytes from the disk that will be read soon, if it has not."""
        # advice on cached pages costs little, but on much it adds up
        if not self.is_at_hand(offset + length - 1):
            with suppress(OSError):
                os.posix_fadvise(self._file, offset, length, os.POSIX_FADV_WILLNEED)

    def check(self) -> None:
        """Refuse a file that was written to since it was opened."""
        self._compare(os.fstat(self._file))

    def _compare(self, status: os.stat_result) -> None:
        # Of files that never change the size is all that is expected, and it costs less to compare that alone.
        if self._expect != Identity(status.st_size):
            check_identity(self._name, self._expect, _info(self._key, status))


def _read_whole(path: str, size: int, place: ByteRange) -> bytes | None:
    """A range of a file of a given size; None if it is not such a file."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        status = os.fstat(file)
        if status.st_size != size or not stat.S_ISREG(status.st_mode):
            return None
        data = os.pread(file, place.length, place.start)
        return data if len(data) == place.length else None
    except OSError:
        return None
    finally:
        os.close(file)


def _is_listed(entry: os.DirEntry[str]) -> bool:
    plain = entry.is_file(follow_symlinks=False) or entry.is_dir(follow_symlinks=False)
    return plain and key_problem(entry.name) is None


def _mark(entry: os.DirEntry[str]) -> str:
    return "/" if entry.is_dir(follow_symlinks=False) else ""


def _info(key: str, status: os.stat_result) -> ObjectInfo:
    etag = f"{status.st_ino:x}-{status.st_mtime_ns:x}-{status.st_size:x}"
    return ObjectInfo(key, status.st_size, etag, _modified(status))


def _modified(status: os.stat_result) -> datetime:
    return instant(status.st_mtime_ns // 1000)


def _read(file: int, wanted: ByteRange | Fetch, size: int, name: str) -> bytes:
    if wanted.start + wanted.length > size:
        raise too_short(name, wanted, max(0, size - wanted.start))
    pieces, offset, left = [], wanted.start, wanted.length
    while left:
        try:
            piece = os.pread(file, left, offset)
        except OSError as error:
            raise disk_failure(error, name) from error
        if not piece:
            raise too_short(name, wanted, wanted.length - left)
        pieces.append(piece)
        offset += len(piece)
        left -= len(piece)
    return b"".join(pieces)


def _publish(path: Path, data: BytesLike, publish: Callable[[Path, Path], None]) -> os.stat_result:
    """Write the bytes to a hidden file beside `path`, force them to the disk, and give them their name."""
    file, hidden = _create_hidden(path)
    try:
        with open(file, "wb") as stream:  # noqa: PTH123 (a descriptor has no path)
            for piece in pieces(data):
                stream.write(piece)
            stream.flush()
            # A failed sync is not tried again: the second one would answer for pages that the first has dropped.
            os.fsync(file)
            status = os.fstat(file)
        publish(hidden, path)
    except BaseException:
        hidden.unlink(missing_ok=True)
        raise
    return status


def _create_hidden(path: Path) -> tuple[int, Path]:
    """Create a hidden file whose name says what it becomes, so that garbage collection knows whose it is."""
    while True:
        writer = f"{RESERVED}{os.getpid()}-{next(_serial)}"
        name = f"{writer}-{path.name}.tmp"
        hidden = path.parent / (name if len(os.fsencode(name)) <= _LONGEST_NAME else f"{writer}.tmp")
        try:
            return os.open(hidden, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666), hidden
        except FileExistsError:  # left by a crash, or by a process of the same number in another container
            continue


def _replace(hidden: Path, path: Path) -> None:
    hidden.replace(path)


def _link(hidden: Path, path: Path) -> None:
    """Give the file its name unless it is taken: a link, other than a rename, never replaces."""
    os.link(hidden, path)
    hidden.unlink()


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir()
    except FileExistsError as error:
        if not folder.is_dir():  # else another writer was faster
            raise NotADirectoryError(errno.ENOTDIR, "a file has the name of the folder") from error


def _sync_folder(folder: Path) -> None:
    """Force the names in a folder to the disk."""
    file = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(file)
    except OSError as error:
        # Some network file systems cannot sync a folder and say so by EINVAL; then there is nothing to force.
        if error.errno != errno.EINVAL:
            raise
    finally:
        os.close(file)
