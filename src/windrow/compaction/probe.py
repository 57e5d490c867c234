"""Looks at the inputs of a merge that failed, one by one, to find the one to blame."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from windrow.errors import Damaged, Incompatible, InvalidInput, InvariantViolation, NotFound, WindrowError
from windrow.merging.inputs import Input
from windrow.merging.splits import open_splits
from windrow.model.invariants import require
from windrow.model.sort_schema import SortSchema
from windrow.model.split import SplitMetadata
from windrow.storage import Store

__all__ = ["culprits", "may_be_poisoned"]

_UNREADABLE = (pa.ArrowException, OSError, ValueError)
_OF_THE_INPUT = (Damaged, Incompatible, InvalidInput, InvariantViolation, NotFound)


def may_be_poisoned(error: Exception) -> bool:
    """Whether an input may be the cause: a store that fails or is full is not, whatever is unexpected may be."""
    return isinstance(error, _OF_THE_INPUT) or not isinstance(error, WindrowError | MemoryError | OSError)


def culprits(store: Store, splits: Sequence[SplitMetadata]) -> dict[str, str]:
    """Return the splits that cannot be read as what the metastore says of them, with the reasons."""
    problems = {}
    for split in splits:
        try:
            _read(store, split)
        except _OF_THE_INPUT as error:
            problems[split.split_id] = str(error)
        except WindrowError:
            continue  # the store failed; the split may be fine
    return problems


def _read(store: Store, split: SplitMetadata) -> None:
    """Read all of a split by pyarrow, and compare it with its metadata."""
    (source,) = open_splits(store, [split])
    schema = SortSchema.parse(split.scope.sort_schema)
    try:
        rows = source.reader().read(use_threads=False)
    except _UNREADABLE as error:
        raise Damaged(
            f"{split.key}{_where(source)}: cannot be read: {error}; restore the file or take it out of the table"
        ) from error
    require("SS-1", table=rows, schema=schema)
    source.verify(split.digest)


def _where(source: Input) -> str:
    """The first row group and column of a file that cannot be read, as far as one is to blame."""
    try:
        reader = source.reader()
        columns = dict.fromkeys(leaf.path[0] for leaf in source.footer.leaves)
        places = [(group, column) for group in range(source.groups) for column in columns]
    except _UNREADABLE:
        return ""
    for group, column in places:
        try:
            reader.read_row_group(group, columns=[column])
        except _UNREADABLE:
            return f", row group {group}, column {column!r}"
    return ""
