"""Columns go through the order of a merge run by run.

The order is a sequence of (first row, rows, input); a column is a value for each row, or runs of (code, end row).
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np
import numpy.typing as npt

from windrow.kernels.compiled import kernel

__all__ = ["gather_codes", "gather_fixed", "gather_rows", "take_codes", "take_fixed"]

Words = npt.NDArray[np.uint64]
Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]
Places = TypeVar("Places", npt.NDArray[np.int64], npt.NDArray[np.int32])
"""Rows and counts of them; they have half the size where there are few."""
Values = TypeVar(
    "Values", npt.NDArray[np.uint64], npt.NDArray[np.uint32], npt.NDArray[np.uint16], npt.NDArray[np.uint8]
)
"""Values of every width."""

SHORT = 16
"""Up to so many values are copied faster one by one than as a block."""


@kernel
def gather_fixed(starts: Places, counts: Places, values: Values, out: Values) -> None:
    """Copy the values of the rows in their order."""
    at = 0
    for run in range(starts.size):
        start, count = starts[run], counts[run]
        if count == 1:
            out[at] = values[start]
        elif count <= SHORT:
            for place in range(count):
                out[at + place] = values[start + place]
        else:
            out[at : at + count] = values[start : start + count]
        at += count


@kernel
def gather_codes(
    starts: Places, counts: Places, owners: Ints, cursors: Longs, codes: Ints, ends: Longs, out: Ints, out_ends: Longs
) -> int:
    """Take the runs of rows in their order; how many that gives. `cursors` are runs not behind those of each input."""
    runs, row = 0, 0
    for place in range(starts.size):
        start, stop, owner = starts[place], starts[place] + counts[place], owners[place]
        run = cursors[owner]
        while ends[run] <= start:
            run += 1
        while start < stop:
            end = min(ends[run], stop)
            row += end - start
            if runs and out[runs - 1] == codes[run]:
                out_ends[runs - 1] = row
            else:
                out[runs] = codes[run]
                out_ends[runs] = row
                runs += 1
            start = end
            run += start < stop
        cursors[owner] = run
    return runs


@kernel
def gather_rows(starts: Places, counts: Places, codes: Ints, out: Ints, out_ends: Longs) -> int:
    """Take codes, one for each row, in the order of the rows; how many runs that gives."""
    runs, row, last = 0, 0, np.int32(-2)
    for place in range(starts.size):
        start = starts[place]
        for at in range(start, start + counts[place]):
            if codes[at] != last:
                last = codes[at]
                if runs:
                    out_ends[runs - 1] = row
                out[runs] = last
                runs += 1
            row += 1
    if runs:
        out_ends[runs - 1] = row
    return runs


@kernel
def take_fixed(rows: Ints, values: Values, out: Values) -> None:
    """Copy the values of single rows in their order."""
    for place in range(rows.size):
        out[place] = values[rows[place]]


@kernel
def take_codes(rows: Ints, codes: Ints, out: Ints, out_ends: Longs) -> int:
    """Take the codes of single rows in their order; how many runs that gives."""
    runs, last = 0, np.int32(-2)
    for place in range(rows.size):
        code = codes[rows[place]]
        # written in any case, and kept if it is new: which it is cannot be foreseen
        out[runs] = code
        out_ends[runs] = place
        runs += code != last
        last = code
    for run in range(runs - 1):
        out_ends[run] = out_ends[run + 1]
    if runs:
        out_ends[runs - 1] = rows.size
    return runs
