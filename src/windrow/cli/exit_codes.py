"""What the exit code of a command says; scripts may rely on it."""

from __future__ import annotations

from enum import IntEnum

from windrow import errors

__all__ = ["ExitCode", "exit_code_of", "table_of_exit_codes"]


class ExitCode(IntEnum):
    """How a command ended."""

    OK = 0
    BUG = 1
    USAGE = 2
    NOT_FOUND = 3
    CONFLICT = 4
    FAILURE = 5
    DAMAGED = 6
    MISSING_DEPENDENCY = 7
    OUTCOME_UNKNOWN = 8
    INVARIANT = 9
    INTERRUPTED = 130
    CLOSED_PIPE = 141

    @property
    def meaning(self) -> str:
        """One line for people."""
        return _MEANINGS[self]


_MEANINGS = {
    ExitCode.OK: "done",
    ExitCode.BUG: "unexpected: a bug in Windrow",
    ExitCode.USAGE: "the command, a value or a setting cannot be used",
    ExitCode.NOT_FOUND: "no such lake, table, version or object",
    ExitCode.CONFLICT: "the name is taken, or another commit got there first",
    ExitCode.FAILURE: "the store or the metastore failed",
    ExitCode.DAMAGED: "damaged data, or data of a newer version",
    ExitCode.MISSING_DEPENDENCY: "a program or a library is missing",
    ExitCode.OUTCOME_UNKNOWN: "it is not known whether the commit was published",
    ExitCode.INVARIANT: "a rule of the table would be broken; nothing was published",
    ExitCode.INTERRUPTED: "interrupted by Ctrl-C",
    ExitCode.CLOSED_PIPE: "the reader of the output went away",
}

_CODES: dict[type, ExitCode] = {
    errors.InvalidInput: ExitCode.USAGE,
    errors.NotFound: ExitCode.NOT_FOUND,
    errors.SnapshotExpired: ExitCode.NOT_FOUND,
    errors.Closed: ExitCode.FAILURE,
    errors.AlreadyExists: ExitCode.CONFLICT,
    errors.Conflict: ExitCode.CONFLICT,
    errors.LeaseExpired: ExitCode.CONFLICT,
    errors.StorageError: ExitCode.FAILURE,
    errors.MetastoreError: ExitCode.FAILURE,
    errors.Damaged: ExitCode.DAMAGED,
    errors.Incompatible: ExitCode.DAMAGED,
    errors.MissingDependency: ExitCode.MISSING_DEPENDENCY,
    errors.CommitUnknown: ExitCode.OUTCOME_UNKNOWN,
    errors.InvariantViolation: ExitCode.INVARIANT,
}


def exit_code_of(error: errors.WindrowError) -> ExitCode:
    """Return the code of an error, by the nearest of its classes that has one."""
    return next((_CODES[kind] for kind in type(error).__mro__ if kind in _CODES), ExitCode.BUG)


def table_of_exit_codes() -> str:
    """Return the codes with their meanings, a line for each."""
    return "\n".join(f"{code.value:>5}  {code.meaning}" for code in ExitCode)
