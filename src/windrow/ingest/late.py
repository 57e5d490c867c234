"""The late-data rule: which points come too late, or from too far ahead, by the arrival time of their batch.

The arrival time is recorded with the batch, so a batch that is replayed is decided alike.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from windrow.ingest.dead_letter import Rejected
from windrow.model.window import ticks_of

__all__ = ["ArrivalRule", "Judged"]


@dataclass(frozen=True, slots=True)
class Judged:
    """The rows of a batch: those that are taken, and those that are not."""

    taken: pa.Table
    late: pa.Table
    future: pa.Table

    def rejected(self) -> tuple[Rejected, Rejected]:
        """Return the rows that are not taken, with the reason."""
        late = Rejected("late: older than the acceptance window when it arrived", self.late)
        return late, Rejected("future: too far ahead of its arrival", self.future)


@dataclass(frozen=True, slots=True)
class ArrivalRule:
    """How far from its arrival the time of a point may be; None does not bound. Times are microseconds."""

    arrived_at: int
    oldest: int | None = None
    """Seconds: a point older than this is late."""
    newest: int | None = None
    """Seconds: a point further ahead than this is from the future."""

    def judge(self, rows: pa.Table, timestamp: str, unit: str | None) -> Judged:
        """Part the rows; a row without a timestamp is taken, for it has no age."""
        if self.oldest is None and self.newest is None:
            return Judged(rows, rows.slice(0, 0), rows.slice(0, 0))
        ticks, per_second = ticks_of(rows[timestamp], unit)
        late = future = pa.scalar(value=False)
        if self.oldest is not None:
            bound = (self.arrived_at - self.oldest * 10**6) * per_second
            late = pc.fill_null(pc.less(ticks, _int64(-(-bound // 10**6))), fill_value=False)
        if self.newest is not None:
            bound = (self.arrived_at + self.newest * 10**6) * per_second
            future = pc.fill_null(pc.greater(ticks, _int64(bound // 10**6)), fill_value=False)
        taken = pc.invert(pc.or_(late, future))
        return Judged(
            *(
                rows.filter(mask) if isinstance(mask, pa.ChunkedArray) else rows.slice(0, 0)
                for mask in (taken, late, future)
            )
        )


def _int64(number: int) -> int:
    """Bounds beyond 64 bits are beyond every timestamp."""
    return max(-(2**63), min(number, 2**63 - 1))
