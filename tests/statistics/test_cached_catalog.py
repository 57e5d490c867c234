"""A catalog in memory has what the one behind it has, after a while, and gives back what was stored at once."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from tests.statistics.files import layout_of, learnt

from windrow.statistics.cached_catalog import CachedCatalog
from windrow.statistics.catalog import FolderCatalog

ROWS = [10] * 4
LAYOUT, OTHER = layout_of(ROWS), layout_of(ROWS, "split-2")
COLUMN = pa.array(range(40))


class CountingCatalog:
    """Counts what is loaded of another catalog."""

    def __init__(self, catalog) -> None:
        self.catalog = catalog
        self.loads: list[tuple[list[str], list[str]]] = []

    def load(self, files, columns):
        self.loads.append((sorted(file.key for file in files), sorted(columns)))
        return self.catalog.load(files, columns)

    def store(self, columns) -> None:
        self.catalog.store(columns)


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def behind(tmp_path):
    return CountingCatalog(FolderCatalog(tmp_path / "statistics"))


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def catalog(behind, clock):
    return CachedCatalog(behind, clock=clock)


def covered(catalog, layout=LAYOUT, name: str = "x"):
    summary = catalog.load([layout.file], [name]).get(layout.key, {}).get(name)
    return None if summary is None else np.flatnonzero(summary.covered).tolist()


def test_what_is_stored_is_loaded_at_once_and_makes_another_revision(catalog):
    assert covered(catalog) is None
    revision = catalog.revision
    catalog.store({"x": learnt(COLUMN, ROWS, only={2})})
    assert covered(catalog) == [2]
    assert catalog.revision != revision


def test_a_record_is_loaded_once(catalog, behind):
    behind.store({"x": learnt(COLUMN, ROWS)})
    for _ in range(3):
        assert covered(catalog) == [0, 1, 2, 3]
    assert behind.loads == [(["split-1"], ["x"])]


def test_records_of_several_files_and_columns_are_loaded_together(catalog, behind):
    catalog.load([LAYOUT.file, OTHER.file], ["x", "y"])
    assert behind.loads == [(["split-1", "split-2"], ["x", "y"])]
    catalog.load([LAYOUT.file, OTHER.file], ["x", "z"])
    assert behind.loads[1:] == [(["split-1", "split-2"], ["z"])]


def test_what_others_learnt_is_noticed_after_a_while(catalog, behind, clock):
    behind.store({"x": learnt(COLUMN, ROWS, only={0})})
    assert covered(catalog) == [0]
    revision = catalog.revision
    behind.store({"x": learnt(COLUMN, ROWS, only={1})})
    assert covered(catalog) == [0]
    assert catalog.revision == revision
    clock.now += 31
    assert covered(catalog) == [0, 1]
    assert catalog.revision != revision


def test_looking_again_in_vain_is_no_other_revision(catalog, clock):
    assert covered(catalog) is None
    revision = catalog.revision
    clock.now += 31
    assert covered(catalog) is None
    assert catalog.revision == revision


def test_a_complete_record_is_never_loaded_again(catalog, behind, clock):
    behind.store({"x": learnt(COLUMN, ROWS)})
    covered(catalog)
    clock.now += 10_000
    covered(catalog)
    assert len(behind.loads) == 1


def test_another_content_of_a_file_has_none_of_it(catalog):
    catalog.store({"x": learnt(COLUMN, ROWS)})
    assert covered(catalog, layout_of(ROWS, identity="2000 bytes")) is None


def test_what_does_not_fit_is_loaded_again(behind, clock):
    catalog = CachedCatalog(behind, budget=1000, clock=clock)
    for layout in (LAYOUT, OTHER):
        behind.store({"x": learnt(COLUMN, ROWS, layout=layout)})
    for _ in range(2):
        assert covered(catalog) == covered(catalog, OTHER) == [0, 1, 2, 3]
    assert len(behind.loads) == 4
