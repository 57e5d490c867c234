"""What is not well with the tables of a lake, each with its figure, its likely cause and the command that helps.

Nothing is changed, and there is no score: conditions are named, or there are none.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from windrow.context import Context
from windrow.doctor.conditions import CONDITIONS, LAG, Examined, Finding
from windrow.errors import WindrowError
from windrow.metastore import TableRecord
from windrow.model.rows import Rows
from windrow.model.settings import Duration
from windrow.model.units import format_count, format_seconds, parse_seconds
from windrow.upkeep.clock import store_time

__all__ = ["CLOCKS_APART", "FEWEST_REQUESTS", "examine_lake"]

CLOCKS_APART = 30
"""Seconds by which clocks may differ."""
FEWEST_REQUESTS = 1000
"""With fewer a cache has not shown yet what it is worth."""


def examine_lake(context: Context, name: str | None = None, *, lag: Duration = LAG) -> Rows[Finding]:
    """Return the findings of all tables, or of one; `lag` is how soon a closed window should be compacted."""
    seconds = parse_seconds(lag, "lag")
    records = context.metastore.tables() if name is None else [context.metastore.table(name)]
    of_tables = chain.from_iterable(_of_table(context, each, seconds) for each in records)
    of_lake = _of_clocks(context, records[0]) if records else ()
    return Rows(Finding, (*of_tables, *of_lake, *_of_caches(context)))


def _of_table(context: Context, table: TableRecord, lag: int) -> Iterator[Finding]:
    examined = Examined(context, table, lag)
    for condition in CONDITIONS:
        yield from condition(examined)


def _of_clocks(context: Context, table: TableRecord) -> Iterator[Finding]:
    """A clock of the store that differs from that of this machine: files are dated by it.

    An empty object is written beside a table, as garbage collection does: its date tells.
    """
    try:
        theirs = store_time(context.store, table.folder).timestamp()
    except WindrowError:
        return  # whoever may only read cannot tell
    apart = round(theirs - context.now() / 1e6)
    if abs(apart) > CLOCKS_APART:
        yield Finding(
            "",
            "clocks are apart",
            f"the store is {format_seconds(abs(apart))} {'ahead' if apart > 0 else 'behind'}",
            "leases, late points and ages of files are measured by clocks; set them by NTP",
            "timedatectl status",
        )


def _of_caches(context: Context) -> Iterator[Finding]:
    """A cache that lets go of more than it answers."""
    cache = context.parsed
    if cache is None:
        return
    counts = cache.metrics.total()
    if counts.misses >= FEWEST_REQUESTS and counts.evictions > counts.hits:
        yield Finding(
            "",
            "a cache is too small",
            f"{format_count(counts.evictions, 'eviction')} beside {format_count(counts.hits, 'hit')}",
            f"sidecars of what is queried do not fit in the cache {cache.metrics.name!r}",
            "windrow cache stats",
        )
