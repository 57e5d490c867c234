"""The log of a Delta table, read and written through the lake's own store.

Its entries are numbered without a gap, and an entry is written only where none is yet: that is Delta's commit.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from windrow.errors import AlreadyExists
from windrow.mirror.actions import Action, entry_of
from windrow.storage import Store

__all__ = ["Entry", "Log", "live_paths"]

_ENTRY = re.compile(r"(\d{20})\.json")


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of the log."""

    number: int
    actions: Sequence[Action] | None
    """None when it cannot be read: whoever wrote it was cut off."""

    def of(self, kind: str) -> Iterator[dict[str, Any]]:
        """Yield the actions of one kind."""
        return (action[kind] for action in self.actions or () if isinstance(action.get(kind), dict))

    @property
    def origin(self) -> dict[str, Any] | None:
        """What Windrow said of the version that the entry shows; None in an entry of somebody else's."""
        return next((info["windrow"] for info in self.of("commitInfo") if isinstance(info.get("windrow"), dict)), None)


@dataclass(frozen=True, slots=True)
class Log:
    """The log in a table's folder."""

    store: Store
    table: str

    @property
    def folder(self) -> str:
        """Where the log is."""
        return f"{self.table}/_delta_log"

    def last_number(self, known: int = -1) -> int | None:
        """Return the number of the newest entry, looking from one that is known to exist; None without a log."""
        start = None if known < 1 else self._key(known - 1)
        return max(self._numbers(start), default=None)

    def entries(self) -> Iterator[Entry]:
        """Yield all entries, oldest first."""
        for number in sorted(self._numbers(None)):
            yield self.entry(number)

    def entry(self, number: int) -> Entry:
        """Read an entry."""
        return Entry(number, _actions(self.store.get(self._key(number))))

    def append(self, number: int, actions: Iterable[Action]) -> bool:
        """Write an entry unless there is one of this number; say whether it was written."""
        try:
            self.store.put_if_absent(self._key(number), entry_of(actions))
        except AlreadyExists:
            return False
        return True

    def mend(self, number: int, actions: Iterable[Action]) -> None:
        """Write an entry over one that was cut off."""
        self.store.put(self._key(number), entry_of(actions))

    def _numbers(self, after: str | None) -> Iterator[int]:
        for info in self.store.list(self.folder, after=after):
            found = _ENTRY.fullmatch(info.key.rpartition("/")[2])
            if found:
                yield int(found[1])

    def _key(self, number: int) -> str:
        return f"{self.folder}/{number:020d}.json"


def live_paths(entries: Iterable[Entry]) -> set[str]:
    """Return the files that a log shows after some entries."""
    live: set[str] = set()
    for entry in entries:
        live.difference_update(removed["path"] for removed in entry.of("remove"))
        live.update(added["path"] for added in entry.of("add"))
    return live


def _actions(data: bytes) -> list[Action] | None:
    """Every line is a JSON object, and the last one ends; else the entry was cut off."""
    if not data.endswith(b"\n"):
        return None
    try:
        actions = [json.loads(line) for line in data.decode().splitlines() if line]
    except ValueError:
        return None
    return actions if all(isinstance(action, dict) for action in actions) else None
