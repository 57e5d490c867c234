"""The options of Spark's source: which table of which lake, or of which QuestDB database, and which of its rows."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import windrow
from windrow.databases import open_database, open_table
from windrow.engines.scan import Scan
from windrow.errors import InvalidInput
from windrow.ingest.sink_options import needed_option, option_flag, refuse_unknown, store_options_of
from windrow.lake import Lake

__all__ = ["ReadOptions"]

_OURS = ("lake", "table", "metastore", "where", "columns", "version", "timestamp", "tasks", "pushdown")
_QUESTDBS = ("questdb", "native", "recover")
_OF_LAKES = ("lake", "metastore", "version", "timestamp")
_SPARKS = ("path",)
_TASKS_PER_CORE = 2


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """What the options of a read say, checked."""

    lake: str | None
    table: str | None
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
    """Whether filters of the query are taken: only for a DataFrame with a single query."""
    questdb: str | None = None
    """The folder of a QuestDB database, or of one of its tables, in place of a lake."""
    native: str = "refuse"
    recover: bool = False

    @classmethod
    def of(cls, options: Mapping[str, str]) -> ReadOptions:
        """Read the options as Spark hands them over: text, with names in lower case."""
        given = {name.lower(): value for name, value in options.items()}
        refuse_unknown(given, (*_OURS, *_QUESTDBS), _SPARKS)
        questdb = given.get("questdb")
        _refuse_mixed(given)
        columns = [name.strip() for name in given.get("columns", "").split(",") if name.strip()]
        return cls(
            lake=None if questdb else needed_option(given, "lake", given.get("path")),
            table=given.get("table") if questdb else needed_option(given, "table"),
            metastore=given.get("metastore"),
            store_options=store_options_of(given),
            where=given.get("where"),
            columns=tuple(columns) or None,
            version=_number(given, "version"),
            timestamp=_number(given, "timestamp"),
            tasks=_number(given, "tasks"),
            pushdown=option_flag("pushdown", given.get("pushdown", "false")),
            questdb=questdb,
            native=given.get("native", "refuse"),
            recover=option_flag("recover", given.get("recover", "false")),
        )

    @property
    def share_count(self) -> int:
        """How many tasks are wanted; by default, by the cores of the driver."""
        return self.tasks or _TASKS_PER_CORE * (os.cpu_count() or 1)

    @contextmanager
    def scanning(self, columns: Sequence[str] | None = None) -> Iterator[Scan]:
        """The scan of these columns, or of those that the options name; for a block."""
        chosen = columns or self.columns
        if self.questdb is not None:
            settings: dict[str, Any] = {"native": self.native, "recover": self.recover}
            if self.table is None:
                table = open_table(self.questdb, **settings)
            else:
                table = open_database(self.questdb, **settings).table(self.table)
            scan = table.scan(self.where, chosen)
            scan.selection.refuse_wide("Spark")
            yield scan
            return
        with self._open() as lake:
            yield self._of_lake(lake, chosen)

    def _open(self) -> Lake:
        """Open the lake, for a block. What is read once is not worth a cache."""
        return windrow.connect(
            self.lake or "", metastore=self.metastore, create=False, store_options=self.store_options, cache=None
        )

    def _of_lake(self, lake: Lake, columns: Sequence[str] | None) -> Scan:
        table = lake.table(self.table or "")
        if self.version is not None or self.timestamp is not None:
            table = table.at(version=self.version, timestamp=self.timestamp)
        return table.scan(self.where, columns)


def _refuse_mixed(given: Mapping[str, str]) -> None:
    """Options of lakes say nothing about a database of QuestDB, and the other way round."""
    wrong = [name for name in (_OF_LAKES if "questdb" in given else _QUESTDBS[1:]) if name in given]
    if wrong:
        kind = "a database of QuestDB" if "questdb" in given else "a lake"
        raise InvalidInput(f"format windrow: option {wrong[0]!r} has no meaning for {kind}; leave it out")


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
