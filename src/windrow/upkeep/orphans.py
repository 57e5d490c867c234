"""Orphans: files of a table that no version has or ever will have.

A task that failed, was repeated, or belonged to a driver that died leaves files whose split the metastore never heard
of. A file is not an orphan while the attempt that wrote it may still publish it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice

from windrow.errors import NotFound
from windrow.metastore import CommitState, Metastore, TableRecord
from windrow.storage import ObjectInfo, Store

__all__ = ["Orphan", "find_orphans"]

_FILE_OF_SPLIT = re.compile(r"_?(?P<split>(?P<commit>.+)-(?P<attempt>\d+)-\d+-\d+)\.(?:parquet|pm)")
"""A split is named by its commit, the commit's attempt, the task's attempt and a number."""
_PAGE = 1000


@dataclass(frozen=True, slots=True)
class Orphan:
    """A file that belongs to no version of the table."""

    key: str
    size_bytes: int
    modified: datetime
    split_id: str
    commit_id: str
    attempt: int
    """Which attempt of the commit wrote it."""


def find_orphans(store: Store, metastore: Metastore, table: TableRecord, now: int) -> Iterator[Orphan]:
    """Yield the orphans among the files of a table, in the order of their keys; nothing is changed.

    `now` is the time in microseconds by which leases are judged. Files that are not named like those of splits are
    none of ours and are passed by.
    """
    files = filter(None, map(_file_of_split, store.list(table.name)))
    while page := list(islice(files, _PAGE)):
        yield from _orphans(metastore, table.table_id, page, now)


def _orphans(metastore: Metastore, table_id: str, files: Sequence[Orphan], now: int) -> Iterator[Orphan]:
    # The order matters: a commit that is published after it was asked about is found among the known ones.
    written = {(each.commit_id, each.attempt) for each in files}
    pending = {each for each in written if _may_publish(metastore, *each, now)}
    lost = [each for each in files if (each.commit_id, each.attempt) not in pending]
    known = metastore.known_splits(table_id, {each.split_id for each in lost})
    return (each for each in lost if each.split_id not in known)


def _may_publish(metastore: Metastore, commit_id: str, attempt: int, now: int) -> bool:
    """Whether an attempt is not over yet; a commit is opened before its files are written, so an unknown one is."""
    try:
        commit = metastore.commit(commit_id)
    except NotFound:
        return False
    return commit.state is CommitState.OPEN and commit.attempt == attempt and commit.lease_expires_at > now


def _file_of_split(info: ObjectInfo) -> Orphan | None:
    found = _FILE_OF_SPLIT.fullmatch(info.key.rpartition("/")[2])
    if found is None:
        return None
    return Orphan(info.key, info.size, info.modified, found["split"], found["commit"], int(found["attempt"]))
