"""What is known of one column of one file: sketch, synopses and sample, and which row groups they are about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from windrow.errors import InvalidInput
from windrow.pruning.bounds import Mask
from windrow.statistics.hashing import domain_of
from windrow.statistics.layout import FileLayout
from windrow.statistics.sample import SAMPLE_ROWS, ColumnSample, redrawn
from windrow.statistics.sketch import Sketch, united
from windrow.statistics.synopsis import MOST_SYNOPSES, Synopses
from windrow.statistics.values import settled_type

__all__ = ["ColumnSummary", "empty_sample", "merged_summary"]


@dataclass(frozen=True, eq=False, slots=True)
class ColumnSummary:
    """What is known of a column of a file. The sketch may know values of row groups that are not covered yet."""

    layout: FileLayout
    type: pa.DataType
    sketch: Sketch
    synopses: Synopses
    sample: ColumnSample | None
    """None where its values take too much room."""
    inherited_rows: int = 0
    """Rows whose values are in sketch and sample since the file was merged from others."""

    @classmethod
    def empty(cls, layout: FileLayout, kind: pa.DataType, most_synopses: int = MOST_SYNOPSES) -> ColumnSummary:
        """Of a column that nobody has read."""
        kind = settled_type(kind)
        synopses = Synopses.empty(kind, layout.row_counts, most_synopses)
        return cls(layout, kind, Sketch(), synopses, empty_sample(layout, kind))

    @property
    def covered(self) -> Mask:
        """Row groups that were read."""
        return self.synopses.covered

    @property
    def known_rows(self) -> int:
        """Rows whose values are in the sketch."""
        return max(int(self.layout.row_counts[self.covered].sum()), self.inherited_rows)

    @property
    def is_complete(self) -> bool:
        """Whether no row group is open."""
        return bool(self.covered.all())

    def union(self, other: ColumnSummary) -> ColumnSummary:
        """What both know of the same column of the same file."""
        if self.layout.fingerprint != other.layout.fingerprint or self.type != other.type:
            raise InvalidInput(f"statistics of {self.layout.key}: these are of two columns; unite those of one")
        return replace(
            self,
            sketch=united([self.sketch, other.sketch]),
            synopses=self.synopses.union(other.synopses),
            sample=_both(self.sample, other.sample),
            inherited_rows=max(self.inherited_rows, other.inherited_rows),
        )


def empty_sample(layout: FileLayout, kind: pa.DataType) -> ColumnSample:
    """The sample of a column that nobody has read."""
    return ColumnSample.empty(layout.fingerprint, kind, min(layout.rows, SAMPLE_ROWS))


def _both(one: ColumnSample | None, other: ColumnSample | None) -> ColumnSample | None:
    if one is None or other is None:
        return one or other
    return one.union(other)


def merged_summary(parts: Sequence[ColumnSummary], layout: FileLayout) -> ColumnSummary | None:
    """What is known of a column of a file that holds the rows of other files and was not read; None where nothing is.

    Sketches are united, and the sample is drawn again. Bounds of row groups cannot be known, but those of all rows are,
    if all parts were read as a whole: they stand as one synopsis of the file, which is then complete.
    """
    kinds = {(part.type, domain_of(part.type)) for part in parts}
    rows = sum(part.layout.rows for part in parts)
    if len(kinds) != 1 or rows != layout.rows or not any(part.known_rows for part in parts):
        return None
    [(kind, _)] = kinds
    samples = [(part.layout.rows, part.sample) for part in parts if part.sample is not None]
    return ColumnSummary(
        layout,
        kind,
        united(part.sketch for part in parts),
        _whole_synopses(parts, kind, layout),
        redrawn(samples, layout.fingerprint) if len(samples) == len(parts) else None,
        sum(part.known_rows for part in parts),
    )


def _whole_synopses(parts: Sequence[ColumnSummary], kind: pa.DataType, layout: FileLayout) -> Synopses:
    if not all(part.is_complete for part in parts):
        return Synopses.empty(kind, layout.row_counts)
    count = len(layout.row_groups)
    whole = parts[0].synopses.whole
    for part in parts[1:]:
        whole = whole.plus(part.synopses.whole)
    return Synopses(parts[0].synopses.type, max(count, 1), (whole,), np.ones(count, bool))
