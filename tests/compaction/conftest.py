"""Tables with splits of any kind, in a real metastore."""

import itertools
from dataclasses import replace as changed

import pytest

from windrow.metastore import CommitKind, SqlMetastore
from windrow.model.scope import CompactionScope
from windrow.model.settings import TableSettings
from windrow.model.split import SplitMetadata
from windrow.model.window import Window
from windrow.model.zones import ColumnZone, SortColumnValue

SORT = "host|timestamp/V2"
FIRST = Window(0, 900)
_ZONES = (ColumnZone(SortColumnValue.of("a"), SortColumnValue.of("z"), 0),) * 2


class Shelf:
    """A table of which only the metadata is there."""

    def __init__(self, metastore, **settings):
        self.metastore = metastore
        self.table_id = "table"
        metastore.create_table("metrics", TableSettings.of(sort=SORT, **settings), table_id=self.table_id)
        self._commits = itertools.count()

    @property
    def record(self):
        return self.metastore.table("metrics")

    def scope(self, **parts):
        plain = {"source_id": "default", "partition_id": 0, "doc_mapping_uid": 0, "sort_schema": SORT}
        return CompactionScope(self.table_id, **{**plain, "window_duration": 900, **parts})

    def split(self, split_id, size=1000, *, window=FIRST, scope=None, rows=10, **fields):
        scope = scope or self.scope(window_duration=window.duration if window else 0)
        timed = window is not None and not window.overflow
        plain = {
            "split_id": split_id,
            "scope": scope,
            "window": window,
            "key": f"{split_id}.parquet",
            "size_bytes": size,
            "row_count": rows,
            "created_at": 0,
            "commit_id": "",
            "time_min": window.start * 10**6 if timed else None,
            "time_max": window.start * 10**6 if timed else None,
            "zones": _ZONES if window is not None else (),
        }
        return SplitMetadata(**{**plain, **fields})

    def publish(self, splits, replace=(), kind=CommitKind.INGEST):
        commit = f"c{next(self._commits)}"
        self.metastore.open_commit(self.table_id, kind, commit_id=commit, lease=600)
        add = [changed(split, commit_id=commit) for split in splits]
        return self.metastore.publish(commit, add=add, replace=replace)


@pytest.fixture
def metastore(tmp_path):
    with SqlMetastore(f"sqlite:///{tmp_path}/windrow.db") as opened:
        yield opened


@pytest.fixture(scope="session")
def shelf_of():
    """Makes a table of any settings in a metastore."""
    return Shelf


@pytest.fixture
def shelf(metastore):
    return Shelf(metastore, policy={"merge_factor": 2, "max_merge_factor": 3})
