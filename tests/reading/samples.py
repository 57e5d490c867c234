"""What the suites of plans and reads share: metrics in sorted files."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from windrow.model.split import SidecarLocation, sidecar_key
from windrow.planning.data_files import DataFile, build_for
from windrow.storage import Identity


def metrics(seed, rows, kinds=20):
    """Points of some metrics, sorted; one column is null everywhere."""
    random = np.random.default_rng(seed)
    table = pa.table(
        {
            "metric": pa.array([f"metric_{n:02d}" for n in random.integers(0, kinds, rows)]),
            "host": pa.array([f"host_{n}" for n in random.integers(0, 9, rows)], mask=random.random(rows) < 0.1),
            "ts": pa.array(random.integers(0, 10**9, rows), pa.timestamp("us", "UTC")),
            "value": pa.array(random.normal(size=rows)),
            "never": pa.nulls(rows, pa.int64()),
        }
    )
    return table.sort_by([("metric", "ascending"), ("ts", "ascending")])


def parquet(table, **options):
    sink = pa.BufferOutputStream()
    given = {"row_group_size": 2000, "max_rows_per_page": 100, "write_page_index": True, **options}
    pq.write_table(table, sink, **given)
    return sink.getvalue().to_pybytes()


def put_file(store, key, data, *, sidecar=False, mutable=True):
    """Put a file, and its sidecar if asked; gives it as a scan sees it."""
    info = store.put(key, data)
    identity = info.identity if mutable else Identity(info.size)
    file = DataFile(store, key, store.head(key).identity if mutable else identity)
    if not sidecar:
        return file
    described = build_for(file)
    place = SidecarLocation(sidecar_key(key), 0, len(described))
    store.put(place.key, described)
    return DataFile(store, key, file.identity, place)
