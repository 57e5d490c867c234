"""Sparse data: points so far apart in time that windows hold few of them, and files are many and small."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from windrow.model.split import SplitMetadata
from windrow.model.units import format_seconds
from windrow.model.window import VALID_MINUTES

__all__ = ["FEW_ROWS", "LONGEST", "MANY_FILES", "Spread", "sparse_warning"]

MANY_FILES = 200
FEW_ROWS = 1_000
"""Fewer rows in a file than this cost more in opening it than in reading them."""
LONGEST = 60 * VALID_MINUTES[-1]
"""The longest window, in seconds."""


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


def sparse_warning(spread: Spread, window: int) -> str | None:
    """Say what to set where rows are spread thinly over files that windows of so many seconds make; else None."""
    if spread.files < MANY_FILES or spread.rows >= FEW_ROWS * spread.files:
        return None
    each = max(round(spread.rows / spread.files), 1)
    facts = (
        f"sparse data: {spread.rows:,} rows lie in {spread.files:,} files, about {each:,} in each, since every "
        f"{format_seconds(window)} has files of its own; these take more space and time than their rows"
    )
    if window < LONGEST and spread.in_longest < spread.files:
        return (
            f'{facts}. Set window="{LONGEST // 3600}h" (create_table, or table.change before more rows come): about '
            f"{spread.in_longest:,} files, once compacted"
        )
    return (
        f"{facts}, and no longer window makes fewer. Partition by fewer tenants (partition_by), or leave such rows in "
        "files of your own and let these join the table (table.register)"
    )
