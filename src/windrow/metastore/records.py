"""What the metastore hands out: frozen values, and their way to and from database rows."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from typing import Any, NamedTuple

import pyarrow as pa

from windrow.bounded import memo
from windrow.metastore.stored import UNREADABLE, damaged, stored
from windrow.model.epochs import SchemaHistory
from windrow.model.predicate import Predicate
from windrow.model.scope import CompactionScope
from windrow.model.settings import TableSettings
from windrow.model.split import SidecarLocation, SplitMetadata
from windrow.model.window import Window
from windrow.model.zones import StoredZones

__all__ = [
    "MOST_ATTRIBUTES",
    "Candidate",
    "Changes",
    "Checkpoint",
    "CommitKind",
    "CommitRecord",
    "CommitState",
    "GroupSummary",
    "LakeRecord",
    "LostTable",
    "Orphans",
    "Pin",
    "Published",
    "Quarantined",
    "Retired",
    "RunRecord",
    "RunState",
    "SplitQuery",
    "StoredStatistics",
    "TableColumn",
    "TableRecord",
    "WindowKind",
    "WindowSummary",
]


MOST_ATTRIBUTES = 256
"""So many attributes of a residual column are read under their names; further ones only in that column."""


class CommitKind(StrEnum):
    """Why a version was made."""

    INGEST = "ingest"
    REGISTER = "register"
    COMPACT = "compact"
    EXPIRE = "expire"
    UNREGISTER = "unregister"
    RETYPE = "retype"


class CommitState(StrEnum):
    """Where a commit stands. An open one whose lease ran out can no longer be published."""

    OPEN = "open"
    PUBLISHED = "published"
    ABORTED = "aborted"


class WindowKind(IntEnum):
    """How splits are grouped on the window axis; the order is the order of listings."""

    NONE = 0
    OVERFLOW = 1
    TIMED = 2
    COLD = 3
    """Longer ones apart, so that who asks for a range of time need not look a week back among the others."""

    @classmethod
    def of(cls, window: Window | None) -> WindowKind:
        """Return the kind of a split's window."""
        if window is None:
            return cls.NONE
        if window.overflow:
            return cls.OVERFLOW
        return cls.COLD if window.is_cold else cls.TIMED


@dataclass(frozen=True, slots=True)
class TableRecord:
    """A table as the metastore knows it."""

    table_id: str
    name: str
    settings: TableSettings
    created_at: int
    version: int
    oldest_version: int
    """The oldest version that can still be read."""
    schema_epoch: int
    folder: str = ""
    """Where its files are in the lake; that of its first name, unless another table has had it."""

    def __post_init__(self) -> None:
        if not self.folder:
            object.__setattr__(self, "folder", self.name)


@dataclass(frozen=True, slots=True)
class DroppedTable:
    """A table that was dropped, and whose files are not collected yet."""

    table_id: str
    name: str
    """The name that it had."""
    folder: str
    dropped_at: int
    held_by: tuple[str, ...] = ()
    """What keeps its files for now."""


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column of a table."""

    name: str
    type: pa.DataType
    field_id: int


@dataclass(frozen=True, slots=True)
class CommitRecord:
    """A commit, open or ended."""

    commit_id: str
    table_id: str
    kind: CommitKind
    state: CommitState
    attempt: int
    """Raised each time the commit is opened again; only the newest attempt may publish."""
    opened_at: int
    lease_expires_at: int
    published_at: int | None = None
    version: int | None = None
    added: int = 0
    removed: int = 0
    rows_added: int = 0
    rows_removed: int = 0
    summary: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Published:
    """The result of a publish; the same commit id always gives the same one."""

    commit_id: str
    version: int
    added: int
    removed: int
    rows_added: int
    rows_removed: int


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """How far a source has been read: publishing moves it from `previous` to `position`, or fails."""

    source_id: str
    position: str
    previous: str | None = None


@dataclass(frozen=True, slots=True)
class Pin:
    """A reader's hold on a version: what it needs is not collected before `expires_at`."""

    pin_id: str
    table_id: str
    version: int
    owner: str
    expires_at: int


@dataclass(frozen=True, slots=True)
class SplitQuery:
    """Which splits of a version are wanted; parts that are None do not narrow.

    A time range is half-open, in microseconds. It leaves the overflow window out: rows without a timestamp match no
    range. Zone maps narrow by `predicate`; a split is left out only when no row of it can match.
    """

    time_range: tuple[int, int] | None = None
    window: Window | None = None
    scope: CompactionScope | None = None
    predicate: Predicate | None = None


