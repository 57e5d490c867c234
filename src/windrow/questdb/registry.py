"""The tables of a database folder by name.

QuestDB appends names to `tables.d.N`; the file with the highest number counts. Tables without WAL may be in no
registry, so that folders with a `_txn` are listed too: `_name` has the name, else the folder has.
"""

from __future__ import annotations

import re
import struct
from difflib import get_close_matches
from pathlib import Path

from windrow.errors import Damaged, NotFound, StorageError
from windrow.storage.failures import local_reads

__all__ = [
    "database_folder",
    "find_table",
    "is_table_folder",
    "parse_registry",
    "table_folder",
    "table_folders",
    "table_name",
]

_END = struct.Struct("<q")
_NUMBER = struct.Struct("<i")
_ADDED, _REMOVED = 0, -1
_KINDS_WITH_ROWS = frozenset({0, 1, 2, 4})
"""Tables, materialized views and live views; a view has no folder of rows."""
_RESERVED = 64
_FILE = re.compile(r"tables\.d\.(\d+)")
_ATTEMPTS = 5


def is_table_folder(folder: Path) -> bool:
    """Whether a folder is that of one table."""
    return (folder / "_txn").is_file()


def table_folders(database: Path) -> dict[str, Path]:
    """The folder of every table that has one, by name."""
    named = {name: database / folder for name, folder in _registered(database).items()}
    listed = set(named.values())
    with local_reads(database, "no such folder; give the folder of a QuestDB database"):
        folders = sorted(each for each in database.iterdir() if each.is_dir())
    for folder in folders:
        if folder not in listed:
            named.setdefault(table_name(folder), folder)
    return {name: folder for name, folder in named.items() if is_table_folder(folder)}


def database_folder(path: str | Path) -> Path:
    """The folder of a database, which may be given by the root folder of its server."""
    folder = Path(path)
    if not folder.is_dir():
        raise NotFound(f"{folder}: no such folder; give the folder of a QuestDB database")
    return (folder / "db" if any((folder / "db").glob("tables.d.*")) else folder).resolve()


def table_folder(path: str | Path) -> Path:
    """The folder of a table, which is given by itself."""
    folder = Path(path)
    if not is_table_folder(folder):
        raise NotFound(
            f"{folder}: this is no folder of a QuestDB table, it has no _txn; give the folder, or a name too"
        )
    return folder.resolve()


def find_table(database: Path, name: str) -> tuple[str, Path]:
    """A table by name, whatever its case: how its name is spelled, and its folder."""
    folders = table_folders(database)
    spelled = name if name in folders else {each.lower(): each for each in folders}.get(name.lower())
    if spelled is None:
        near = get_close_matches(name, folders, 1)
        hint = f"did you mean {near[0]!r}?" if near else f"it has {', '.join(sorted(folders)) or 'none'}"
        raise NotFound(f"{database}: there is no table {name!r}; {hint}")
    return spelled, folders[spelled]


def table_name(folder: Path) -> str:
    """The name of the table in a folder: that of its `_name`, else that of the folder without QuestDB's number."""
    try:
        data = (folder / "_name").read_bytes()
    except OSError:
        data = b""
    if len(data) > _NUMBER.size:
        return _text(data, 0, str(folder / "_name"))[0]
    return folder.name.partition("~")[0]


def parse_registry(data: bytes, name: str) -> dict[str, str]:
    """The folders of tables by name, in the bytes of a registry; `name` is what errors call it."""
    if len(data) < _END.size:
        raise _damaged(name, f"{len(data)} bytes are no registry")
    (end,) = _END.unpack_from(data)
    if not _END.size <= end <= len(data):
        raise _damaged(name, f"it ends at byte {end} of {len(data)}")
    folders: dict[str, str] = {}
    position = _END.size
    while position < end:
        operation, position = _number(data, position, name)
        table, position = _text(data, position, name)
        folder, position = _text(data, position, name)
        _, position = _number(data, position, name)
        kind, position = _number(data, position, name)
        if operation == _ADDED:
            position += _RESERVED
            if kind in _KINDS_WITH_ROWS:
                folders[table] = folder
        elif operation == _REMOVED:
            folders = {each: place for each, place in folders.items() if place != folder}
        else:
            raise _damaged(name, f"operation {operation} before byte {position} is unknown")
    return folders


def _registered(database: Path) -> dict[str, str]:
    """What the newest registry holds; it may be replaced by a newer one meanwhile."""
    for _ in range(_ATTEMPTS):
        files = [(int(match[1]), each) for each in database.glob("tables.d.*") if (match := _FILE.fullmatch(each.name))]
        if not files:
            return {}
        newest = max(files)[1]
        try:
            return parse_registry(newest.read_bytes(), str(newest))
        except FileNotFoundError:
            continue
        except OSError as error:
            raise StorageError(f"{newest}: cannot be read: {error.strerror}; check the permissions") from error
    raise StorageError(f"{database}: its registry of tables is replaced again and again; try later", retryable=True)


def _number(data: bytes, position: int, name: str) -> tuple[int, int]:
    if position + _NUMBER.size > len(data):
        raise _damaged(name, f"an entry is cut off at byte {position}")
    return _NUMBER.unpack_from(data, position)[0], position + _NUMBER.size


def _text(data: bytes, position: int, name: str) -> tuple[str, int]:
    length, start = _number(data, position, name)
    end = start + 2 * length
    if length <= 0 or end > len(data):
        raise _damaged(name, f"a text of {length} characters at byte {position} is cut off")
    try:
        return data[start:end].decode("utf-16-le"), end
    except UnicodeDecodeError as error:
        raise _damaged(name, f"the text at byte {start} is no UTF-16") from error


def _damaged(name: str, problem: str) -> Damaged:
    return Damaged(f"{name}: {problem}; restore the file, or give the folder of the table itself")
