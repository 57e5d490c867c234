"""Registers existing Parquet files: they join a table as they are, without a window and unsorted.

A registered file is read like every split, is never merged, and ages out by the time of its registration. It stays
where it is and is never written to or deleted; its sidecar lies in the table's own folder.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, takewhile
from typing import Any

import pyarrow as pa

from windrow.context import Context
from windrow.errors import AlreadyExists, Conflict, InvalidInput, NotFound
from windrow.ingest.coerce import joined_types
from windrow.ingest.files import FileFormat, find_files
from windrow.ingest.foreign import ForeignFile, look_at
from windrow.ingest.steps import check_rows
from windrow.ingest.task_reports import parse_reports, text_of
from windrow.metastore import Checkpoint, CommitKind, Published, TableRecord
from windrow.model.scope import DEFAULT_SOURCE, CompactionScope
from windrow.model.shown import ShownByField
from windrow.model.split import SidecarLocation, SplitMetadata, sidecar_key
from windrow.model.widening import stored, widened
from windrow.runners.leases import given_up_on_error, held
from windrow.runners.local import run_locally
from windrow.storage import is_foreign, reach_foreign, url_of

__all__ = ["Register", "RegisterPlan", "RegisterResult"]

_CHECKPOINT = "windrow:register"
"""Moves with every registration, so that two at once cannot both add a file."""

OnFile = Callable[[SplitMetadata], None] | None


@dataclass(frozen=True, slots=True, repr=False)
class RegisterPlan(ShownByField):
    """Which files would join a table."""

    table: str
    files: tuple[str, ...]
    rows: int
    size_bytes: int
    new_columns: tuple[str, ...]
    already_registered: int
    """Files that are in the table, unchanged; they are passed by."""
    empty: int
    """Files without a row; they are passed by."""


@dataclass(frozen=True, slots=True, repr=False)
class RegisterResult(ShownByField):
    """Which files joined a table, or left it."""

    table: str
    commit_id: str | None
    """None when there was nothing to do."""
    version: int
    files: int
    rows: int
    size_bytes: int
    already_registered: int = 0
    empty: int = 0


@dataclass(frozen=True, slots=True)
class _Examined:
    """The files that paths name, looked at."""

    files: tuple[ForeignFile, ...]
    types: Mapping[str, pa.DataType]
    already: int
    empty: int


@dataclass(frozen=True, slots=True)
class Register:
    """A run that registers files with a table, or takes them out again."""

    context: Context
    table: TableRecord
    commit_id: str
    created_at: int
    source_id: str = DEFAULT_SOURCE
    lease: float = 120.0

    @classmethod
    def of(cls, context: Context, name: str, source_id: str = DEFAULT_SOURCE) -> Register:
        """Return a run on a table, with a commit of its own."""
        return cls(context, context.metastore.table(name), context.new_id(), context.now(), source_id)

    def plan(self, paths: Sequence[str]) -> RegisterPlan:
        """Say which files would join the table, or refuse them as `run` would; nothing is written."""
        examined = self._find(paths)
        types = self._table_types()
        return RegisterPlan(
            table=self.table.name,
            files=tuple(file.url for file in examined.files),
            rows=sum(file.rows for file in examined.files),
            size_bytes=sum(file.size for file in examined.files),
            new_columns=tuple(name for name in examined.types if name not in types),
            already_registered=examined.already,
            empty=examined.empty,
        )

    def run(self, paths: Sequence[str], on_file: OnFile = None) -> RegisterResult:
        """Register the files that paths, folders, globs and URLs name, as one commit, but for those that are in."""
        examined = self._find(paths)
        passed = {"already_registered": examined.already, "empty": examined.empty}
        if not examined.files:
            return RegisterResult(self.table.name, None, self.table.version, 0, 0, 0, **passed)
        columns = pa.schema(list(examined.types.items()))
        self.context.metastore.reserve_columns(self.table.table_id, columns)
        attempt = self._open(CommitKind.REGISTER)
        with (
            given_up_on_error(self.context.metastore, self.commit_id, attempt),
            held(self.context.metastore, self.commit_id, attempt, self.lease),
        ):
            self.context.metastore.reserve_columns(self.table.table_id, columns)
            splits = self._describe(examined.files, attempt, on_file)
            published = self._publish(splits, attempt, list(examined.types), passed)
        size = sum(split.size_bytes for split in splits)
        return RegisterResult(
            self.table.name, self.commit_id, published.version, published.added, published.rows_added, size, **passed
        )

    def leaving(self, paths: Sequence[str]) -> list[SplitMetadata]:
        """Return the registered files that paths, folders and URLs name; they need not exist any more."""
        registered = list(self._registered())
        chosen: dict[str, SplitMetadata] = {}
        for path in paths:
            url = url_of(path.rstrip("/"))
            below = [split for split in registered if split.key == url or split.key.startswith(f"{url}/")]
            if not below:
                raise NotFound(f"{path}: no such file is registered in table {self.table.name!r}; see `inspect splits`")
            chosen |= {split.split_id: split for split in below}
        return list(chosen.values())

    def remove(self, paths: Sequence[str]) -> RegisterResult:
        """Take registered files out of the table; the files themselves stay as they are."""
        splits = self.leaving(paths)
        attempt = self._open(CommitKind.UNREGISTER)
        with given_up_on_error(self.context.metastore, self.commit_id, attempt):
            done = self.context.metastore.publish(
                self.commit_id, attempt=attempt, replace=[each.split_id for each in splits]
            )
        size = sum(split.size_bytes for split in splits)
        return RegisterResult(self.table.name, self.commit_id, done.version, done.removed, done.rows_removed, size)

    def _open(self, kind: CommitKind) -> int:
        record = self.context.metastore.open_commit(
            self.table.table_id, kind, commit_id=self.commit_id, lease=self.lease
        )
        return record.attempt

    def _find(self, paths: Sequence[str]) -> _Examined:
        """Look at every file that is not in the table yet; all of them must fit it."""
        files = find_files(paths, file_format=FileFormat.PARQUET, store_options=self.context.store_options)
        urls = dict.fromkeys(url_of(file.name) for file in files)
        self._refuse_own(urls)
        registered = {split.key: split for split in self._registered() if split.key in urls}
        self._refuse_changed(registered.values())
        looked_at = self._look_at([url for url in urls if url not in registered])
        filled = tuple(file for file in looked_at if file.rows)
        types: dict[str, pa.DataType] = {}
        of_table = self._table_types()
        for file in filled:
            types |= self._fitting(file, types, of_table)
        return _Examined(filled, types, len(registered), len(looked_at) - len(filled))

    def _look_at(self, urls: Sequence[str]) -> list[ForeignFile]:
        by_number: dict[int, ForeignFile] = {}

        def look(url: str, number: int) -> Iterator[str]:
            by_number[number] = look_at(url, self.table.settings, self.context.store_options)
            yield from ()

        run_locally(urls, look, threads=self.context.limits.threads)
        return [by_number[number] for number in sorted(by_number)]

    def _refuse_changed(self, registered: Iterable[SplitMetadata]) -> None:
        for split in registered:
            store, key = reach_foreign(split.key, self.context.store_options)
            if store.head(key).etag != split.etag:
                raise AlreadyExists(
                    f"{split.key} is registered in table {self.table.name!r} and has changed since; take it out with "
                    "unregister, then register it again"
                )

    def _refuse_own(self, urls: Iterable[str]) -> None:
        """What lies in the lake belongs to it: garbage collection may delete it."""
        root = self.context.store.url.rstrip("/") + "/"
        own = next((url for url in urls if url.startswith(root)), None)
        if own is not None:
            raise InvalidInput(
                f"{own} lies in the lake itself, where files belong to tables and may be deleted; register files that "
                "lie elsewhere"
            )

    def _fitting(
        self, file: ForeignFile, types: Mapping[str, pa.DataType], of_table: Mapping[str, pa.DataType]
    ) -> dict[str, pa.DataType]:
        try:
            check_rows(file.schema, self.table.settings)
        except InvalidInput as error:
            raise InvalidInput(f"{file.url}: {error}") from error
        for name, nulls in file.nulls.items():
            if nulls:
                raise InvalidInput(
                    f"{file.url}: DM-1: column {name!r} is null in {nulls} of {file.rows} rows, and a point needs it; "
                    "ingest the file with dead_letter instead"
                )
        return self._stored(file, joined_types(file.url, file.schema, types, of_table), of_table)

    def _stored(
        self, file: ForeignFile, types: Mapping[str, pa.DataType], of_table: Mapping[str, pa.DataType]
    ) -> dict[str, pa.DataType]:
        """Return the types that the table has for a file's columns; times finer than its own are refused."""
        fitted = {}
        for name, kind in types.items():
            own = stored(kind, self.table.settings.timestamp_precision)
            fitted[name] = own if name not in of_table else widened(of_table[name], own) or own
            if widened(fitted[name], file.schema.field(name).type) != fitted[name]:
                raise InvalidInput(
                    f"{file.url}: column {name!r} is {file.schema.field(name).type}, the table stores {fitted[name]}; "
                    'ingest the file instead, or register it in a table with timestamp_precision="ns"'
                )
        return fitted

    def _table_types(self) -> dict[str, pa.DataType]:
        return {column.name: column.type for column in self.context.metastore.columns(self.table.table_id)}

    def _registered(self) -> Iterator[SplitMetadata]:
        """Yield the files that are registered now; they come first in every listing, having no window."""
        version = self.context.metastore.table(self.table.name).version
        listed = chain.from_iterable(self.context.metastore.splits(self.table.table_id, version))
        return (split for split in takewhile(lambda split: split.window is None, listed) if is_foreign(split.key))

    def _describe(self, files: Sequence[ForeignFile], attempt: int, on_file: OnFile) -> list[SplitMetadata]:
        """Write the sidecars and return the files as splits."""

        def describe(file: ForeignFile, number: int) -> Iterator[str]:
            split = self._split(file, f"{self.commit_id}-{attempt}-0-{number}")
            yield text_of(split)

        def tell(report: str) -> None:
            if on_file is not None:
                on_file(parse_reports([report]).splits[0])

        return list(parse_reports(run_locally(files, describe, tell, threads=self.context.limits.threads)).splits)

    def _split(self, file: ForeignFile, split_id: str) -> SplitMetadata:
        sidecar = file.sidecar(self.context.store_options)
        key = sidecar_key(f"{self.table.folder}/_registered/{split_id}.parquet")
        self.context.store.put(key, sidecar)
        low, high = file.times or (None, None)
        return SplitMetadata(
            split_id=split_id,
            scope=CompactionScope(self.table.table_id, self.source_id, 0, self.table.schema_epoch, "", 0),
            window=None,
            key=file.url,
            size_bytes=file.size,
            row_count=file.rows,
            created_at=self.created_at,
            commit_id=self.commit_id,
            etag=file.etag,
            time_min=low,
            time_max=high,
            sidecar=SidecarLocation(key, 0, len(sidecar)),
        )

    def _publish(
        self,
        splits: Sequence[SplitMetadata],
        attempt: int,
        columns: Sequence[str],
        summary: Mapping[str, Any],
        tries: int = 5,
    ) -> Published:
        """Publish, unless another run registered one of the files meanwhile."""
        previous = self.context.metastore.checkpoint(self.table.table_id, _CHECKPOINT)
        keys = {split.key for split in splits}
        twice = next((split.key for split in self._registered() if split.key in keys), None)
        if twice is not None:
            raise AlreadyExists(f"{twice} was registered in table {self.table.name!r} by another run; run again")
        checkpoint = Checkpoint(_CHECKPOINT, self.commit_id, previous)
        try:
            return self.context.metastore.publish(
                self.commit_id, attempt=attempt, add=splits, columns=columns, checkpoint=checkpoint, summary=summary
            )
        except Conflict:
            if tries == 1:
                raise
            return self._publish(splits, attempt, columns, summary, tries - 1)
