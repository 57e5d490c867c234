"""The bytes that a scan needs are those that its chunks are made of."""

from __future__ import annotations

import pytest
from tests.reading.samples import metrics, parquet, put_file

from windrow.planning.scan_context import ScanContext
from windrow.planning.scan_plan import plan_files
from windrow.questions.where import parse_where
from windrow.reading.needed_ranges import needed_bytes
from windrow.storage import LocalStore

CONDITIONS = [None, "metric = 'metric_07'", "metric = 'metric_07' and host = 'host_3'", "value > 2.5"]


@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize("threads", [1, 8], ids=["whole row groups", "runs of pages"])
@pytest.mark.parametrize("columns", [None, ["value", "host"]], ids=["all columns", "some columns"])
def test_what_is_needed_are_the_bytes_that_chunks_are_made_of(tmp_path, condition, columns, threads):
    store = LocalStore(tmp_path)
    files = [put_file(store, f"{seed}.parquet", parquet(metrics(seed, 9000), row_group_size=9000)) for seed in range(3)]
    predicate = condition and parse_where(condition)
    [virtual] = plan_files(
        ScanContext("lake", store, threads=threads), files, predicate=predicate, columns=columns
    ).virtual
    expected = []
    for address, length in virtual.chunks.tolist():
        for segment in virtual.segments:
            first = max(segment.address, address)
            last = min(segment.address + segment.length, address + length)
            if first < last:
                expected.append((segment.file, segment.offset + first - segment.address, last - first))
    assert list(map(tuple, needed_bytes(virtual).tolist())) == expected
    is_cut = threads > 1 or "metric" in (condition or "")
    assert len(expected) == len(virtual.chunks) * (2 if is_cut else 1), "a dictionary lies before its pages"
