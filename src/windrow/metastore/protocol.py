"""The contract of a metastore. `windrow.testing.MetastoreTests` proves that an implementation keeps it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Protocol

import pyarrow as pa

from windrow.metastore.records import (
    Candidate,
    Changes,
    Checkpoint,
    CommitKind,
    CommitRecord,
    DroppedTable,
    GroupSummary,
    LostTable,
    Orphans,
    Pin,
    Published,
    Quarantined,
    Retired,
    RunRecord,
    SplitQuery,
    StoredStatistics,
    TableColumn,
    TableRecord,
    WindowSummary,
)
from windrow.model.epochs import OldValues, SchemaHistory
from windrow.model.scope import CompactionScope
from windrow.model.settings import TableSettings
from windrow.model.split import SidecarLocation, SplitMetadata
from windrow.model.window import Window

__all__ = ["Metastore"]


class Metastore(Protocol):
    """The only authority on which splits are visible at which version of a table."""

    def create_table(
        self, name: str, settings: TableSettings, *, table_id: str, folder: str | None = None
    ) -> TableRecord:
        """Create an empty table at version 0, or raise AlreadyExists.

        Its folder is called like the table, unless another table has or had that folder; `folder` says otherwise.
        """

    def rename_table(self, table_id: str, name: str) -> TableRecord:
        """Give a table another name in one transaction; its folder stays. The same again changes nothing."""

    def drop_table(self, table_id: str) -> DroppedTable:
        """Take a table out of the lake in one transaction, and abort its open commits; its rows and files stay."""

    def dropped_tables(self, *, grace: float = 0) -> list[DroppedTable]:
        """Return the dropped tables that are not forgotten, oldest first, with what keeps their files for now."""

    def forget_table(self, table_id: str) -> bool:
        """Remove all rows of a dropped table whose files are gone, and return whether there were any."""

    def folders(self) -> frozenset[str]:
        """Return the folders of all tables, those of dropped ones too until they are forgotten."""

    def table(self, name: str) -> TableRecord:
        """Return a table by name, or raise NotFound with the nearest name."""

    def tables(self) -> list[TableRecord]:
        """Return all tables, by name."""

    def mark(self) -> int | None:
        """Return a number that differs once anything changed; None where only a look at the rows can tell."""

    def change_settings(self, table_id: str, settings: TableSettings) -> TableRecord:
        """Replace the settings of a table; splits that exist keep what they were written with."""

    def reserve_columns(self, table_id: str, schema: pa.Schema) -> dict[str, TableColumn]:
        """Give every column of a batch its field id and its type in the table, before files are written."""

    def columns(self, table_id: str, version: int | None = None) -> tuple[TableColumn, ...]:
        """Return the columns that published splits hold at a version (the newest by default), by field id."""

    def history(self, table_id: str, version: int | None = None) -> SchemaHistory:
        """Return the schema epochs of a table up to a version (the newest by default)."""

    def visible_epochs(self, table_id: str, version: int) -> frozenset[int]:
        """Return the schema epochs of the splits that are visible at a version."""

    def change_type(
        self,
        commit_id: str,
        *,
        attempt: int = 1,
        column: str,
        kind: pa.DataType,
        rule: OldValues,
        epoch: int,
        version: int | None = None,
        summary: Mapping[str, Any] | None = None,
    ) -> Published:
        """Give a column another type: `epoch`, the next, begins, unless `version` is not the newest any more."""

    def attributes(self, table_id: str, version: int | None = None) -> tuple[str, ...]:
        """Return the attributes that rows keep in the residual column at a version (the newest by default), by name."""

    def open_commit(
        self,
        table_id: str,
        kind: CommitKind,
        *,
        commit_id: str,
        lease: float,
        summary: Mapping[str, Any] | None = None,
    ) -> CommitRecord:
        """Open a commit, or take it over from an earlier attempt; a published one is returned as it is.

        The `summary` of the first opening stays: later attempts read it in the record, and publishing adds to
        it.
        """

    def heartbeat(self, commit_id: str, *, attempt: int = 1, lease: float) -> CommitRecord:
        """Prolong the lease of an open commit; LeaseExpired when it ran out already."""

    def abort(self, commit_id: str, *, attempt: int | None = None) -> None:
        """Give a commit up, or one attempt of it; a published one cannot be given up."""

    def commit(self, commit_id: str) -> CommitRecord:
        """Read a commit back by its id."""

    def commits(self, table_id: str, *, limit: int | None = None) -> Iterator[CommitRecord]:
        """Yield the commits of a table, newest first."""

    def checkpoint(self, table_id: str, source_id: str) -> str | None:
        """Return how far a source has been published into a table."""

    def checkpoints(self, table_id: str, version: int) -> dict[str, str]:
        """Return how far sources had been published at a version, as far as they did not go on since."""

    def publish(
        self,
        commit_id: str,
        *,
        attempt: int = 1,
        add: Sequence[SplitMetadata] = (),
        replace: Collection[str] = (),
        checkpoint: Checkpoint | None = None,
        columns: Collection[str] = (),
        attributes: Collection[str] = (),
        summary: Mapping[str, Any] | None = None,
    ) -> Published:
        """Make a commit visible as one new version, or nothing; the same id again returns the first result."""

    def version_at(self, table_id: str, timestamp: int) -> int:
        """Return the version that was the newest at a moment (microseconds)."""

    def splits(
        self, table_id: str, at: int | Pin, query: SplitQuery = ..., *, page_size: int = ...
    ) -> Iterator[list[SplitMetadata]]:
        """Yield the splits that are visible at a version or under a pin, in pages, ordered by window and id."""

    def recorded_splits(self, table_id: str, split_ids: Collection[str]) -> set[str]:
        """Return those of the ids that the table has or had: what no version needs any more counts until collected."""

    def windows(self, table_id: str, at: int | Pin) -> list[WindowSummary]:
        """Return the windows that hold splits at a version, with counts, in order of time."""

    def changes(self, table_id: str, after: int, upto: int | None = None) -> Iterator[Changes]:
        """Yield what each version after `after` added and removed, oldest first."""

    def pin(self, table_id: str, version: int, *, pin_id: str, owner: str, seconds: float) -> Pin:
        """Hold a version for some seconds; SnapshotExpired when it cannot be read any more."""

    def renew(self, pin: Pin, *, seconds: float) -> Pin:
        """Hold on for some seconds from now; SnapshotExpired when the pin ran out already."""

    def release(self, pin: Pin) -> None:
        """Let go of a version; letting go twice is fine."""

    def pins(self, table_id: str) -> list[Pin]:
        """Return the pins of a table that have not run out, oldest version first."""

    def groups(self, table_id: str) -> Iterator[GroupSummary]:
        """Yield the groups of visible splits that share scope and window, by the start of the window."""

    def candidates(
        self, table_id: str, window: Window, *, scope: CompactionScope | None = None, page_size: int = ...
    ) -> Iterator[tuple[CompactionScope, list[Candidate]]]:
        """Yield the visible splits of the windows that start where this one does, in pieces of one scope each.

        Cold windows are apart from others. With a scope, only its splits are yielded.
        """

    def add_queries(self, table_id: str, queries: Mapping[int, int]) -> None:
        """Count queries of the windows that start at these seconds."""

    def heat(self, table_id: str) -> dict[int, float]:
        """Return how often queries read windows of late, by the second at which they start."""

    def statistics(
        self, table_id: str, split_ids: Collection[str], columns: Collection[str] | None = None
    ) -> list[StoredStatistics]:
        """Return what is stored of some splits, of these columns or of all, by split and column."""

    def store_statistics(self, table_id: str, entries: Sequence[StoredStatistics]) -> list[StoredStatistics]:
        """Store statistics over those of the same revision (0 for none), and return those that others changed since.

        What belongs to no split of the table is passed over.
        """

    def quarantine(self, table_id: str, reasons: Mapping[str, str]) -> None:
        """Leave splits out of merging; the first reason of a split stays."""

    def quarantined(self, table_id: str) -> list[Quarantined]:
        """Return the splits that merging leaves out, by id."""

    def pardon(self, table_id: str, split_ids: Collection[str]) -> int:
        """Let splits be merged again, and return how many of them were left out."""

    def record_run(self, table_id: str, run: RunRecord) -> None:
        """Write a run of compaction down, or what became of it since."""

    def runs(self, table_id: str, *, limit: int | None = None) -> list[RunRecord]:
        """Return the runs of compaction on a table, newest first."""

    def expired_commits(self, table_id: str) -> list[CommitRecord]:
        """Return the commits that are open although their lease ran out, oldest first."""

    def end_expired(self, table_id: str) -> list[str]:
        """Abort the commits whose lease ran out, and return their ids: from then on they cannot be published."""

    def horizon(self, table_id: str, *, grace: float, upto: int | None = None) -> int:
        """Return the oldest version that must stay readable: for readers of the last `grace` seconds and for pins."""

    def drop_versions(self, table_id: str, *, grace: float, upto: int | None = None) -> int:
        """Drop the versions before the horizon, and return the oldest that stays."""

    def retired(self, table_id: str, version: int) -> Retired:
        """Count the splits that no version from this one on shows."""

    def claim(self, table_id: str, *, limit: int) -> list[SplitMetadata]:
        """Mark some splits that no readable version shows as deleting; return them, and those marked before."""

    def forget(self, table_id: str, split_ids: Collection[str]) -> int:
        """Remove the rows of splits that are marked as deleting, and return how many there were."""

    def orphans(self, table_id: str, split_ids: Collection[str], *, ended: Collection[str] = ()) -> Orphans:
        """Judge names of splits that lie in the store; no call that follows can make a dead one visible."""

    def restore_table(self, lost: LostTable) -> TableRecord:
        """Make a table again as it was at one version; older versions are gone. AlreadyExists when it is there."""

    def place_sidecars(self, table_id: str, places: Mapping[str, SidecarLocation]) -> None:
        """Say where sidecars are that were made again."""

    def integrity(self) -> list[str]:
        """Return what is wrong with the database as such."""

    def problems(self, table_id: str) -> list[str]:
        """Return where rows of a table contradict each other."""

    def close(self) -> None:
        """Give all connections back."""
