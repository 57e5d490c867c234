"""Brings the mirror of a table up to its newest version: an entry of the Delta log for each version of the table.

The metastore stays the only authority. A mirror that is behind catches up version by version; one that is too far
behind, or that somebody else has written to, is set right by one entry that says what is visible now.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

import pyarrow as pa

from windrow.metastore import CommitKind, Metastore, TableRecord
from windrow.mirror import actions
from windrow.mirror.actions import Action, Described, Origin
from windrow.mirror.checkpoints import Checkpoints
from windrow.mirror.compare import differences
from windrow.mirror.log import Entry, Log, State, live_paths
from windrow.mirror.schema import partitions_of
from windrow.storage import Store

__all__ = ["CHECKPOINT_EVERY", "Mirror"]

_log = logging.getLogger(__name__)

CHECKPOINT_EVERY = 100
"""After so many entries, readers get one file in the place of all before."""


@dataclass(frozen=True, slots=True)
class _Head:
    """Where the log ends, and what it shows there."""

    number: int = -1
    """The last entry that can be read."""
    version: int | None = None
    """The version of the table; None when the entry is somebody else's, or there is no log."""
    description: str | None = None
    partitions: Sequence[str] = ()
    is_mixed: bool = False
    """Whether other readers are refused, since splits of earlier schema epochs are visible."""
    torn: bool = False
    """Whether an entry follows that was cut off."""


