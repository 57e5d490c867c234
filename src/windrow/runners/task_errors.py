"""Errors of tasks: Spark hands them over as the text of a Java stack; here they become what the task raised."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from windrow import errors

__all__ = ["errors_of_tasks"]

_RAISED = re.compile(r"^windrow\.errors\.(\w+): (.+)$", re.MULTILINE)
_MANY_ARGUMENTS = (errors.SortSchemaError, errors.CommitUnknown, errors.InvariantViolation)


@contextmanager
def errors_of_tasks() -> Iterator[None]:
    """Raise in the driver what a task of the block raised, where it was one of our own errors."""
    try:
        yield
    except errors.WindrowError:
        raise
    except Exception as error:
        raised = _RAISED.search(str(error))
        if raised is None:
            raise
        raise _same(*raised.groups()) from error


def _same(name: str, message: str) -> errors.WindrowError:
    kind = getattr(errors, name, errors.WindrowError)
    if kind is errors.InvariantViolation:
        return errors.InvariantViolation(*message.split(" would be violated: ", 1))
    return errors.WindrowError(message) if kind in _MANY_ARGUMENTS else kind(message)
