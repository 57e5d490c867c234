"""Workers of Spark are forked from a daemon that has loaded all that tasks need."""

from __future__ import annotations

import subprocess
import sys

import pyarrow as pa
import pytest

THREADS = """
from pathlib import Path
from windrow.runners.daemon import preload
preload()
names = [(each / "comm").read_text().strip() for each in Path("/proc/self/task").iterdir()]
print(sorted(name for name in names if not name.startswith("jemalloc")))
"""


def test_what_is_forked_has_no_threads_but_those_of_the_allocator():
    done = subprocess.run([sys.executable, "-c", THREADS], capture_output=True, text=True, check=True)
    assert done.stdout.count("'") == 2, done.stdout


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
def test_a_task_finds_everything_loaded(spark):
    def look(batches):
        names = {"windrow.kernels.merge", "windrow.merging.splits"}
        for _ in batches:
            yield pa.RecordBatch.from_pydict({"loaded": [names <= sys.modules.keys()]})

    rows = spark.range(0, 2, 1, 2).mapInArrow(look, "loaded boolean").collect()
    assert [row.loaded for row in rows] == [True, True]
