"""Every error that Windrow raises on purpose.

One class per different reaction of the caller; the message is for people and is not part of the API.

    WindrowError
    ├── InvalidInput              (also ValueError)      fix the value and call again
    │   ├── SortSchemaError                              a sort schema string; knows the position
    │   └── ConfigError                                  a setting, a variable or a TOML key
    ├── NotFound                  (also LookupError)     no such table, split, version or object
    ├── AlreadyExists                                    the name or the key is taken
    ├── Conflict                                         another commit won; plan again and retry
    ├── LeaseExpired                                     the commit was open for too long; start a new one
    ├── SnapshotExpired                                  the version is no longer readable; read a newer one
    ├── Closed                                           the lake, or a stream of it, was closed; open it again
    ├── CommitUnknown                                    the answer was lost; read back by commit id
    ├── StorageError              (also OSError)         the store failed; `retryable` says if waiting helps
    │   └── Replaced                                     an object is not the one that was planned with; plan again
    ├── MetastoreError                                   the database failed; `retryable` says if waiting helps
    ├── Incompatible                                     written by a newer version, or not ours at all
    ├── Damaged                                          bytes that are not what they claim to be
    ├── InvariantViolation                               a rule of the table would be broken; nothing was published
    └── MissingDependency                                a program or library is absent; the message says how to get it

`retryable` says whether the same call may succeed later. `outcome` is set on errors of a commit: whether it took place.
"""

from __future__ import annotations

from enum import StrEnum

__all__ = [
    "AlreadyExists",
    "Closed",
    "CommitUnknown",
    "ConfigError",
    "Conflict",
    "Damaged",
    "Incompatible",
    "InvalidInput",
    "InvariantViolation",
    "LeaseExpired",
    "MetastoreError",
    "MissingDependency",
    "NotFound",
    "Outcome",
    "Replaced",
    "SnapshotExpired",
    "SortSchemaError",
    "StorageError",
    "WindrowError",
]


class Outcome(StrEnum):
    """Whether a commit took place, after an error."""

    COMMITTED = "committed"
    NOT_COMMITTED = "not committed"
    UNKNOWN = "unknown"


class WindrowError(Exception):
    """The root of all errors that Windrow raises on purpose."""

    retryable: bool = False
    outcome: Outcome | None = None

    def __init__(self, message: str, *, retryable: bool | None = None, outcome: Outcome | None = None) -> None:
        super().__init__(message)
        if retryable is not None:
            self.retryable = retryable
        if outcome is not None:
            self.outcome = outcome


class InvalidInput(WindrowError, ValueError):
    """The caller gave a value that cannot be used."""


class SortSchemaError(InvalidInput):
    """A sort schema string that cannot be read; `position` counts characters from 0."""

    def __init__(self, text: str, position: int, problem: str) -> None:
        pointer = " " * position + "^"
        super().__init__(f"sort schema, position {position}: {problem}\n  {text}\n  {pointer}")
        self.text = text
        self.position = position
        self.problem = problem


class ConfigError(InvalidInput):
    """A setting that is unknown or has a value that cannot be used."""


class NotFound(WindrowError, LookupError):
    """A table, split, version or object that does not exist."""


class AlreadyExists(WindrowError):
    """The name of a table or the key of an object is taken."""


class Conflict(WindrowError):
    """Another commit got there first; nothing was published. Plan again, then retry."""

    retryable = True
    outcome = Outcome.NOT_COMMITTED


class LeaseExpired(WindrowError):
    """The lease of a commit ran out before it was published; nothing was published."""

    outcome = Outcome.NOT_COMMITTED


class SnapshotExpired(WindrowError):
    """A version that cannot be read any more, or a pin that ran out."""


class Closed(WindrowError):
    """A lake, or something that was read from it, was closed before or while it was used."""


class CommitUnknown(WindrowError):
    """The metastore was lost while it committed; read the outcome back by commit id before doing anything else."""

    retryable = True
    outcome = Outcome.UNKNOWN

    def __init__(self, message: str, commit_id: str) -> None:
        super().__init__(message)
        self.commit_id = commit_id


class StorageError(WindrowError, OSError):
    """The object store or the disk failed."""


class Replaced(StorageError):
    """An object was replaced since it was looked at, so its metadata is of another one."""

    retryable = True


class MetastoreError(WindrowError):
    """The database of the metastore failed."""


class Incompatible(WindrowError):
    """Data written by a newer Windrow, or by something that is not Windrow."""


class Damaged(WindrowError):
    """Bytes that are not what they claim to be."""


class InvariantViolation(WindrowError):
    """A rule of the table would be broken by what was about to become visible."""

    outcome = Outcome.NOT_COMMITTED

    def __init__(self, invariant: str, evidence: str) -> None:
        super().__init__(f"{invariant} would be violated: {evidence}")
        self.invariant = invariant
        self.evidence = evidence


class MissingDependency(WindrowError):
    """A program or library that this call needs is not installed."""
