"""The log of a Delta table, read and written through the lake's own store.

Its entries are numbered without a gap, and an entry is written only where none is yet: that is Delta's commit.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from windrow.errors import AlreadyExists, Damaged, NotFound
from windrow.mirror.actions import Action, entry_of, is_intact
from windrow.mirror.shape import MOST_VERSION, problem_of
from windrow.storage import Store

__all__ = ["MOST_MISSING", "Entry", "Log", "State", "live_paths"]

MOST_MISSING = 10_000
"""An entry whose number is further from the others stands alone: so many were never lost."""

_ENTRY = re.compile(r"(\d{20})\.json")


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of the log."""

    number: int
    actions: Sequence[Action] | None
    """None when it cannot be used: it was cut off or damaged."""
    problem: str | None = None
    """Why it cannot be used."""
    is_sealed: bool = False
    """Whether it is to the byte what Windrow wrote; entries of others and of the first versions carry no digest."""

    def of(self, kind: str) -> Iterator[dict[str, Any]]:
        """Yield the actions of one kind."""
        return (action[kind] for action in self.actions or () if isinstance(action.get(kind), dict))

    @property
    def origin(self) -> dict[str, Any] | None:
        """What Windrow wrote of the version that the entry shows; None in an entry of somebody else's."""
        return next((info["windrow"] for info in self.of("commitInfo") if isinstance(info.get("windrow"), dict)), None)

    @property
    def is_whole(self) -> bool:
        """Whether the entry says all that is visible, whatever came before it."""
        return self.origin is not None and any(self.of("protocol"))


@dataclass(slots=True)
class State:
    """What a reader of the log sees after some entries."""

    live: dict[str, dict[str, Any]] = field(default_factory=dict)
    """By path: the action that shows a file."""
    removed: dict[str, int | None] = field(default_factory=dict)
    """By path: when a file that was shown disappeared, in milliseconds."""
    sealed: set[str] = field(default_factory=set)
    """Paths that an intact entry of Windrow's shows."""
    protocol: dict[str, Any] | None = None
    metadata: dict[str, Any] | None = None
    is_described: bool = False
    """Whether an intact entry of Windrow's holds the metadata."""
    is_sealed: bool = True
    """Whether every entry is an intact one of Windrow's."""
    versions: dict[str, int] = field(default_factory=dict)
    """By application: the version that it says it wrote."""

    def take(self, entry: Entry) -> None:
        """Go one entry further."""
        self.is_sealed = self.is_sealed and entry.is_sealed
        self.versions.update({each["appId"]: each["version"] for each in entry.of("txn")})
        for removed in entry.of("remove"):
            self.live.pop(removed["path"], None)
            moment = removed.get("deletionTimestamp")
            self.removed[removed["path"]] = moment if isinstance(moment, int) else None
        for added in entry.of("add"):
            self.live[added["path"]] = added
            self.removed.pop(added["path"], None)
            (self.sealed.add if entry.is_sealed else self.sealed.discard)(added["path"])
        self.protocol = next(entry.of("protocol"), self.protocol)
        for described in entry.of("metaData"):
            self.metadata, self.is_described = described, entry.is_sealed


@dataclass(frozen=True, slots=True)
class Log:
    """The log in a table's folder."""

    store: Store
    table: str

    @property
    def folder(self) -> str:
        """Where the log is."""
        return f"{self.table}/_delta_log"

    def last_number(self, existing: int = -1) -> int | None:
        """Return the number of the newest entry, looking from one that exists; None without a log."""
        start = None if existing < 1 else self.key(existing - 1)
        number = max(self._numbers(start), default=None)
        if number is not None and number > MOST_VERSION:
            raise Damaged(f"{self.key(number)}: no log counts up to an entry of this number; remove the file")
        return number

    def numbers(self) -> list[int]:
        """Return the numbers of all entries, in order."""
        return sorted(self._numbers(None))

    def joined_numbers(self) -> list[int]:
        """Return the numbers of all entries but those that stand alone."""
        joined: list[int] = []
        for number in self.numbers():
            if number - (joined[-1] if joined else -1) > MOST_MISSING:
                break
            joined.append(number)
        return joined

    def entries(self) -> Iterator[Entry]:
        """Yield all entries, oldest first."""
        return map(self.entry, self.numbers())

    def entry(self, number: int) -> Entry:
        """Read an entry."""
        return _entry(number, self.store.get(self.key(number)))

    def append(self, number: int, actions: Iterable[Action]) -> bool:
        """Write an entry unless there is one of this number; say whether it was written."""
        try:
            self.store.put_if_absent(self.key(number), entry_of(number, actions))
        except AlreadyExists:
            return False
        return True

    def mend(self, number: int, actions: Iterable[Action]) -> None:
        """Write an entry over one that is damaged, in one step."""
        self.store.put(self.key(number), entry_of(number, actions))

    def key(self, number: int) -> str:
        """Return where an entry is."""
        return f"{self.folder}/{number:020d}.json"

    def find(self, name: str) -> bytes | None:
        """Return the bytes of another file of the log, or None."""
        try:
            return self.store.get(f"{self.folder}/{name}")
        except NotFound:
            return None

    def names(self) -> Iterator[str]:
        """Yield the names of all files of the log."""
        return (info.key.rpartition("/")[2] for info in self.store.list(self.folder))

    def _numbers(self, after: str | None) -> Iterator[int]:
        for info in self.store.list(self.folder, after=after):
            match = _ENTRY.fullmatch(info.key.rpartition("/")[2])
            if match:
                yield int(match[1])


def live_paths(entries: Iterable[Entry]) -> set[str]:
    """Return the files that a log shows after some entries."""
    state = State()
    for entry in entries:
        state.take(entry)
    return set(state.live)


def _entry(number: int, data: bytes) -> Entry:
    """Every line is a JSON object of the right shape, the last one ends, and the digest is that of the bytes."""
    if not data.endswith(b"\n"):
        return Entry(number, None, "it was cut off" if data else "it is empty")
    try:
        actions = [json.loads(line) for line in data.decode().split("\n") if line]
    except (ValueError, RecursionError) as error:
        return Entry(number, None, f"it cannot be read: {error}")
    problem = problem_of(actions)
    if problem is not None:
        return Entry(number, None, f"it is damaged: {problem}")
    origin = Entry(number, actions).origin or {}
    digest = origin.get("digest")
    if digest is not None and not (isinstance(digest, str) and is_intact(number, data, digest)):
        return Entry(number, None, "it is damaged: its digest is that of other bytes")
    return Entry(number, actions, is_sealed=digest is not None)
