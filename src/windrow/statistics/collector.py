"""Takes rows that a query decodes, and learns from them what is not known yet, within a budget.

A row group of a column is taken once: the first time that all of its rows passed by, in any pieces and any order. Row
groups that a query skips stay open. What was learnt is handed out as summaries, which a catalog unites with its own.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windrow.errors import InvalidInput
from windrow.statistics.column_summary import ColumnSummary, empty_sample
from windrow.statistics.hashing import coupons_of, domain_of
from windrow.statistics.layout import MOST_ROW_GROUPS, FileLayout
from windrow.statistics.sample import ColumnSample, sample_positions
from windrow.statistics.sketch import LG_K
from windrow.statistics.synopsis import MOST_SYNOPSES, Facts, facts_of, facts_of_parts
from windrow.statistics.values import settled_type, used_values, without_views

__all__ = ["MOST_COLUMNS", "Budget", "FileCollector", "RowGroupValues", "collects"]

MOST_COLUMNS = 256
"""Columns of one file that have statistics: those that queries read first."""
_PIECE = 1 << 16
"""Values are hashed in pieces that stay in the processor's cache."""


def collects(layout: FileLayout, kind: pa.DataType) -> bool:
    """Whether there are statistics of a column of this type, in such a file."""
    return domain_of(kind) is not None and len(layout.row_groups) <= MOST_ROW_GROUPS


@dataclass
class Budget:
    """How much may be spent: bytes of Arrow arrays, and seconds of CPU. With either at zero nothing is collected."""

    bytes: float = float("inf")
    seconds: float = float("inf")
    clock: Callable[[], float] = time.thread_time

    def allows(self, size: int) -> bool:
        """Whether so many bytes more may be looked at."""
        return self.seconds > 0 and 0 < size <= self.bytes

    def spend(self, size: int, began: float) -> None:
        """Take off bytes that were looked at since a moment of the clock."""
        self.bytes -= size
        self.seconds -= self.clock() - began


class RowGroupValues(NamedTuple):
    """What a column holds in a row group."""

    row_group: int
    values: pa.Array
    """All values that are not null, each once or more often."""
    null_count: int
    sampled: pa.Array | None
    """The values at the rows of the sample that lie there, in their order; None leaves these unknown."""


@dataclass
class _Part:
    """What was seen of a row group that has not passed by as a whole."""

    pieces: list[tuple[int, int]] = field(default_factory=list)
    """From which row up to which other one; none of them overlap."""
    facts: Facts = field(default_factory=Facts)

    @property
    def rows(self) -> int:
        """How many rows were seen."""
        return sum(end - start for start, end in self.pieces)

    def overlaps(self, first: int, end: int) -> bool:
        """Whether some of these rows were seen."""
        return any(first < seen_end and seen_first < end for seen_first, seen_end in self.pieces)


