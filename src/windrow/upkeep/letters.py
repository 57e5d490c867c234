"""Which files of dead letters nobody needs: those of runs that failed, and those beyond the table's retention."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from datetime import datetime, timedelta
from pathlib import PurePosixPath

from windrow.context import Context
from windrow.metastore import TableRecord
from windrow.model.split import dead_letter_folder
from windrow.storage import ObjectInfo

__all__ = ["useless_letters"]


def useless_letters(
    context: Context, table: TableRecord, before: datetime, ended: Collection[str] = ()
) -> Iterator[tuple[ObjectInfo, bool]]:
    """Yield the files that count no more, and whether each was there before a moment.

    `ended` are commits to take for ended, by those who only look.
    """
    letters = {PurePosixPath(info.key).stem: info for info in context.store.list(dead_letter_folder(table.folder))}
    if not letters:
        return
    # What has ended is read before what was published: a run that publishes in between has been taken for open.
    dead = context.metastore.orphans(table.table_id, letters.keys(), ended=ended).dead
    counted = {
        file["key"]
        for commit in context.metastore.commits(table.table_id)
        if commit.version is not None
        for file in commit.summary.get("dead_letters", ())
    }
    retention = table.settings.retention
    for name, info in letters.items():
        if info.key not in counted and name in dead:
            yield info, info.modified < before
        elif info.key in counted and retention and info.modified < before - timedelta(seconds=retention):
            yield info, True
