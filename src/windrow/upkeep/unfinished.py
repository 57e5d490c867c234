"""Hidden files that stopped writers left in a table's folder on a local disk.

A hidden file is judged like the object that it was to become. A file of a commit goes when the commit has ended; while
the commit is open, its writer may still be at work. Other files are written in moments and go after a day.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import PurePosixPath

from windrow.metastore import Metastore, TableRecord
from windrow.model.split import dead_letter_folder
from windrow.storage import LocalFiles
from windrow.upkeep.files import split_id_of

__all__ = ["remove_unfinished"]

_LONGEST_WRITE = timedelta(days=1)


def remove_unfinished(
    files: LocalFiles, metastore: Metastore, table: TableRecord, *, now: datetime, grace: timedelta
) -> int:
    """Remove the hidden files of a table that no writer needs, and return their number; `now` is the store's time."""
    written = {each: _written_name(table.folder, each.key) for each in files.unfinished(table.folder)}
    names = {name for name in written.values() if name is not None}
    dead = metastore.orphans(table.table_id, names).dead
    published = metastore.recorded_splits(table.table_id, names)
    removed = 0
    for each, name in written.items():
        if name in dead:
            is_stale = each.modified < now - grace
        else:
            is_stale = (name is None or name in published) and each.modified < now - max(grace, _LONGEST_WRITE)
        removed += is_stale and files.remove_unfinished(each)
    return removed


def _written_name(table: str, key: str | None) -> str | None:
    """Return the name that a commit gave an object; None for objects that no commit writes."""
    if key is None:
        return None
    is_letter = str(PurePosixPath(key).parent) == dead_letter_folder(table)
    return PurePosixPath(key).stem if is_letter else split_id_of(table, key)
