"""What compaction asks and leaves: groups of visible splits, their candidates, splits to keep away from, runs.

Groups and candidates are those of the newest version. Pages are transactions of their own, so that a very large window
is walked in little memory while others publish; publishing a merge checks that its inputs are still visible.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, fields
from itertools import groupby
from typing import Any

from sqlalchemy import Row, Select, delete, func, insert, literal, select, tuple_, update

from windrow.errors import InvalidInput
from windrow.metastore.catalog import Catalog
from windrow.metastore.guards import check_id
from windrow.metastore.records import (
    Candidate,
    GroupSummary,
    Quarantined,
    RunRecord,
    RunState,
    WindowKind,
    window_of,
)
from windrow.metastore.schema import IN_TIME, quarantine, runs, splits
from windrow.metastore.scopes import Scopes, keys_of_scope
from windrow.metastore.stored import stored
from windrow.model.scope import CompactionScope
from windrow.model.window import Window

__all__ = ["CompactionRecords"]

_PAGE = 5000
_FIELDS = (
    "split_id",
    "data_key",
    "size_bytes",
    "row_count",
    "generation",
    "created_at",
    "etag",
    "sidecar_key",
    "sidecar_offset",
    "sidecar_length",
    "digest",
)


class CompactionRecords(Catalog):
    """The part of a metastore that compaction works with."""

    _scopes: Scopes

    def groups(self, table_id: str) -> Iterator[GroupSummary]:
        """Yield the groups of visible splits that share scope and window, by the start of the window."""
        with self.database.reading() as connection:
            key = self.table_key(connection, table_id)
            for row in connection.execute(_grouped(key).execution_options(yield_per=_PAGE)):
                scope = self._scopes.of(connection, row.scope_key, table_id)
                window = window_of(row.window_kind, row.window_start, scope.window_duration)
                yield GroupSummary(scope, window, row.splits, int(row.rows), int(row.size_bytes))

    def candidates(
        self, table_id: str, window: Window, *, scope: CompactionScope | None = None, page_size: int = _PAGE
    ) -> Iterator[tuple[CompactionScope, list[Candidate]]]:
        """Yield the visible splits of the windows that start where this one does, in pieces of one scope each.

        Scopes come one after the other, splits in the order of their ids. With a scope, only those of it.
        """
        if page_size < 1:
            raise InvalidInput(f"page_size: expected 1 or more, found {page_size}")
        after: tuple[int, str] | None = (-1, "")
        while after is not None:
            with self.database.reading() as connection:
                key = self.table_key(connection, table_id)
                query = _candidates(key, window, after, page_size)
                if scope is not None:
                    query = query.where(splits.c.scope_key == keys_of_scope(key, scope).scalar_subquery())
                rows = connection.execute(query).all()
                pieces = [
                    (self._scopes.of(connection, each, table_id), [Candidate(*row[1:]) for row in members])
                    for each, members in groupby(rows, key=_scope_key)
                ]
            yield from pieces
            after = (rows[-1][0], rows[-1][1]) if len(rows) == page_size else None

    def quarantine(self, table_id: str, reasons: Mapping[str, str]) -> None:
        """Keep splits away from merging; the first reason of a split stays."""
        with self.database.writing() as connection:
            key = self.table_key(connection, table_id)
            self.held(connection, key)
            now = self.database.now(connection)
            mine = select(quarantine.c.split_id).where(quarantine.c.table_key == key)
            already = set(connection.execute(mine.where(quarantine.c.split_id.in_(list(reasons)))).scalars())
            for split_id, reason in reasons.items():
                if split_id not in already:
                    values = {"table_key": key, "split_id": split_id, "reason": reason, "since": now}
                    connection.execute(insert(quarantine).values(values))

    def quarantined(self, table_id: str) -> list[Quarantined]:
        """Return the splits that merging leaves out, by id."""
        with self.database.reading() as connection:
            key = self.table_key(connection, table_id)
            query = select(quarantine).where(quarantine.c.table_key == key).order_by(quarantine.c.split_id)
            return [Quarantined(row.split_id, row.reason, row.since) for row in connection.execute(query)]

    def pardon(self, table_id: str, split_ids: Collection[str]) -> int:
        """Let splits be merged again, and return how many of them were left out."""
        with self.database.writing() as connection:
            key = self.table_key(connection, table_id)
            named = (quarantine.c.table_key == key, quarantine.c.split_id.in_(list(split_ids)))
            return connection.execute(delete(quarantine).where(*named)).rowcount

    def record_run(self, table_id: str, run: RunRecord) -> None:
        """Write a run down, or what became of it since."""
        check_id("run", run.run_id)
        values = {**asdict(run), "problems": json.dumps(run.problems, ensure_ascii=False)}
        with self.database.writing() as connection:
            key = self.table_key(connection, table_id)
            mine = (runs.c.run_id == run.run_id, runs.c.table_key == key)
            if not connection.execute(update(runs).where(*mine).values(values)).rowcount:
                with self.database.refusing_twins(f"the run id {run.run_id} is taken; give every run an id of its own"):
                    connection.execute(insert(runs).values(table_key=key, **values))

    def runs(self, table_id: str, *, limit: int | None = None) -> list[RunRecord]:
        """Return the runs of compaction on a table, newest first."""
        with self.database.reading() as connection:
            key = self.table_key(connection, table_id)
            query = select(runs).where(runs.c.table_key == key)
            query = query.order_by(runs.c.started_at.desc(), runs.c.run_id.desc()).limit(limit)
            return [_run(row) for row in connection.execute(query)]


def _grouped(key: int) -> Select[Any]:
    place = (splits.c.window_kind, splits.c.window_start, splits.c.scope_key)
    counts = (
        func.count().label("splits"),
        func.sum(splits.c.row_count).label("rows"),
        func.sum(splits.c.size_bytes).label("size_bytes"),
    )
    visible = (splits.c.table_key == key, splits.c.removed_version.is_(None))
    order = (IN_TIME, splits.c.window_start, splits.c.window_kind, splits.c.scope_key)
    return select(*place, *counts).where(*visible).group_by(*place).order_by(*order)


def _candidates(key: int, window: Window, after: tuple[int, str], size: int) -> Select[Any]:
    order = (splits.c.scope_key, splits.c.split_id)
    return (
        select(splits.c.scope_key, *(splits.c[name] for name in _FIELDS))
        .where(
            splits.c.table_key == key,
            splits.c.window_kind == int(WindowKind.of(window)),
            splits.c.window_start == window.start,
            splits.c.removed_version.is_(None),
            tuple_(*order) > tuple_(*(literal(value) for value in after)),
        )
        .order_by(*order)
        .limit(size)
    )


def _scope_key(row: Row[Any]) -> int:
    return int(row[0])


def _run(row: Row[Any]) -> RunRecord:
    values = {each.name: getattr(row, each.name) for each in fields(RunRecord)}
    read = {
        "state": stored("windrow_runs", row.run_id, "state", RunState, row.state),
        "problems": stored("windrow_runs", row.run_id, "problems", _problems, row.problems),
    }
    return RunRecord(**values | read)


def _problems(text: str) -> tuple[str, ...]:
    return tuple(json.loads(text))