@dataclass(frozen=True)
class Mirror:
    """The mirrors of a lake's tables. It remembers where their logs end, so that following costs little."""

    metastore: Metastore
    store: Store
    _heads: dict[str, _Head] = field(default_factory=dict)

    def follow(self, table: TableRecord) -> int:
        """Write what the mirror lacks up to the newest version, and return the version that it shows then."""
        log = Log(self.store, table.folder)
        head = self._head(log)
        while head.version is None or head.version < table.version:
            next_head, entry = self._next(table, log, head)
            if head.torn:
                log.mend(next_head.number, entry)
            elif not log.append(next_head.number, entry):
                # Somebody was faster, or this was written although the answer was lost: the log knows.
                head = self._head(log)
                continue
            head = self._heads[log.table] = next_head
            if head.number % CHECKPOINT_EVERY == 0 and head.number:
                self._checkpoint(log, head.number)
        return head.version

    def mend(self, table: TableRecord, wrong: Collection[int]) -> None:
        """Write entries again that are damaged or missing, and let the log end with what is visible.

        No other entry is touched. What ends the log is written first: until the last damaged entry is replaced, readers
        fail as they did before, and then they see the newest version.
        """
        log = Log(self.store, table.folder)
        numbers = set(log.joined_numbers())
        entries = {number: log.entry(number) for number in numbers.difference(wrong)}
        last = max(numbers.union(wrong), default=-1)
        head, state, mended = _Head(), State(), {}
        for number in range(last + 1):
            entry = entries.get(number)
            if entry is None or entry.actions is None:
                version = self._version_of(table, number, head, entries)
                shown, listed = self._entry(table, head, number, version, lambda: set(state.live))
                mended[number] = listed
                entry = Entry(number, listed)
                head = shown
            else:
                head = _head_of(entry)
            state.take(entry)
        if head.version != table.version or not self._shows(table, state):
            described = self.described(table, table.version)
            log.append(last + 1, self._whole(described, table.version, set(state.live)))
        for number, listed in mended.items():
            log.mend(number, listed)
        self._heads.pop(log.table, None)

    def _shows(self, table: TableRecord, state: State) -> bool:
        """Whether readers see the files and the description of the newest version, all of it in entries of ours."""
        described = self.described(table, table.version)
        visible = chain.from_iterable(self.metastore.splits(table.table_id, table.version))
        return not any(differences(state, visible, described))

    def _version_of(self, table: TableRecord, number: int, head: _Head, entries: Mapping[int, Entry]) -> int:
        """Return the version that an entry showed which is lost: the one before that of the next entry."""
        following = min((each for each in entries if each > number and entries[each].origin is not None), default=None)
        if following is not None and not entries[following].is_whole:
            version = (entries[following].origin or {})["version"] - (following - number)
        else:
            version = number if head.version is None else head.version + 1
        return int(min(max(version, table.oldest_version), table.version))

    def version(self, table: TableRecord) -> int | None:
        """Return the version that the mirror shows; None when there is no mirror, or its end is not ours."""
        return self._head(Log(self.store, table.folder)).version

    def _head(self, log: Log) -> _Head:
        last = self._heads.get(log.table, _Head())
        number = log.last_number(last.number)
        if number is None:
            return _Head()
        if number == last.number:
            return last
        head = _head_at(log, number)
        if head is None:
            before = _head_at(log, number - 1) or _Head(number - 1)
            return replace(before, torn=True)
        self._heads[log.table] = head
        return head

    def _next(self, table: TableRecord, log: Log, head: _Head) -> tuple[_Head, list[Action]]:
        """Return the entry that comes next, and what the log shows with it."""
        number = head.number + 1
        if head.version is not None and head.version >= table.oldest_version:
            version = head.version + 1
        else:
            version = 0 if number == 0 and not table.oldest_version else table.version
        return self._entry(table, head, number, version, lambda: live_paths(log.entries()))

    def _entry(
        self, table: TableRecord, head: _Head, number: int, version: int, live: Callable[[], set[str]]
    ) -> tuple[_Head, list[Action]]:
        """Return an entry that shows a version after what the log shows before it, and what it shows then."""
        described = self.described(table, version)
        shown = _Head(number, version, described.digest, partitions_of(described.columns), described.is_mixed)
        is_next = head.version == version - 1 and version > table.oldest_version
        if is_next and (shown.partitions, shown.is_mixed) == (head.partitions, head.is_mixed):
            return shown, self._step(described, version, described_before=head.description)
        return shown, self._whole(described, version, live())

    def _step(self, described: Described, version: int, described_before: str | None) -> list[Action]:
        """One version after the other: what it added and what it removed."""
        (change,) = self.metastore.changes(described.table.table_id, version - 1, version)
        origin = Origin(change.version, change.commit_id, change.kind, change.published_at)
        new = [] if described.digest == described_before else [actions.metadata(described)]
        removed = [
            actions.remove(actions.path_of(described.table.folder, split.key), origin) for split in change.removed
        ]
        added = [actions.add(split, described, origin) for split in change.added]
        return [*self._described(described, origin), *new, *removed, *added]

    def _whole(self, described: Described, version: int, live: set[str]) -> list[Action]:
        """All that is visible, whatever the log said before."""
        table = described.table
        origin = self._origin(table, version)
        visible = list(chain.from_iterable(self.metastore.splits(table.table_id, version)))
        stale = live - {actions.path_of(table.folder, split.key) for split in visible}
        removed = [actions.remove(path, origin) for path in sorted(stale)]
        added = [actions.add(split, described, origin) for split in visible]
        new = [actions.protocol(described), actions.metadata(described)]
        return [*self._described(described, origin), *new, *removed, *added]

    def _described(self, described: Described, origin: Origin) -> list[Action]:
        checkpoints = self.metastore.checkpoints(described.table.table_id, origin.version)
        return [actions.commit_info(described, origin, checkpoints), actions.transaction(described, origin)]

    def _origin(self, table: TableRecord, version: int) -> Origin:
        """Return who made a version; the first one was made with the table."""
        for commit in self.metastore.commits(table.table_id):
            if commit.version == version and commit.published_at is not None:
                return Origin(version, commit.commit_id, commit.kind, commit.published_at)
        return Origin(version, "", CommitKind.INGEST, table.created_at)

    def described(self, table: TableRecord, version: int) -> Described:
        """Return a version of a table as an entry of that version describes it."""
        columns = self.metastore.columns(table.table_id, max(version, 1))
        attributes = self.metastore.attributes(table.table_id, version)
        if not table.schema_epoch:
            return Described(table, columns, attributes)
        history = self.metastore.history(table.table_id, version)
        seen = self.metastore.visible_epochs(table.table_id, version) if history.epoch else frozenset()
        is_mixed = any(epoch < history.epoch for epoch in seen)
        return Described(replace(table, schema_epoch=history.epoch), columns, attributes, history, is_mixed)

    def _checkpoint(self, log: Log, number: int) -> None:
        """Let readers begin from one file. A log without it is as true, only slower to read."""
        try:
            Checkpoints(log).extend(number)
        except (OSError, pa.ArrowException) as error:
            _log.warning("%s: no checkpoint %d was made, readers take longer: %s", log.folder, number, error)


def _head_at(log: Log, number: int) -> _Head | None:
    """Return what the log shows with an entry; None when it cannot be read."""
    if number < 0:
        return None
    entry = log.entry(number)
    return None if entry.actions is None else _head_of(entry)


def _head_of(entry: Entry) -> _Head:
    origin = entry.origin or {}
    return _Head(
        entry.number,
        origin.get("version"),
        origin.get("description"),
        origin.get("partitions", ()),
        bool(origin.get("mixed")),
    )
