"""Sparse data: points so far apart in time that windows hold few of them, and files are many and small."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from windrow.model.settings import TableSettings
from windrow.model.split import SplitMetadata
from windrow.model.units import format_seconds
from windrow.model.window import COLD_HOURS

__all__ = ["FEW_ROWS", "LONGEST", "MANY_FILES", "Spread", "sparse_warning"]

MANY_FILES = 200
FEW_ROWS = 1_000
"""Fewer rows in a file than this cost more in opening it than in reading them."""
LONGEST = 3600 * COLD_HOURS[-1]
"""The longest window, a cold one, in seconds."""


@dataclass(frozen=True, slots=True)
class Spread:
    """How rows are spread over files."""

    rows: int
    files: int
    in_longest: int
    """How many files there would be with the longest window, once each holds one."""

    @classmethod
    def of_splits(cls, splits: Iterable[SplitMetadata]) -> Spread:
        """Return how the rows of splits in windows are spread; registered files have none."""
        rows, files, places = 0, 0, set()
        for split in splits:
            if split.window is not None:
                rows, files = rows + split.row_count, files + 1
                places.add((split.scope.partition_id, split.window.overflow, split.window.start // LONGEST))
        return cls(rows, files, len(places))


def sparse_warning(spread: Spread, settings: TableSettings) -> str | None:
    """Say what to set where rows are spread thinly over the files of a table with these settings; else None."""
    if spread.files < MANY_FILES or spread.rows >= FEW_ROWS * spread.files:
        return None
    each, cold = max(round(spread.rows / spread.files), 1), settings.gathers_into
    written = format_seconds(settings.window) + ("" if cold is None else f", {format_seconds(cold)} once it is closed,")
    facts = (
        f"sparse data: {spread.rows:,} rows lie in {spread.files:,} files, about {each:,} in each, since every "
        f"{written} has files of its own; these take more space and time than their rows"
    )
    if (cold or 0) < LONGEST and spread.in_longest < spread.files:
        return (
            f'{facts}. Set cold_window="{format_seconds(LONGEST)}" (create_table, or table.change before more rows '
            f"come): about {spread.in_longest:,} files, once compacted"
        )
    if spread.in_longest < spread.files:
        return f"{facts}. Compact the table: about {spread.in_longest:,} files, once all windows are closed"
    return (
        f"{facts}, and no longer window makes fewer. Partition by fewer tenants (partition_by), or leave such rows in "
        "files of your own and let these join the table (table.register)"
    )
