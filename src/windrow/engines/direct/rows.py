"""Rows of an answer as Python values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["DirectRows"]


@dataclass(frozen=True, slots=True)
class DirectRows:
    """An answer of few rows and plain values, which needs no Arrow until somebody wants it."""

    names: Sequence[str]
    types: Sequence[str]
    """Arrow's, by their functions."""
    rows: Sequence[tuple[Any, ...]]

    def to_arrow(self) -> pa.Table:
        """The same as an Arrow table."""
        import pyarrow as pa

        kinds = [getattr(pa, kind)() for kind in self.types]
        columns = [[row[place] for row in self.rows] for place in range(len(kinds))]
        arrays = [pa.array(values, kind) for values, kind in zip(columns, kinds, strict=True)]
        return pa.Table.from_arrays(arrays, names=list(self.names))
