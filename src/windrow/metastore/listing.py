"""Which splits are visible at a version: listed in pages, summed by window, compared between versions.

Every read goes through a version or a pin. What is gone is the error "snapshot expired", never a shorter
list.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import (
    BigInteger,
    BindParameter,
    ColumnElement,
    Connection,
    Row,
    Select,
    Text,
    bindparam,
    func,
    or_,
    select,
    tuple_,
)

from windrow.errors import InvalidInput, NotFound, SnapshotExpired
from windrow.metastore.catalog import Catalog
from windrow.metastore.records import (
    Changes,
    CommitKind,
    Pin,
    SplitQuery,
    WindowKind,
    WindowSummary,
    split_of,
    window_of,
)
from windrow.metastore.schema import IN_TIME, commits, pins, scopes, splits, tables
from windrow.metastore.scopes import Scopes, keys_of_scope
from windrow.metastore.stored import stored
from windrow.model.split import SplitMetadata
from windrow.model.window import COLD_HOURS, VALID_MINUTES
from windrow.pruning.zones import prune_splits

__all__ = ["Listing"]

_PAGE = 1000
_LONGEST_WINDOW = 60 * max(VALID_MINUTES)
_LONGEST_COLD_WINDOW = 3600 * COLD_HOURS[-1]
_EVERYTHING = SplitQuery()
_FIRST, _LAST = -(2**63), 2**63 - 1


class Listing(Catalog):
    """Reads of the splits of a metastore."""

    _scopes: Scopes

    def version_at(self, table_id: str, timestamp: int) -> int:
        """Return the version that was the newest at a moment (microseconds)."""
        with self.database.reading() as connection:
            key = self.table_key(connection, table_id)
            query = select(func.max(commits.c.version))
            query = query.where(commits.c.table_key == key, commits.c.published_at <= timestamp)
            return connection.execute(query).scalar_one() or 0

    def splits(
        self,
        table_id: str,
        at: int | Pin,
        query: SplitQuery = _EVERYTHING,
        *,
        page_size: int = _PAGE,
    ) -> Iterator[list[SplitMetadata]]:
        """Yield the splits that are visible at a version or under a pin, in pages, ordered by window and id.

        Registered files come first, then the overflow, windows in order of time, and cold windows in order of time.

        Memory is bounded by a page. Each page is a transaction of its own and checks anew that the version is readable.
        """
        _check_query(query, table_id, page_size)
        lanes: Sequence[_Lane] = _lanes(query)
        while lanes:
            with self.database.reading() as connection:
                key = self.table_key(connection, table_id)
                version = self._readable(connection, key, at)
                rows, lanes = _fill(connection, key, version, query, lanes, page_size)
                page = [self._split(connection, row, table_id) for row in rows]
            matching = page if query.predicate is None else prune_splits(query.predicate, page)
            if matching:
                yield matching

    def recorded_splits(self, table_id: str, split_ids: Collection[str]) -> set[str]:
        """Return those of the ids that the table has or had and that are not collected yet."""
        ids = list(split_ids)
        recorded: set[str] = set()
        with self.database.reading() as connection:
            key = self.table_key(connection, table_id)
            for start in range(0, len(ids), _PAGE):
                named = splits.c.split_id.in_(ids[start : start + _PAGE])
                recorded.update(
                    connection.execute(select(splits.c.split_id).where(splits.c.table_key == key, named)).scalars()
                )
        return recorded

    def windows(self, table_id: str, at: int | Pin) -> list[WindowSummary]:
        """Return the windows that hold splits at a version, with counts, in order of time."""
        with self.database.reading() as connection:
            key = self.table_key(connection, table_id)
            version = self._readable(connection, key, at)
            query = (
                select(
                    splits.c.window_kind,
                    splits.c.window_start,
                    scopes.c.window_duration,
                    func.count().label("splits"),
                    func.sum(splits.c.row_count).label("rows"),
                    func.sum(splits.c.size_bytes).label("size_bytes"),
                    func.max(splits.c.generation).label("generation"),
                )
                .join(scopes, scopes.c.scope_key == splits.c.scope_key)
                .where(splits.c.table_key == key, *_visible(version))
                .group_by(splits.c.window_kind, splits.c.window_start, scopes.c.window_duration)
                .order_by(IN_TIME, splits.c.window_start, scopes.c.window_duration)
            )
            return [_summary(row) for row in connection.execute(query)]

    def changes(self, table_id: str, after: int, upto: int | None = None) -> Iterator[Changes]:
        """Yield what each version after `after` added and removed, oldest first."""
        with self.database.reading() as connection:
            key = self.table_key(connection, table_id)
            self._readable(connection, key, after)
            query = select(commits).where(commits.c.table_key == key, commits.c.version > after)
            if upto is not None:
                query = query.where(commits.c.version <= upto)
            published = connection.execute(query.order_by(commits.c.version)).all()
        for row in published:
            yield Changes(
                version=row.version,
                commit_id=row.commit_id,
                kind=stored("windrow_commits", row.commit_id, "kind", CommitKind, row.kind),
                published_at=row.published_at,
                added=self._changed(table_id, key, splits.c.added_version, row.version, row.added),
                removed=self._changed(table_id, key, splits.c.removed_version, row.version, row.removed),
            )

    def _changed(
        self, table_id: str, key: int, column: ColumnElement[int], version: int, expected: int
    ) -> tuple[SplitMetadata, ...]:
        with self.database.reading() as connection:
            query = select(splits).where(splits.c.table_key == key, column == version).order_by(splits.c.split_id)
            changed = tuple(self._split(connection, row, table_id) for row in connection.execute(query).all())
        if len(changed) != expected:
            raise SnapshotExpired(
                f"snapshot expired: {expected - len(changed)} splits of version {version} were collected already; "
                "ask for the changes of newer versions"
            )
        return changed

    def _readable(self, connection: Connection, key: int, at: int | Pin) -> int:
        """Return the version to read, or raise when it is unknown or gone."""
        if isinstance(at, Pin):
            return self._pinned(connection, key, at)
        row = connection.execute(_VERSIONS, {"key": key}).one()
        if at > row.version or at < 0:
            raise NotFound(f"table {row.name!r} has no version {at}; the newest is {row.version}")
        if at < row.oldest_version:
            raise SnapshotExpired(
                f"snapshot expired: version {at} of table {row.name!r} is no longer kept; the oldest is "
                f"{row.oldest_version}"
            )
        return at

    def _pinned(self, connection: Connection, key: int, pin: Pin) -> int:
        if self.table_key(connection, pin.table_id) != key:
            raise InvalidInput(f"the pin of {pin.owner} holds table {pin.table_id}; it says nothing of another table")
        expires = connection.execute(_EXPIRES, {"pin": pin.pin_id}).scalar_one_or_none()
        if expires is None or expires <= self.database.now(connection):
            raise SnapshotExpired(
                f"snapshot expired: the pin of {pin.owner} on version {pin.version} ran out; open the table again, "
                "and renew the pin while you read"
            )
        return pin.version

    def _split(self, connection: Connection, row: Row[Any], table_id: str) -> SplitMetadata:
        return split_of(row, self._scopes.of(connection, row.scope_key, table_id))


@dataclass(frozen=True, slots=True)
class _Lane:
    """Windows of one kind that start in a range: their splits lie together in the index, in the order of listings."""

    kind: WindowKind
    first: int
    last: int
    after: str = ""
    """The last split of the first window that was listed already."""


_NO_WINDOW = _Lane(WindowKind.NONE, 0, 0)
_OVERFLOW = _Lane(WindowKind.OVERFLOW, 0, 0)
_TIMED = _Lane(WindowKind.TIMED, _FIRST, _LAST)
_COLD = _Lane(WindowKind.COLD, _FIRST, _LAST)


def _lanes(query: SplitQuery) -> list[_Lane]:
    lanes = [_NO_WINDOW, _OVERFLOW, _TIMED, _COLD]
    if query.time_range is not None:
        low, high = query.time_range[0] // 1_000_000, (query.time_range[1] - 1) // 1_000_000
        longest = {WindowKind.TIMED: _LONGEST_WINDOW, WindowKind.COLD: _LONGEST_COLD_WINDOW}
        lanes = [_NO_WINDOW, *(_Lane(kind, low - longest[kind], high) for kind in longest)]
    if query.window is None:
        return lanes
    kind, start = WindowKind.of(query.window), query.window.start
    return [_Lane(kind, start, start) for lane in lanes if lane.kind == kind and lane.first <= start <= lane.last]


def _check_query(query: SplitQuery, table_id: str, page_size: int) -> None:
    if page_size < 1:
        raise InvalidInput(f"page_size: expected 1 or more, found {page_size}")
    if query.scope is not None and query.scope.index_uid != table_id:
        raise InvalidInput(f"query: the scope is one of table {query.scope.index_uid}, not of {table_id}")


def _visible(version: int | BindParameter[int]) -> tuple[ColumnElement[bool], ...]:
    removed = splits.c.removed_version
    return splits.c.added_version <= version, or_(removed.is_(None), removed > version)


_ORDER = (splits.c.window_start, splits.c.split_id)

# Statements of every listing are put together once: to do that takes longer than to run them.
_VERSIONS = select(tables.c.version, tables.c.oldest_version, tables.c.name).where(
    tables.c.table_key == bindparam("key")
)
_EXPIRES = select(pins.c.expires_at).where(pins.c.pin_id == bindparam("pin"))
_PAGE_OF_LANE = (
    select(splits)
    .where(
        splits.c.table_key == bindparam("key"),
        splits.c.window_kind == bindparam("kind"),
        tuple_(*_ORDER) > tuple_(bindparam("first", type_=BigInteger), bindparam("after", type_=Text)),
        splits.c.window_start <= bindparam("last"),
        *_visible(bindparam("version")),
    )
    .order_by(*_ORDER)
    .limit(bindparam("size", type_=BigInteger))
)


def _fill(
    connection: Connection, key: int, version: int, query: SplitQuery, lanes: Sequence[_Lane], size: int
) -> tuple[list[Row[Any]], Sequence[_Lane]]:
    """Return the rows of a page, and what is left of the lanes after it."""
    page: list[Row[Any]] = []
    for number, lane in enumerate(lanes):
        # One row more says whether another page follows.
        room = size - len(page)
        rows = connection.execute(*_page(key, version, query, lane, room + 1)).all()
        page += rows[:room]
        if len(rows) > room:
            left = lane if not room else replace(lane, first=page[-1].window_start, after=page[-1].split_id)
            return page, (left, *lanes[number + 1 :])
    return page, ()


def _page(
    key: int, version: int, query: SplitQuery, lane: _Lane, limit: int
) -> tuple[Select[tuple[Any, ...]], dict[str, Any]]:
    """Return the statement for some rows of a lane, and its values."""
    narrowed = _narrowed(key, query)
    values = {"key": key, "version": version, "kind": int(lane.kind), "size": limit}
    place = {"first": lane.first, "after": lane.after, "last": lane.last}
    return _PAGE_OF_LANE.where(*narrowed) if narrowed else _PAGE_OF_LANE, values | place


def _narrowed(key: int, query: SplitQuery) -> list[ColumnElement[bool]]:
    conditions: list[ColumnElement[bool]] = []
    if query.scope is not None:
        conditions.append(splits.c.scope_key.in_(keys_of_scope(key, query.scope)))
    if query.window is not None:
        durations = select(scopes.c.scope_key).where(
            scopes.c.table_key == key, scopes.c.window_duration == query.window.duration
        )
        conditions.append(splits.c.scope_key.in_(durations))
    if query.time_range is not None:
        (low, high), first, last = query.time_range, splits.c.time_min, splits.c.time_max
        # A registered file may not know its times; it may hold any. Ends that 64 bits do not count narrow nothing.
        if low > _FIRST:
            conditions.append(or_(last.is_(None), last >= min(low, _LAST)))
        if high <= _LAST:
            conditions.append(or_(first.is_(None), first < max(high, _FIRST)))
    return conditions


def _summary(row: Row[Any]) -> WindowSummary:
    return WindowSummary(
        window=window_of(row.window_kind, row.window_start, row.window_duration),
        splits=row.splits,
        rows=int(row.rows),
        size_bytes=int(row.size_bytes),
        generation=row.generation,
    )
