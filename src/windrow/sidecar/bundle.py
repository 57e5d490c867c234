"""Many sidecars as one: their row groups, one after the other, in one array.

Asking ten thousand small sidecars one by one costs ten thousand times the overhead of an array operation. Sidecars of
files with the same columns differ in their row groups alone, so laid end to end they are one sidecar with many row
groups, and readers take it for one file. Bloom filters are not part of it: they are probed
row groups that are left, and those of a file are in its own sidecar.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from windrow.sidecar import layout
from windrow.sidecar.content import Held
from windrow.sidecar.extensions import Extensions
from windrow.sidecar.layout import SnapshotCode
from windrow.sidecar.reader import Sidecar

__all__ = ["Bundle", "likeness"]


def likeness(sidecar: Sidecar) -> tuple[object, ...] | None:
    """What sidecars have in common that can be in one bundle; None for one that stays alone.

    A wide one has its bounds in a place of its own, and one that lacks our sections does not know where pages are.
    """
    section = sidecar.header_sections.windrow
    tables = sidecar.extensions.tables[SnapshotCode.PAGES]
    if section is None or tables is None or not tables.all() or sidecar.column_bounds(0) is not None:
        return None
    described = bytes(sidecar.buffer[layout.HEADER_SIZE : section[1]])
    return (sidecar.header._replace(committed_size=0), described, sidecar.extensions.created_by)


class Bundle(Sidecar):
    """Sidecars of one likeness, laid end to end."""

    def __init__(self, sidecars: Sequence[Sidecar]) -> None:
        first = sidecars[0]
        joined, starts = _joined(sidecars)
        entries = _rebased([each.entries for each in sidecars], starts)
        footer = first.footer._replace(offset=len(joined), row_group_count=len(entries))
        super().__init__(Held(joined), f"{first.name} and {len(sidecars) - 1} more", first.header, footer)
        self.owners = np.repeat(np.arange(len(sidecars)), [each.row_group_count for each in sidecars])
        """Which sidecar each row group is of."""
        self.groups = np.concatenate([np.arange(each.row_group_count) for each in sidecars])
        """The position of each row group in its own file."""
        no_filters = first.header_sections._replace(bloom_columns=np.empty(0, "<u4"))
        # What a single sidecar reads from its file on first use is there from the start.
        self.__dict__.update(
            entries=entries, _header_sections=no_filters, footer_sections=first.footer_sections, _bounds_start=0
        )
        self.__dict__["extensions"] = self._joined_extensions(sidecars, starts)

    @property
    def spans_files(self) -> bool:
        """True: row groups of several files do not follow each other in time."""
        return True

    def _joined_extensions(self, sidecars: Sequence[Sidecar], starts: NDArray[np.int64]) -> Extensions:
        first = sidecars[0].extensions
        section = self.header_sections.windrow
        joined = Extensions(self.name, self.words, self.buffer, self.header, self.footer, section, None)
        tables = {
            code: _rebased([_table(each, code) for each in sidecars], starts, absent_is_zero=True)
            for code in (SnapshotCode.PAGES, SnapshotCode.GRANULES)
        }
        joined.__dict__.update(tables=tables, created_by=first.created_by, version=first.version, key_value={})
        return joined


def _joined(sidecars: Sequence[Sidecar]) -> tuple[bytes, NDArray[np.int64]]:
    """The bytes of sidecars up to their footers, and at which word each of them starts."""
    parts: list[bytes | memoryview] = []
    starts = [0]
    for each in sidecars:
        size = each.footer.offset
        padding = -size % layout.WORD
        parts += [memoryview(each.buffer)[:size], bytes(padding)]
        starts.append(starts[-1] + (size + padding) // layout.WORD)
    return b"".join(parts), np.array(starts)


def _table(sidecar: Sidecar, code: SnapshotCode) -> NDArray[np.int64]:
    table = sidecar.extensions.tables[code]
    return np.zeros(sidecar.row_group_count, np.int64) if table is None else table


def _rebased(
    parts: Sequence[NDArray[np.int64]], starts: NDArray[np.int64], *, absent_is_zero: bool = False
) -> NDArray[np.int64]:
    """Positions of words in single sidecars as positions in all of them."""
    joined = np.concatenate(parts)
    shifts = np.repeat(starts[:-1], [len(part) for part in parts])
    return np.where(joined > 0, joined + shifts, 0) if absent_is_zero else joined + shifts
