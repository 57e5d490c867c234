"""What a run would cost and gain, before it starts.

The figures are estimates: bytes from the splits themselves, seconds from the table's own last runs where there are any,
else from what was measured on a small machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from windrow.metastore import RunRecord

__all__ = ["Forecast", "Rates"]

_MERGE_BYTES_PER_SECOND = 25e6
"""Input bytes that one thread merges in a second: 1,000 splits of 53 KB take about two."""
_PLANNING_SECONDS = 50e-6
"""To find out of one split whether a query needs it: its row in the metastore and its sidecar."""
_OPENING_SECONDS = 0.7e-3
"""To open one small file of a warm local disk in DuckDB; a bucket takes a hundred times as long."""
_MERGE_SECONDS = 0.05
"""What one merge takes whatever its size: to open its inputs, store and publish; about 28 ms of it are CPU."""
_TELLING_BYTES = 64 * 2**20
"""Runs over less than this say nothing of speed."""


@dataclass(frozen=True, slots=True)
class Rates:
    """What merging did on this table so far."""

    shrinks_to: float = 1.0
    """Bytes that come out of a merge for every byte that goes in."""
    bytes_per_second: float = _MERGE_BYTES_PER_SECOND

    @classmethod
    def of(cls, runs: Sequence[RunRecord]) -> Rates:
        """Learn from runs that ended."""
        ended = [run for run in runs if run.bytes_in and run.ended_at is not None]
        read = sum(run.bytes_in for run in ended)
        seconds = sum((run.ended_at or 0) - run.started_at for run in ended) / 1e6
        if not read:
            return cls()
        shrinks_to = sum(run.bytes_out for run in ended) / read
        # A small run tells of starting up, not of merging.
        return cls(shrinks_to, read / seconds) if read >= _TELLING_BYTES and seconds > 0 else cls(shrinks_to)


@dataclass(frozen=True, slots=True)
class Forecast:
    """Before and after a run, for the windows it would touch and those it would not."""

    files_before: int
    files_after: int
    bytes_read: int
    bytes_written: int
    seconds: float
    planning_ms_before: float
    planning_ms_after: float
    opening_ms_before: float
    """To open every file of the table once, as a query without a condition does."""
    opening_ms_after: float

    @classmethod
    def of(cls, files: int, inputs: int, outputs: int, merges: int, bytes_read: int, rates: Rates) -> Forecast:
        """Return the forecast for merging so many of the files."""
        after = files - inputs + outputs
        return cls(
            files_before=files,
            files_after=after,
            bytes_read=bytes_read,
            bytes_written=int(bytes_read * rates.shrinks_to),
            seconds=round(merges * _MERGE_SECONDS + bytes_read / rates.bytes_per_second, 3),
            planning_ms_before=round(files * _PLANNING_SECONDS * 1000, 3),
            planning_ms_after=round(after * _PLANNING_SECONDS * 1000, 3),
            opening_ms_before=round(files * _OPENING_SECONDS * 1000, 3),
            opening_ms_after=round(after * _OPENING_SECONDS * 1000, 3),
        )
