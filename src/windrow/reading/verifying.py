"""Pages that come from a store are verified before an engine sees them, where they come whole and state checksums."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from windrow.parquet.page_reader import are_sound

__all__ = ["Runs"]

Longs = NDArray[np.int64]


class Runs:
    """The runs of pages that a plan needs of remote files."""

    def __init__(self, needed: Longs, files: frozenset[int]) -> None:
        """`needed` is file, offset and length of each run; those of other files are not verified."""
        self._runs: Mapping[int, Longs] = {
            # a dictionary is needed by each run of its chunk
            number: np.unique(needed[needed[:, 0] == number, 1:], axis=0)
            for number in files
        }

    def are_sound(self, file: int, start: int, data: bytes) -> bool:
        """Whether the runs that begin in some bytes of a file are what was written."""
        runs = self._runs.get(file)
        if runs is None:
            return True
        first, last = np.searchsorted(runs[:, 0], [start, start + len(data)])
        starts = runs[first:last, 0] - start
        ends = starts + runs[first:last, 1]
        return are_sound(data, starts, np.minimum(ends, len(data)), ends <= len(data))
