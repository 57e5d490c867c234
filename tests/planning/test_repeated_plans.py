"""A plan is taken again once it was made twice alike, until more is known or some seconds are over."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from windrow.model.predicate import Comparison, Op
from windrow.planning.data_files import DataFile
from windrow.planning.repeated_plans import RepeatedPlans
from windrow.planning.scan_context import ScanContextBuilder
from windrow.planning.scan_plan import plan_files
from windrow.questions.naming import Question
from windrow.storage import Identity


class Files:
    """Plans of one file, of which it is counted how often they are made."""

    def __init__(self, folder) -> None:
        pq.write_table(pa.table({"n": range(100)}), folder / "x.parquet", row_group_size=10)
        self.context = ScanContextBuilder(str(folder)).build()
        self.file = DataFile(self.context.store, "x.parquet", Identity((folder / "x.parquet").stat().st_size))
        self.now, self.revision, self.made = 100.0, 1, 0
        self.plans = RepeatedPlans(lambda: self.revision, lambda: self.now)
        self.predicate = None

    def plan(self, question):
        def make():
            self.made += 1
            predicate = question.predicate if self.predicate is None else self.predicate
            return plan_files(self.context, [self.file], predicate=predicate, columns=question.columns)

        return self.plans.plan(question, make)


@pytest.fixture
def files(tmp_path):
    return Files(tmp_path)


def question(least):
    return Question(("n",), Comparison("n", Op.GREATER_OR_EQUAL, least))


def test_it_is_made_twice(files):
    plans = [files.plan(question(50)) for _ in range(4)]
    assert files.made == 2
    assert plans[1] is plans[2] is plans[3]
    assert [plan.rows for plan in plans] == [50] * 4


def test_another_question_has_another_plan(files):
    assert [files.plan(question(least)).rows for least in (50, 50, 20, 50, 20, 20)] == [50, 50, 80, 50, 80, 80]
    assert files.made == 4


def test_what_is_learnt_counts_at_once(files):
    for _ in range(3):
        files.plan(question(50))
    files.revision += 1
    for _ in range(3):
        files.plan(question(50))
    assert files.made == 4


def test_after_some_seconds_it_is_made_again(files):
    for _ in range(3):
        files.plan(question(50))
    files.now += 6
    files.plan(question(50))
    assert files.made == 3


def test_one_that_differs_from_the_one_before_is_not_taken_again(files):
    files.plan(question(50))
    files.predicate = Comparison("n", Op.GREATER_OR_EQUAL, 90)
    assert [files.plan(question(50)).rows for _ in range(3)] == [10, 10, 10]
    assert files.made == 3
