"""Statistics of a relation are put together once, and again when something new was learnt."""

from __future__ import annotations

import pyarrow as pa
import pytest
from tests.statistics.files import layout_of, learnt

from windrow.errors import StorageError
from windrow.statistics.cached_catalog import CachedCatalog
from windrow.statistics.cached_statistics import MOST_FILES, CachedStatistics
from windrow.statistics.catalog import FolderCatalog
from windrow.statistics.keys import contained

ROWS = [10] * 4
ONE, TWO = layout_of(ROWS), layout_of(ROWS, "split-2")
VALUES = {"x": pa.array(range(40)), "y": pa.array(["a", "b"] * 20)}


@pytest.fixture
def catalog(tmp_path):
    return CachedCatalog(FolderCatalog(tmp_path / "statistics"))


def learn(catalog, layout, name, only=None, known=None):
    summary = learnt(VALUES[name], ROWS, name=name, layout=layout, only=only, known=known)
    catalog.store({name: summary})
    return summary


def statistics_of(catalog, *layouts):
    return CachedStatistics(catalog, lambda: {each.file: each.rows for each in layouts})


def test_what_is_learnt_of_all_files_is_put_together(catalog):
    for layout in (ONE, TWO):
        learn(catalog, layout, "x")
    relation = statistics_of(catalog, ONE, TWO)
    table = relation.of(("x", "y"))
    assert (relation.rows, table.row_count) == (80, 80)
    assert (table.column("x").distinct.estimate, table.column("x").distinct.is_vague) == (40, False)
    assert table.column("y").distinct is None


def test_the_same_object_is_given_until_something_is_learnt(catalog):
    learn(catalog, ONE, "x")
    relation, columns = statistics_of(catalog, ONE), ("x", "y")
    first = relation.of(columns)
    assert relation.of(columns) is first
    learn(catalog, TWO, "x")
    assert relation.of(columns) is first, "another file"
    learn(catalog, ONE, "y")
    second = relation.of(columns)
    assert second is not first
    assert second.column("y").distinct.estimate == 2


def test_what_is_learnt_in_part_is_vague_and_grows(catalog):
    part = learn(catalog, ONE, "x", only={0})
    relation, columns = statistics_of(catalog, ONE), ("x",)
    assert relation.of(columns).column("x").distinct.is_vague
    assert relation.sketch("x") is None
    learn(catalog, ONE, "x", known={"x": part})
    assert not relation.of(columns).column("x").distinct.is_vague
    assert relation.sketch("x").estimate == pytest.approx(40)


def test_complete_statistics_are_looked_up_and_no_more(catalog, monkeypatch):
    learn(catalog, ONE, "x")
    relation = statistics_of(catalog, ONE)
    first = relation.of(("x",))
    learn(catalog, TWO, "x")
    monkeypatch.setattr(catalog, "load", lambda *_: pytest.fail("nothing can have changed"))
    assert relation.of(("x",)) is first


def test_of_too_many_files_nothing_is_put_together(catalog):
    layouts = [layout_of([1], f"split-{number}") for number in range(MOST_FILES + 1)]
    for relation in (statistics_of(catalog, *layouts), CachedStatistics(catalog, lambda: None)):
        assert relation.rows is None
        assert relation.of(("x",)) is None
        assert relation.sketch("x") is None


def test_files_that_cannot_be_listed_are_listed_again(catalog):
    answers = [{ONE.file: ONE.rows}, StorageError("the store is away", retryable=True)]

    def files():
        answer = answers.pop()
        if isinstance(answer, Exception):
            raise answer
        return answer

    relation = CachedStatistics(catalog, files)
    assert relation.of(("x",)) is None
    assert relation.of(("x",)).row_count == 40


@pytest.mark.parametrize(("values", "share"), [(range(20), 1.0), (range(30, 50), 0.5), (range(100, 110), 0.0)])
def test_sketches_tell_which_share_of_values_another_column_has(catalog, values, share):
    learn(catalog, ONE, "x")
    other = learnt(pa.array(values), [len(values)], name="x", layout=layout_of([len(values)], "other"))
    assert contained(other.sketch, statistics_of(catalog, ONE).sketch("x")) == pytest.approx(share, abs=0.01)
