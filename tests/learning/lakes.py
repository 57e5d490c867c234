"""Lakes whose queries leave statistics behind, and what should be in these."""

from __future__ import annotations

from contextlib import contextmanager

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import windrow
from windrow.cache import CacheSettings
from windrow.learning import LearningSettings
from windrow.planning.data_files import file_id_of
from windrow.statistics.layout import FileLayout
from windrow.upkeep.split_learning import learn_file

PLENTY = LearningSettings(1e6)
"""So that all is learnt, whatever it costs."""


@contextmanager
def learning_lake(folder, statistics=PLENTY, **given):
    with windrow.connect(
        folder / "lake", cache=CacheSettings(folder=folder / "cache"), statistics=statistics, **given
    ) as lake:
        yield lake


def settle(lake):
    """Wait until nothing is left to learn."""
    assert lake.context.learner.drain()


def learnt(lake, path, columns):
    """What a lake has learnt of columns of a file, by name."""
    lake._queries._foreign(str(path))
    [file] = map(file_id_of, lake._queries._files.files.find(str(path)))
    return lake.context.learnt.load([file], columns).get(file.key, {})


def expected(path, file, columns):
    """What the plain way learns of columns of a whole file, which is stored under a name."""
    read = pq.ParquetFile(path)
    rows = tuple(read.metadata.row_group(number).num_rows for number in range(read.num_row_groups))
    return learn_file(read, FileLayout(file, rows), {}, columns)


def assert_alike(one, other):
    """Two summaries know the same; only the order in which a sketch met its values may differ."""
    assert one.type == other.type
    assert one.layout == other.layout
    assert one.covered.tolist() == other.covered.tolist()
    assert one.synopses.facts == other.synopses.facts
    for kind in ("coupons", "registers"):
        mine, theirs = getattr(one.sketch, kind), getattr(other.sketch, kind)
        assert (mine is None) == (theirs is None)
        assert mine is None or np.array_equal(mine, theirs)
    assert (one.sample is None) == (other.sample is None)
    if one.sample is not None:
        assert one.sample.draw == other.sample.draw
        assert one.sample.known.tolist() == other.sample.known.tolist()
        assert one.sample.values.equals(other.sample.values) or repr(one.sample.values.to_pylist()) == repr(
            other.sample.values.to_pylist()
        )


def some_rows(rows, seed=0):
    random = np.random.default_rng(seed)
    return pa.table(
        {
            "n": np.arange(rows),
            "few": random.integers(0, 20, rows),
            "many": random.integers(0, 2**60, rows),
            "text": [f"text {value}" for value in random.integers(0, 30, rows)],
            "long": [f"{value:x} is a long text that is there once" for value in random.integers(0, 2**62, rows)],
            "part": pa.array(random.normal(size=rows), mask=random.random(rows) < 0.1),
        }
    )
