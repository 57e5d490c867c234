"""What an ingest would do, without writing anything."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa

from windrow.errors import InvalidInput
from windrow.ingest.advice import predicted_spread, unsorted_warnings
from windrow.ingest.shuffle import Gathering
from windrow.ingest.sources import FilesSource, Source
from windrow.model.names import check_against_table
from windrow.model.settings import TableSettings
from windrow.model.shown import ShownByField
from windrow.model.sparse import Spread, sparse_warning
from windrow.model.widening import WAYS_OUT, plain, widened

__all__ = ["IngestPlan", "plan_of"]


@dataclass(frozen=True, slots=True, repr=False)
class IngestPlan(ShownByField):
    """The source as it is, and what it would change in the table's columns."""

    table: str
    columns: tuple[str, ...]
    new_columns: tuple[str, ...]
    widened_columns: tuple[str, ...]
    """Columns that would get a wider type, as "name: old to new"."""
    files: int | None = None
    size_bytes: int | None = None
    set_aside: tuple[str, ...] = ()
    """What is wrong with files whose rows would become dead letters."""
    shuffle: bool = False
    """Whether Spark would gather rows by tenant and window before they are written."""
    shuffle_reason: str = ""
    """Why it would, or would not."""
    predicted_files: int | None = None
    """About how many files the tasks would write without a shuffle, by a sample of the rows."""
    warnings: tuple[str, ...] = ()
    """What to look at before the rows are taken."""


def plan_of(
    table: str,
    source: Source,
    written: pa.Schema,
    types: Mapping[str, pa.DataType],
    gathering: Gathering,
    settings: TableSettings,
    closed_before: int,
) -> IngestPlan:
    """Return the plan, or refuse what the ingest itself would refuse before it starts."""
    check_against_table(written.names, types)
    wider = []
    for column in written:
        both = widened(types[column.name], column.type) if column.name in types else plain(column.type)
        if both is None:
            raise InvalidInput(
                f"column {column.name!r} is {types[column.name]} in the table and {column.type} in the data; {WAYS_OUT}"
            )
        if column.name in types and both != types[column.name]:
            wider.append(f"{column.name}: {types[column.name]} to {both}")
    files = source.files if isinstance(source, FilesSource) else None
    spread = predicted_spread(source, settings, closed_before)
    return IngestPlan(
        table=table,
        columns=tuple(written.names),
        new_columns=tuple(name for name in written.names if name not in types),
        widened_columns=tuple(wider),
        files=None if files is None else len(files),
        size_bytes=None if files is None else sum(file.size for file in files),
        set_aside=source.conflicts if isinstance(source, FilesSource) else (),
        shuffle=gathering.shuffle,
        shuffle_reason=gathering.reason,
        predicted_files=gathering.predicted_files if spread is None else spread.files,
        warnings=tuple(_warnings(spread, settings, {*types, *written.names})),
    )


def _warnings(spread: Spread | None, settings: TableSettings, columns: Collection[str]) -> Iterator[str]:
    sparse = None if spread is None else sparse_warning(spread, settings)
    if sparse is not None:
        yield sparse
    yield from unsorted_warnings(settings, columns)
