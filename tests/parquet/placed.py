"""Row groups of whole files in an address space: the plain way, a file at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from windrow.errors import InvalidInput
from windrow.parquet import chunk as c
from windrow.parquet.footer import ParquetFooter
from windrow.parquet.placement import (
    VirtualRowGroup,
    VirtualSchema,
    leaf_positions,
    misleading_flags,
    null_chunk,
    null_record,
    shifted,
)
from windrow.parquet.schema import Leaf


def place_row_groups(
    footer: ParquetFooter,
    schema: VirtualSchema,
    *,
    base: int = 0,
    groups: Sequence[int] | None = None,
    null_address: Callable[[Leaf, int], int] | None = None,
) -> list[VirtualRowGroup]:
    """Row groups (all, or those chosen) of a file whose first byte is at the address `base`.

    `null_address` is asked for the address of a null chunk of so many rows for each leaf that the file does not have.
    """
    positions = leaf_positions(footer, schema)
    missing = [leaf for leaf, position in zip(schema.leaves, positions, strict=True) if position < 0]
    if missing and null_address is None:
        raise InvalidInput(f"column {'.'.join(missing[0].path)!r} is not in the file; give addresses of null chunks")
    chosen = list(range(len(footer.row_group_rows)) if groups is None else groups)
    placed = np.zeros((len(chosen), len(positions)), c.FOOTER_CHUNK)
    there = [index for index, position in enumerate(positions) if position >= 0]
    found = footer.chunks[np.ix_(chosen, [positions[index] for index in there])]
    found["flags"] &= ~np.uint32(misleading_flags(footer, schema))
    placed[:, there] = shifted(found, base)
    counts = footer.row_group_rows[chosen].tolist()
    for leaf in missing:
        for chunks, rows in zip(placed, counts, strict=True):
            chunks[leaf.index] = null_record(leaf, rows, at=null_address(leaf, rows) if null_address else 0)
    return [VirtualRowGroup(rows, chunks, footer.metadata) for chunks, rows in zip(placed, counts, strict=True)]


class NullChunks:
    """Null chunks, laid one after the other from an address on, each kind once; `address` is a `null_address`."""

    def __init__(self, start: int) -> None:
        self.start = start
        self.data = bytearray()
        self._addresses: dict[bytes, int] = {}

    def address(self, leaf: Leaf, rows: int) -> int:
        """The address of a null chunk, which is added to `data` if there is none like it yet."""
        chunk = null_chunk(leaf, rows)
        if chunk not in self._addresses:
            self._addresses[chunk] = self.start + len(self.data)
            self.data += chunk
        return self._addresses[chunk]