@dataclass(frozen=True, slots=True)
class WindowSummary:
    """The splits of one window of one duration, counted."""

    window: Window | None
    splits: int
    rows: int
    size_bytes: int
    generation: int
    """The largest generation in it."""


@dataclass(frozen=True, slots=True)
class GroupSummary:
    """The visible splits of one scope in one window, counted: what may be merged with each other."""

    scope: CompactionScope
    window: Window | None
    splits: int
    rows: int
    size_bytes: int


class Candidate(NamedTuple):
    """A visible split, as far as merging asks for it."""

    split_id: str
    key: str
    size_bytes: int
    row_count: int
    generation: int
    created_at: int
    etag: str | None = None
    sidecar_key: str | None = None
    sidecar_offset: int = 0
    sidecar_length: int = 0
    digest: str | None = None

    @property
    def sidecar(self) -> SidecarLocation | None:
        """Where its sidecar lies."""
        if self.sidecar_key is None:
            return None
        return SidecarLocation(self.sidecar_key, self.sidecar_offset, self.sidecar_length)


@dataclass(frozen=True, slots=True)
class StoredStatistics:
    """What is known of a column of a split, as bytes."""

    split_id: str
    column: str
    revision: int
    """How often it was stored; it is replaced only by who names the revision that is there, 0 for none."""
    data: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Quarantined:
    """A split that cannot be merged."""

    split_id: str
    reason: str
    since: int


class RunState(StrEnum):
    """Where a run of compaction stands; one whose process died stays `running`."""

    RUNNING = "running"
    DONE = "done"
    CANCELLED = "cancelled"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class RunRecord:
    """A run of compaction, counted."""

    run_id: str
    state: RunState
    started_at: int
    ended_at: int | None = None
    planned: int = 0
    done: int = 0
    skipped: int = 0
    """Merges that were discarded, since another commit had taken an input, or that were not begun."""
    failed: int = 0
    splits_in: int = 0
    splits_out: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    bytes_new: int = 0
    """Bytes of the inputs that had never been merged before."""
    problems: tuple[str, ...] = ()
    """Why merges were skipped or failed, the first of them."""

    @property
    def write_amplification(self) -> float | None:
        """Bytes written for every byte that was merged for the first time; None when there was none."""
        return self.bytes_out / self.bytes_new if self.bytes_new else None


@dataclass(frozen=True, slots=True)
class LostTable:
    """A table that the metastore does not know any more, as others remember it."""

    record: TableRecord
    columns: Sequence[TableColumn]
    attributes: Sequence[str]
    commits: Sequence[CommitRecord]
    splits: Sequence[tuple[SplitMetadata, int]]
    """What is visible, each with the version that added it."""
    checkpoints: Mapping[str, tuple[str, str]]
    """By source: how far it was read, and the commit that moved it there."""
    history: SchemaHistory = field(default_factory=SchemaHistory)


@dataclass(frozen=True, slots=True)
class LakeRecord:
    """A lake that the database serves."""

    lake_key: int
    lake_id: str
    address: str
    """Where its files are; a dot where the database lies among them."""
    created_at: int
    tables: int

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {"lake_id": self.lake_id, "address": self.address, "tables": self.tables}


@dataclass(frozen=True, slots=True)
class Retired:
    """Splits that no readable version shows, counted."""

    splits: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Orphans:
    """What the metastore says of names of splits that it has no row for."""

    dead: frozenset[str]
    """Written by commits that have ended without them."""
    unknown: frozenset[str]
    """Written by commits that the metastore does not know."""


@dataclass(frozen=True, slots=True)
class Changes:
    """What came and went between two versions."""

    version: int
    commit_id: str
    kind: CommitKind
    published_at: int
    added: tuple[SplitMetadata, ...]
    removed: tuple[SplitMetadata, ...]


def split_row(split: SplitMetadata, table_key: int, scope_key: int, version: int) -> tuple[Any, ...]:
    """Return a split as a row, in the order of the columns of `schema.splits`."""
    window, sidecar = split.window, split.sidecar
    return (
        split.split_id,
        table_key,
        scope_key,
        int(WindowKind.of(window)),
        0 if window is None else window.start,
        version,
        None,
        split.key,
        split.size_bytes,
        split.etag,
        *((None, None, None) if sidecar is None else (sidecar.key, sidecar.offset, sidecar.length)),
        split.row_count,
        split.generation,
        split.created_at,
        split.time_min,
        split.time_max,
        split.commit_id,
        StoredZones.text_of(split.zones),
        json.dumps(split.replaces) if split.replaces else None,
        None,
        split.digest,
    )


