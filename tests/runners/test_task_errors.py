"""What a task raised is what the driver raises."""

from __future__ import annotations

import pytest

from windrow import errors
from windrow.runners.task_errors import errors_of_tasks

STACK = """An error occurred while calling o86.getResult.
: org.apache.spark.SparkException: Job aborted due to stage failure
Caused by: org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "task.py", line 1, in write
{raised}
\tat org.apache.spark.api.python.BasePythonRunner$ReaderIterator.handlePythonException(PythonRunner.scala:1097)
"""


@pytest.mark.parametrize(
    ("raised", "kind", "message"),
    [
        (
            "windrow.errors.StorageError: the disk is full; make room",
            errors.StorageError,
            "the disk is full; make room",
        ),
        (
            "windrow.errors.InvariantViolation: SS-1 would be violated: row 3",
            errors.InvariantViolation,
            "SS-1 would be violated: row 3",
        ),
        ("windrow.errors.SortSchemaError: no column", errors.WindrowError, "no column"),
    ],
)
def test_our_own_errors_keep_their_kind_and_message(raised, kind, message):
    with pytest.raises(errors.WindrowError) as told, errors_of_tasks():
        raise RuntimeError(STACK.format(raised=raised))
    assert (type(told.value), str(told.value)) == (kind, message)
    assert isinstance(told.value.__cause__, RuntimeError)


@pytest.mark.parametrize("error", [RuntimeError(STACK.format(raised="KeyError: 'x'")), errors.NotFound("no table")])
def test_all_others_are_left_as_they_are(error):
    with pytest.raises(type(error)) as told, errors_of_tasks():
        raise error
    assert told.value is error
