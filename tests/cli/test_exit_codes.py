"""Every error has the exit code that the help promises."""

from __future__ import annotations

import pytest

from windrow import errors
from windrow.cli.exit_codes import ExitCode, exit_code_of, table_of_exit_codes

CODES = [
    (errors.InvalidInput("x"), 2),
    (errors.SortSchemaError("x", 0, "y"), 2),
    (errors.ConfigError("x"), 2),
    (errors.NotFound("x"), 3),
    (errors.SnapshotExpired("x"), 3),
    (errors.Closed("x"), 5),
    (errors.AlreadyExists("x"), 4),
    (errors.Conflict("x"), 4),
    (errors.LeaseExpired("x"), 4),
    (errors.StorageError("x"), 5),
    (errors.Replaced("x"), 5),
    (errors.MetastoreError("x"), 5),
    (errors.Damaged("x"), 6),
    (errors.Incompatible("x"), 6),
    (errors.MissingDependency("x"), 7),
    (errors.CommitUnknown("x", "commit"), 8),
    (errors.InvariantViolation("SS-1", "x"), 9),
]


@pytest.mark.parametrize(("error", "code"), CODES, ids=lambda value: type(value).__name__)
def test_an_error_has_its_code(error, code):
    assert exit_code_of(error) == code


def test_every_kind_of_error_is_thought_of():
    kinds = {getattr(errors, name) for name in errors.__all__} - {errors.Outcome, errors.WindrowError}
    assert kinds == {type(error) for error, _ in CODES}


def test_an_error_of_no_kind_is_a_bug():
    assert exit_code_of(errors.WindrowError("x")) == ExitCode.BUG == 1


def test_the_help_lists_every_code_with_its_meaning(call):
    for code in ExitCode:
        assert f"{code.value:>5}  {code.meaning}" in table_of_exit_codes()
    text = call("--help").out
    assert all(f"{code.value}  {code.meaning}" in text for code in ExitCode)
