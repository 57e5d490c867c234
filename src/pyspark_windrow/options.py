"""The options of Spark's source: which table of which lake, at which version, and which of its rows."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import windrow
from windrow.engines.scan import Scan
from windrow.engines.sink_options import needed_option, option_flag, refuse_unknown, store_options_of
from windrow.errors import InvalidInput
from windrow.lake import Lake

__all__ = ["ReadOptions"]

_OURS = ("lake", "table", "metastore", "where", "columns", "version", "timestamp", "tasks", "pushdown")
_SPARKS = ("path",)
_TASKS_PER_CORE = 2


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """What the options of a read say, checked."""

    lake: str
    table: str
    metastore: str | None = field(default=None, repr=False)
    store_options: Mapping[str, str] = field(default_factory=dict, repr=False)
    where: str | None = None
    columns: tuple[str, ...] | None = None
    version: int | None = None
    timestamp: int | None = None
    """Microseconds since the epoch."""
    tasks: int | None = None
    """About how many tasks share the work."""
    pushdown: bool = False
    """Whether filters of the query are taken: only for a DataFrame that is asked one question."""

    @classmethod
    def of(cls, options: Mapping[str, str]) -> ReadOptions:
        """Read the options as Spark hands them over: text, with names in lower case."""
        given = {name.lower(): value for name, value in options.items()}
        refuse_unknown(given, _OURS, _SPARKS)
        columns = [name.strip() for name in given.get("columns", "").split(",") if name.strip()]
        return cls(
            lake=needed_option(given, "lake", given.get("path")),
            table=needed_option(given, "table"),
            metastore=given.get("metastore"),
            store_options=store_options_of(given),
            where=given.get("where"),
            columns=tuple(columns) or None,
            version=_number(given, "version"),
            timestamp=_number(given, "timestamp"),
            tasks=_number(given, "tasks"),
            pushdown=option_flag("pushdown", given.get("pushdown", "false")),
        )

    @property
    def share_count(self) -> int:
        """How many tasks are wanted, by the cores of the driver where nobody said."""
        return self.tasks or _TASKS_PER_CORE * (os.cpu_count() or 1)

    def open(self) -> Lake:
        """Open the lake, for a block. What is read once is not worth a cache."""
        return windrow.connect(
            self.lake, metastore=self.metastore, create=False, store_options=self.store_options, cache=None
        )

    def scan(self, lake: Lake, columns: Sequence[str] | None = None) -> Scan:
        """Return the scan that is asked for, of these columns, or of those that the options name."""
        table = lake.table(self.table)
        if self.version is not None or self.timestamp is not None:
            table = table.at(version=self.version, timestamp=self.timestamp)
        return table.scan(self.where, columns or self.columns)


def _number(given: Mapping[str, str], name: str) -> int | None:
    if name not in given:
        return None
    try:
        number = int(given[name])
    except ValueError:
        number = -1
    if number < 0:
        raise InvalidInput(f"format windrow: option {name!r} is {given[name]!r}; write a whole number")
    return number