def split_of(row: Sequence[Any], scope: CompactionScope) -> SplitMetadata:
    """Return the split of a row of `schema.splits`, given in the order of its columns."""
    try:
        return _split(row, scope)
    except UNREADABLE as error:
        raise damaged("windrow_splits", row[0], "window", error) from error


def _split(row: Sequence[Any], scope: CompactionScope) -> SplitMetadata:
    split_id, _, _, kind, start, _, _, key, size_bytes, etag, sidecar, offset, length, *rest = row
    row_count, generation, created_at, time_min, time_max, commit_id, zones, replaces, _, digest = rest
    return SplitMetadata(
        split_id=split_id,
        scope=scope,
        window=window_of(kind, start, scope.window_duration),
        key=key,
        size_bytes=size_bytes,
        row_count=row_count,
        created_at=created_at,
        commit_id=commit_id,
        etag=etag,
        time_min=time_min,
        time_max=time_max,
        zones=StoredZones(zones, owner=split_id),
        sidecar=None if sidecar is None else SidecarLocation(sidecar, offset, length),
        generation=generation,
        replaces=() if replaces is None else stored("windrow_splits", split_id, "replaces", _texts, replaces),
        digest=digest,
    )


def _texts(text: str) -> tuple[str, ...]:
    return tuple(map(str, json.loads(text)))


@memo("windows", 1024)
def window_of(kind: int, start: int, duration: int) -> Window | None:
    """Return the window of a row."""
    if kind == WindowKind.NONE:
        return None
    return Window(start, duration, kind == WindowKind.OVERFLOW)


def table_checksum(settings: str, oldest_version: int, schema_epoch: int) -> str:
    """Return a checksum of what a table's row says and nothing else does."""
    return hashlib.sha256(f"{oldest_version} {schema_epoch} {settings}".encode()).hexdigest()[:16]


def check_table_row(row: Any) -> None:
    """Raise Damaged when a table's row is not what was written; rows of older versions have no checksum."""
    if row.checksum is not None and row.checksum != table_checksum(row.settings, row.oldest_version, row.schema_epoch):
        raise damaged("windrow_tables", row.name, "settings", "the checksum is that of another row")


@memo("table settings", 256)
def _settings(text: str) -> TableSettings:
    return TableSettings.from_json(text)


def table_of(row: Any) -> TableRecord:
    """Return the record of a row of `schema.tables`."""
    return TableRecord(
        table_id=row.table_id,
        name=row.name,
        settings=stored("windrow_tables", row.name, "settings", _settings, row.settings),
        created_at=row.created_at,
        version=row.version,
        oldest_version=row.oldest_version,
        schema_epoch=row.schema_epoch,
        folder=folder_of(row),
    )


def folder_of(row: Any) -> str:
    """Return the folder of a row of `schema.tables`: rows of older versions have that of their name."""
    return str(row.folder or row.name)


def dropped_of(row: Any, held_by: tuple[str, ...] = ()) -> DroppedTable:
    """Return the record of a row of `schema.tables` whose table was dropped."""
    return DroppedTable(row.table_id, row.dropped_name, folder_of(row), row.dropped_at, held_by)


def commit_of(row: Any, table_id: str) -> CommitRecord:
    """Return the record of a row of `schema.commits`."""
    return CommitRecord(
        commit_id=row.commit_id,
        table_id=table_id,
        kind=stored("windrow_commits", row.commit_id, "kind", CommitKind, row.kind),
        state=stored("windrow_commits", row.commit_id, "state", CommitState, row.state),
        attempt=row.attempt,
        opened_at=row.opened_at,
        lease_expires_at=row.lease_expires_at,
        published_at=row.published_at,
        version=row.version,
        added=row.added,
        removed=row.removed,
        rows_added=row.rows_added,
        rows_removed=row.rows_removed,
        summary=stored("windrow_commits", row.commit_id, "summary", _object, row.summary),
    )


def _object(text: str) -> dict[str, Any]:
    return dict(json.loads(text))