class FileCollector:
    """Learns about one file; `known` is what is known of its columns already. One thread uses it at a time."""

    def __init__(
        self,
        layout: FileLayout,
        known: Mapping[str, ColumnSummary] | None = None,
        budget: Budget | None = None,
        most_synopses: int = MOST_SYNOPSES,
    ) -> None:
        self.layout = layout
        self._most_synopses = most_synopses
        self._known = {name: each for name, each in (known or {}).items() if each.layout == layout}
        self._budget = Budget() if budget is None else budget
        self._parts: dict[tuple[str, int], _Part] = {}
        self._changed: set[str] = set()
        self._copied: set[str] = set()

    @property
    def changed(self) -> dict[str, ColumnSummary]:
        """The columns of which a row group was completed, as they are known now."""
        return {name: self._known[name] for name in sorted(self._changed)}

    def know(self, known: Mapping[str, ColumnSummary]) -> None:
        """Take what is known of more columns."""
        self._known |= {name: each for name, each in known.items() if each.layout == self.layout}

    def take_changed(self) -> dict[str, ColumnSummary]:
        """What changed since this was last called."""
        changed = self.changed
        self._changed.clear()
        return changed

    def wants(self, column: str, row_group: int) -> bool:
        """Whether rows of a column are worth handing over: of an open row group, while there is something to spend."""
        summary = self._known.get(column)
        is_open = len(self._known) < MOST_COLUMNS if summary is None else not summary.covered[row_group]
        return is_open and self._budget.allows(1)

    def add(self, row_group: int, first_row: int, columns: Mapping[str, pa.Array]) -> None:
        """Take rows of a row group, which begin at a row of it; dictionaries may hold values of other rows too."""
        for name, values in columns.items():
            if collects(self.layout, values.type) and self.wants(name, row_group):
                self._add(name, row_group, first_row, without_views(values))

    def add_row_groups(self, name: str, parts: Sequence[RowGroupValues]) -> None:
        """Take what a column holds in whole row groups, in the place of their rows; all of it is of one type."""
        parts = [part for part in parts if self.wants(name, part.row_group)]
        if not parts or not collects(self.layout, parts[0].values.type):
            return
        began, summary = self._budget.clock(), self._own(name, parts[0].values.type)
        values = pa.concat_arrays([part.values for part in parts])
        for start in range(0, len(values), _PIECE):
            summary.sketch.add(coupons_of(values.slice(start, _PIECE)))
        facts = facts_of_parts(values, np.cumsum([0, *(len(part.values) for part in parts)]))
        synopses = summary.synopses.with_row_groups(
            {
                part.row_group: replace(each, null_count=part.null_count) if part.null_count else each
                for part, each in zip(parts, facts, strict=True)
            }
        )
        self._known[name] = replace(summary, synopses=synopses, sample=self._with_parts(summary, parts))
        for part in parts:
            self._parts.pop((name, part.row_group), None)
        self._changed.add(name)
        self._budget.spend(max(values.nbytes, 1), began)

    def _with_parts(self, summary: ColumnSummary, parts: Sequence[RowGroupValues]) -> ColumnSample | None:
        """The sample with its rows in some row groups."""
        sampled = [(self.sampled_rows(part.row_group)[0], part.sampled) for part in parts if part.sampled is not None]
        if summary.sample is None or not sampled:
            return summary.sample
        places = np.concatenate([np.arange(low, low + len(values)) for low, values in sampled])
        found = pa.concat_arrays([values for _, values in sampled])
        return self._own_sample(summary, summary.sample).with_values(places, found)

    def lacks_sample(self, name: str, row_group: int) -> bool:
        """Whether a row group was learnt of which rows of the sample are not known."""
        summary = self._known.get(name)
        if summary is None or summary.sample is None or not summary.covered[row_group] or not self._budget.allows(1):
            return False
        low, rows = self.sampled_rows(row_group)
        own = self._own_sample(summary, summary.sample)
        return not own.known[low : low + rows.size].all()

    def add_samples(self, name: str, sampled: Mapping[int, pa.Array]) -> None:
        """Take the values at the rows of the sample that lie in row groups which were learnt."""
        summary, began = self._known.get(name), self._budget.clock()
        if summary is None or not sampled:
            return
        parts = [RowGroupValues(row_group, values[:0], 0, values) for row_group, values in sampled.items()]
        self._known[name] = replace(summary, sample=self._with_parts(summary, parts))
        self._changed.add(name)
        self._budget.spend(max(sum(values.nbytes for values in sampled.values()), 1), began)

    def sampled_rows(self, row_group: int) -> tuple[int, npt.NDArray[np.int64]]:
        """The rows of the sample that lie in a row group, counted there, and the place of the first in the sample."""
        start, end = self.layout.starts[row_group], self.layout.starts[row_group + 1]
        positions = sample_positions(self.layout.fingerprint, self.layout.rows)
        low, high = np.searchsorted(positions, [start, end])
        return int(low), positions[low:high] - start

    def _add(self, name: str, row_group: int, first_row: int, values: pa.Array) -> None:
        rows = self.layout.row_groups[row_group]
        if first_row < 0 or first_row + len(values) > rows:
            raise InvalidInput(
                f"{self.layout.key}: rows {first_row} to {first_row + len(values)} of row group {row_group}, "
                f"which has {rows}; give rows of the file that the layout describes"
            )
        part, size = self._parts.setdefault((name, row_group), _Part()), max(values.nbytes, 1)
        if part.overlaps(first_row, first_row + len(values)) or not self._budget.allows(size):
            return
        began = self._budget.clock()
        summary = self._learnt(self._own(name, values.type), part, row_group, first_row, values)
        if part.rows == rows:
            summary = self._completed(name, summary, row_group, part.facts)
        self._known[name] = summary
        self._budget.spend(size, began)

    def _completed(self, name: str, summary: ColumnSummary, row_group: int, facts: Facts) -> ColumnSummary:
        self._parts.pop((name, row_group), None)
        self._changed.add(name)
        return replace(summary, synopses=summary.synopses.with_row_group(row_group, facts))

    def _own(self, name: str, kind: pa.DataType) -> ColumnSummary:
        """What is known of a column, in a copy; what is known of one of another type is forgotten."""
        summary = self._known.get(name)
        if summary is None or summary.type != settled_type(kind):
            summary = ColumnSummary.empty(self.layout, kind, self._most_synopses)
        elif name not in self._copied:
            summary = replace(summary, sketch=summary.sketch.folded(LG_K))
        self._copied.add(name)
        return summary

    def _learnt(
        self, summary: ColumnSummary, part: _Part, row_group: int, first_row: int, values: pa.Array
    ) -> ColumnSummary:
        """What is known with some more rows of a row group; its synopsis is for the caller to complete."""
        used = used_values(values)
        part.facts = part.facts.plus(Facts(null_count=values.null_count))
        for start in range(0, len(used), _PIECE):
            piece = used.slice(start, _PIECE)
            summary.sketch.add(coupons_of(piece))
            part.facts = part.facts.plus(facts_of(piece, piece))
        part.pieces.append((first_row, first_row + len(values)))
        sample = summary.sample
        if sample is None:
            return summary
        sample = self._own_sample(summary, sample)
        return replace(summary, sample=self._sampled(sample, int(self.layout.starts[row_group]) + first_row, values))

    def _own_sample(self, summary: ColumnSummary, sample: ColumnSample) -> ColumnSample:
        """The sample of the rows that are drawn of this very file; one of others is left."""
        is_own = sample.draw == self.layout.fingerprint
        return sample if is_own else empty_sample(self.layout, summary.type)

    def _sampled(self, sample: ColumnSample, start: int, values: pa.Array) -> ColumnSample:
        """The sample with those of its rows that lie in a piece of the file."""
        positions = sample_positions(self.layout.fingerprint, self.layout.rows)
        low, high = np.searchsorted(positions, [start, start + len(values)])
        return sample.with_values(np.arange(low, high), values.take(pa.array(positions[low:high] - start)))
