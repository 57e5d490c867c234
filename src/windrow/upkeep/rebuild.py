"""A table whose metastore was lost, made again from its Delta mirror and its files.

The mirror says which files were visible and at which version; each file says the rest of itself. What the mirror does
not know is not brought back: a file that it does not show may have been retired, or never published.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import unquote

import pyarrow as pa

from windrow.context import Context
from windrow.errors import AlreadyExists, Damaged, NotFound
from windrow.identity.folders import is_dropped, table_folders
from windrow.metastore import CommitKind, CommitRecord, CommitState, LostTable, TableColumn, TableRecord
from windrow.mirror.actions import PREFIX, history_of
from windrow.mirror.audit import repair_mirror
from windrow.mirror.checkpoints import Checkpoints
from windrow.mirror.log import Entry, Log, State
from windrow.model.ids import check_name
from windrow.model.settings import TableSettings
from windrow.model.shown import ShownByField
from windrow.model.split import SidecarLocation, SplitMetadata
from windrow.model.stored_types import type_from_text
from windrow.storage import is_foreign
from windrow.upkeep.files import own_files
from windrow.upkeep.footers import footer_at

__all__ = ["RebuildLost", "RebuildTable", "Rebuilt", "lost_tables"]

_CANNOT_KNOW = (
    "versions before this one, pins, open commits, runs of compaction and splits in quarantine",
    "a name that the table was given after the last commit",
    "settings that were changed after the last commit",
    "commits whose entry in the Delta log was not written, or was lost with its end",
)


@dataclass(frozen=True, slots=True, repr=False)
class Rebuilt(ShownByField):
    """What was brought back, and what was not."""

    table: str
    version: int
    splits: int
    rows: int
    missing_files: tuple[str, ...]
    """Files that the mirror shows and that are not there any more, or are not what it says; their rows are lost."""
    missing_rows: int
    unknown_files: int
    """Files of commits that the mirror does not know; they are left as they are, and never read."""
    log_ends: str | None
    """Where the log could not be read on; None when it was read to its end."""
    lost_entries: tuple[str, ...] = ()
    """Entries of the log that were missing or damaged; they were written again, and no others."""
    cannot_know: tuple[str, ...] = _CANNOT_KNOW


@dataclass
class _History:
    """What the entries of a log say, one after the other."""

    table: str
    version: int = -1
    configuration: dict[str, str] = field(default_factory=dict)
    live: dict[str, tuple[dict[str, Any], int]] = field(default_factory=dict)
    """By path: the action that shows a file, and the version that added it."""
    commits: list[CommitRecord] = field(default_factory=list)
    checkpoints: dict[str, tuple[str, str, int]] = field(default_factory=dict)
    """By source: how far it was read, and the commit and the version that moved it there."""
    lost: dict[int, str] = field(default_factory=dict)
    """By number: entries that cannot be used, and why."""
    ends: str | None = None

    @classmethod
    def read(cls, log: Log) -> _History:
        """Read a log to its end.

        What follows a lost entry counts from the next place that says all that is visible: a checkpoint, or an entry
        of that kind. Without one, nothing that follows is used.
        """
        history, entries = cls(log.table), {number: log.entry(number) for number in log.joined_numbers()}
        history.lost = _lost_entries(entries)
        number = 0
        while number <= max(entries, default=-1):
            if number in history.lost:
                number, state = _next_base(log, entries, number)
                if number < 0:
                    first = min(each for each in history.lost if each >= -number - 1)
                    history.ends = f"{history.lost[first]}; what comes after is not used"
                    break
                history.begin(state)
            if number not in history.lost:
                history.take(entries[number])
            number += 1
        return history

    def begin(self, state: State | None) -> None:
        """Take what a checkpoint shows in the place of all before."""
        if state is None:
            return
        self.configuration = (state.metadata or {}).get("configuration") or self.configuration
        self.version = state.versions.get(f"{PREFIX}{self.configured('table_id')}", self.version)
        before, self.live = self.live, {}
        for path, added in state.live.items():
            self.live[path] = (added, before.get(path, (None, self.version))[1])

    def take(self, entry: Entry) -> None:
        """Go one entry further; entries of others say nothing of our versions, but what they add and remove counts."""
        origin, before = entry.origin, dict(self.live)
        if entry.is_whole:
            self._forget(entry)
        for described in entry.of("metaData"):
            self.configuration = described.get("configuration") or self.configuration
        if origin is not None:
            self.version = origin["version"]
            self._take_origin(entry, origin, before)
        for removed in entry.of("remove"):
            self.live.pop(removed["path"], None)
        for added in entry.of("add"):
            first = before.get(added["path"], (None, self.version))[1]
            self.live[added["path"]] = (added, min(first, self.version))

    def _forget(self, entry: Entry) -> None:
        """An entry that says all that is visible also ends every history that went on beyond its version."""
        version = (entry.origin or {})["version"]
        self.live = {}
        self.commits = [each for each in self.commits if (each.version or 0) <= version]
        self.checkpoints = {source: each for source, each in self.checkpoints.items() if each[2] <= version}

    def _take_origin(self, entry: Entry, origin: dict[str, Any], before: Collection[str]) -> None:
        if not origin["commit_id"]:
            return
        added = [action for action in entry.of("add") if action["path"] not in before]
        removed = [action for action in entry.of("remove") if action["path"] in before]
        self.commits.append(
            CommitRecord(
                commit_id=origin["commit_id"],
                table_id="",
                kind=CommitKind(origin["kind"]),
                state=CommitState.PUBLISHED,
                attempt=1,
                opened_at=origin["published_at"],
                lease_expires_at=origin["published_at"],
                published_at=origin["published_at"],
                version=origin["version"],
                added=len(added),
                removed=len(removed),
                rows_added=sum(_rows(action) for action in added),
            )
        )
        for source, position in origin["checkpoints"].items():
            self.checkpoints[source] = (position, origin["commit_id"], origin["version"])

    def configured(self, name: str) -> str:
        """Return what the log says of the table."""
        value = self.configuration.get(PREFIX + name)
        if value is None:
            raise Damaged(
                f"{self.table}/_delta_log: it does not say the table's {name}; this is no mirror of a Windrow table"
            )
        return value

    @property
    def record(self) -> TableRecord:
        """The table at the version where the log ends."""
        return TableRecord(
            table_id=self.configured("table_id"),
            name=self.configured("name"),
            folder=self.table,
            settings=TableSettings.from_json(self.configured("settings")),
            created_at=int(self.configured("created_at")),
            version=self.version,
            oldest_version=self.version,
            schema_epoch=int(self.configured("schema_epoch")),
        )

    @property
    def columns(self) -> tuple[TableColumn, ...]:
        """The columns of that version."""
        listed = json.loads(self.configured("columns"))
        return tuple(TableColumn(str(name), type_from_text(text), int(field_id)) for name, field_id, text in listed)


def _lost_entries(entries: Mapping[int, Entry]) -> dict[int, str]:
    """Return the numbers that are missing or cannot be used, and why."""
    lost = {}
    for number in range(max(entries, default=-1) + 1):
        entry = entries.get(number)
        if entry is None:
            lost[number] = f"entry {number} of the Delta log is missing"
        elif entry.actions is None:
            lost[number] = f"entry {number} of the Delta log cannot be used: {entry.problem}"
    return lost


def _next_base(log: Log, entries: Mapping[int, Entry], number: int) -> tuple[int, State | None]:
    """Return the next entry, from a lost one on, which says all that is visible.

    With it comes what a checkpoint shows there; None where the entry itself says it. Without any, the number is
    negative.
    """
    whole = min((each for each in entries if each > number and entries[each].is_whole), default=None)
    checkpoints = Checkpoints(log)
    for each in checkpoints.numbers():
        if each >= number and (whole is None or each < whole) and checkpoints.problem(each, None) is None:
            return each, checkpoints.read(each)
    return (-number - 1, None) if whole is None else (whole, None)


@dataclass(frozen=True, slots=True)
class RebuildTable:
    """Makes a table again that the metastore does not know, by its folder; AlreadyExists when it does.

    The table has the name that its log gives it, or that of its folder where another table has that name.
    """

    context: Context

    def plan(self, name: str) -> Rebuilt:
        """Say what would be brought back, and what cannot; nothing is written."""
        return self._examined(name)[-1]

    def run(self, name: str) -> Rebuilt:
        """Make the table again, and say what was brought back."""
        history, lost, rebuilt = self._examined(name)
        metastore = self.context.metastore
        metastore.restore_table(lost)
        # All that the log knows is in the metastore now: from here on, entries may be written again.
        if history.lost or rebuilt.missing_files:
            mirror = self.context.mirror
            table = metastore.table(rebuilt.table)
            mirror.mend(table, history.lost)
            repair_mirror(mirror, table)
        return rebuilt

    __call__ = run

    def _examined(self, name: str) -> tuple[_History, LostTable, Rebuilt]:
        context = self.context
        if name in context.metastore.folders():
            raise AlreadyExists(f"the metastore knows the table {name!r}; there is nothing to rebuild")
        log = Log(context.store, name)
        history = _History.read(log)
        if history.version < 0:
            raise _nothing_to_take(log, history)
        files = {path: _split(context, history, path, added) for path, (added, _) in sorted(history.live.items())}
        splits = [(split, history.live[path][1]) for path, split in files.items() if split is not None]
        if is_dropped(context.store, name):
            raise NotFound(f"the table in the folder {name} was dropped; it is not made again")
        lost = _named(context, _lost(history, splits))
        missing = tuple(path for path, split in files.items() if split is None)
        return (
            history,
            lost,
            Rebuilt(
                table=lost.record.name,
                version=history.version,
                splits=len(splits),
                rows=sum(split.row_count for split, _ in splits),
                missing_files=missing,
                missing_rows=sum(_rows(history.live[path][0]) for path in missing),
                unknown_files=sum(1 for _ in _unknown(context, name, history)),
                log_ends=history.ends,
                lost_entries=tuple(history.lost.values()),
            ),
        )


@dataclass(frozen=True, slots=True)
class RebuildLost:
    """Makes every table of the lake again that the metastore does not know."""

    context: Context

    def plan(self) -> list[Rebuilt]:
        """Say what would be brought back of each table; nothing is written."""
        return list(map(RebuildTable(self.context).plan, lost_tables(self.context)))

    def run(self) -> list[Rebuilt]:
        """Make the tables again, and say what was brought back of each."""
        return list(map(RebuildTable(self.context).run, lost_tables(self.context)))

    __call__ = run


def lost_tables(context: Context) -> list[str]:
    """Return the folders of tables that lie in the lake and are not in the metastore."""
    served = context.metastore.folders()
    return [folder for folder in table_folders(context.store) if folder not in served]


def _named(context: Context, lost: LostTable) -> LostTable:
    """Return the lost table by a name that is free: that of its log, that of its folder, or one made of its id."""
    record, taken = lost.record, {each.name.lower() for each in context.metastore.tables()}
    wanted = (record.name, record.folder, f"recovered_{record.table_id}".replace("-", "_"))
    name = next(each for each in wanted if check_name(each) is None and each.lower() not in taken)
    return replace(lost, record=replace(record, name=name))


def _nothing_to_take(log: Log, history: _History) -> NotFound | Damaged:
    if history.lost:
        return Damaged(f"{log.folder}: {history.ends}, and nothing comes before; restore a backup of the log")
    return NotFound(f"{log.folder}: there is no Delta log to rebuild the table {log.table!r} from; restore a backup")


def _lost(history: _History, splits: list[tuple[SplitMetadata, int]]) -> LostTable:
    try:
        return LostTable(
            record=history.record,
            columns=history.columns,
            attributes=tuple(map(str, json.loads(history.configured("attributes")))),
            commits=tuple(_one_each(history.commits)),
            splits=tuple(splits),
            checkpoints={source: each[:2] for source, each in history.checkpoints.items()},
            history=history_of(
                history.configuration.get(f"{PREFIX}epochs"), history.record.schema_epoch, history.columns
            ),
        )
    except (ValueError, TypeError, KeyError, LookupError, OSError, pa.ArrowException) as error:
        raise Damaged(
            f"{history.table}/_delta_log: what describes the table cannot be read: {error}; restore a backup of the log"
        ) from error


def _one_each(commits: list[CommitRecord]) -> Iterator[CommitRecord]:
    """A version that was stated again is stated by the same commit; the first statement has its counts."""
    seen: set[str] = set()
    for commit in commits:
        if commit.commit_id not in seen:
            seen.add(commit.commit_id)
            yield commit


def _split(context: Context, history: _History, path: str, added: dict[str, Any]) -> SplitMetadata | None:
    """Return a file as the split that it says it is; None when it is missing or is another one."""
    outside = json.loads((added.get("tags") or {}).get(PREFIX + "split", "null"))
    if outside is None:
        return None
    key = f"{history.table}/{unquote(path)}"
    try:
        if is_foreign(path):
            return SplitMetadata.from_dict(outside)
        info, footer = footer_at(context.store, key)
        pairs = {name: value for name, value in footer.key_value.items() if value is not None}
        # a digest that the log lacks is not computed anew: the file may be damaged since it was written
        split = SplitMetadata.from_key_value(
            pairs, key=key, size_bytes=info.size, etag=outside["etag"], digest=outside.get("digest")
        )
    except (NotFound, Damaged, KeyError, TypeError, ValueError):
        # A store that fails says nothing of the file, so that stops the rebuild.
        return None
    if info.size != added["size"] or split.split_id != outside["split_id"]:
        return None
    if split.scope.index_uid != history.configured("table_id"):
        return None
    place = outside["sidecar"]
    return replace(split, sidecar=None if place is None else SidecarLocation(*place))


def _unknown(context: Context, name: str, history: _History) -> Iterator[str]:
    ids = {commit.commit_id for commit in history.commits}
    for split_id, info in own_files(context.store, name):
        parts = split_id.split("-")
        if ids.isdisjoint("-".join(parts[:count]) for count in range(1, len(parts))):
            yield info.key


def _rows(added: dict[str, Any]) -> int:
    return int(json.loads(added.get("stats") or "{}").get("numRecords", 0))
