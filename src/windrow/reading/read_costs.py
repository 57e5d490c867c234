"""What it takes to get the rows of a plan, out of cached pages or out of a virtual file: a model of a few constants.

`python -m benchmarks.read_costs` measures what the constants stand for, on one core. They are rounded: near the point
where both ways take as long it does not matter which is taken. An engine reads with several threads, which share the
chunks; decoding here has one. Whether pages are cached is no part of it: both ways would have to decompress them.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Decoding", "virtual_cost", "worth_decoding", "worth_looking"]

_MICROSECOND, _NANOSECOND = 1e-6, 1e-9

OPEN = 300 * _MICROSECOND
"""An engine opens a virtual file: its name, footer and schema."""
CHUNK = 20 * _MICROSECOND
"""A chunk is read and its dictionary decoded by an engine."""
VALUE = 3 * _NANOSECOND
"""A value is decompressed, decoded and filtered by an engine."""
COLUMN = 15 * _MICROSECOND
"""Python calls a kernel for a column, and makes an array of what it returns."""
NUMBER = 3 * _NANOSECOND
"""A number is taken out of its page and handed to an engine."""
TEXT = 12 * _NANOSECOND
"""The same for a text, which is copied."""
LOOK = 2 * _NANOSECOND
"""A number is taken out of its page and compared with a literal."""
_MOST_OF_LOOKING = 1 / 8
"""What looking may take of the time of the other way, where it may be in vain."""


@dataclass(frozen=True, slots=True)
class Decoding:
    """What would be taken out of cached pages."""

    numbers: int
    """Columns of numbers."""
    texts: int
    """Columns of texts."""

    def cost(self, rows: int) -> float:
        """The seconds that so many rows take."""
        per_row = self.numbers * NUMBER + self.texts * TEXT
        return (self.numbers + self.texts) * COLUMN + rows * per_row


def virtual_cost(chunks: int, values: int, threads: int) -> float:
    """The seconds until an engine has decoded so many chunks and values."""
    return OPEN + (chunks * CHUNK + values * VALUE) / max(min(threads, chunks), 1)


def worth_looking(decoding: Decoding, virtual: float, rows: int, tested: int) -> bool:
    """Whether rows are looked for here, of which numbers are `tested` that no statistics have ruled out.

    Where none is tested but times, which planning has narrowed down already, nearly all rows are taken.
    """
    if not tested:
        return decoding.cost(rows) <= virtual
    return rows * tested * LOOK <= virtual * _MOST_OF_LOOKING or decoding.cost(rows) <= virtual


def worth_decoding(decoding: Decoding, virtual: float, rows: int) -> bool:
    """Whether the rows that match are decoded here, now that their number is certain."""
    return decoding.cost(rows) <= virtual
