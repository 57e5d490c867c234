"""Statistics of files that are in no table, learnt at once."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq

from windrow.planning.data_files import DataFile, file_id_of
from windrow.statistics.layout import FileLayout
from windrow.storage import LocalStore
from windrow.upkeep.split_learning import learn_file


def learn(catalog, *paths, columns=None):
    """Store in a catalog what there is to know of columns of local files."""
    for path in map(Path, paths):
        store = LocalStore(str(path.parent.resolve()))
        file = pq.ParquetFile(path)
        groups = tuple(file.metadata.row_group(at).num_rows for at in range(file.metadata.num_row_groups))
        layout = FileLayout(file_id_of(DataFile(store, path.name, store.head(path.name).identity)), groups)
        names = [name for name in file.schema_arrow.names if columns is None or name in columns]
        catalog.store(learn_file(file, layout, {}, names))
