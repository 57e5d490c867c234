"""A lake in which nothing is left to chance: its clock is set by hand, its ids are counted, its files have dates of it.

Proofs of everything that works on a whole table start from here: they open the lake as often as they like, through
stores and metastores that fail on plan, and compare what it holds with what it should.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from tests.proofs.plain import DatedFolder, PlainStore

from windrow.context import Context
from windrow.lake import Lake
from windrow.metastore import CommitKind, Metastore, SqlMetastore
from windrow.mirror.metastore import MirroredMetastore
from windrow.model.split import SplitMetadata
from windrow.storage import Store, address_of, is_foreign, reach
from windrow.table import Table
from windrow.testing.metastore_cases.samples import FakeClock

NOON = datetime(2023, 11, 14, 12, tzinfo=UTC)
"""A noon some hours before the clock of a new world begins."""

Row = tuple[Any, ...]

_DATABASE = "windrow.db"
_LAKE = "lake"


@cache
def _new_database() -> bytes:
    """An empty metastore: to set one up takes longer than most of what is done to it."""
    with TemporaryDirectory() as folder:
        SqlMetastore(f"sqlite:///{folder}/{_DATABASE}").close()
        return (Path(folder) / _DATABASE).read_bytes()


class World:
    """A lake that can be opened again and again; what a crash would lose is lost with the opened one.

    Its store is a dictionary, or with `local` a folder, so that its files are read as local files are.
    """

    def __init__(self, folder: Path, *, local: bool = False) -> None:
        self.clock = FakeClock()
        self._plain = None if local else PlainStore(self.clock)
        self.store: Store = self._plain or DatedFolder(folder / _LAKE, self.clock)
        self.folder = folder
        self.url = f"sqlite:///{folder}/{_DATABASE}"
        self._given = 0
        self._held: list[Store] = []
        self._known: dict[bytes, Counter[Row]] = {}
        self._sums: dict[tuple[bytes, ...], Counter[Row]] = {}
        self._foreign: dict[str, tuple[Store, str]] = {}
        (folder / _DATABASE).write_bytes(_new_database())

    def copy(self, folder: Path) -> World:
        """Return a world that is the same and goes its own way from here; nothing may be open in this one."""
        other = World(folder, local=self._plain is None)
        other.clock.now, other._given = self.clock.now, self._given
        if self._plain is None:
            shutil.copytree(self.folder / _LAKE, folder / _LAKE)
        else:
            other.store = other._plain = self._plain.copy(other.clock)
        for file in self.folder.glob(f"{_DATABASE}*"):
            shutil.copy(file, folder)
        return other

    def lose_metastore(self) -> None:
        """Delete the database."""
        for file in self.folder.glob(f"{_DATABASE}*"):
            file.unlink()

    def new_id(self) -> str:
        """Return an id that was never given."""
        self._given += 1
        return f"id{self._given}"

    def open(
        self,
        disturb: Callable[[Store], Store] | None = None,
        metastore: Callable[[str, Store], Metastore] | None = None,
    ) -> Lake:
        """Open the lake, through a store and a metastore that may be disturbed."""
        store = self.store if disturb is None else disturb(self.store)
        # The address is good only while somebody holds the store.
        self._held = [store]
        opened = metastore(self.url, store) if metastore else MirroredMetastore(self.url, store, clock=self.clock)
        return Lake(Context(address_of(store), store, opened, now=self.clock, new_id=self.new_id))

    def stored(self, folder: str = "") -> set[str]:
        """Return the keys of the objects that are in the store."""
        return {info.key for info in self.store.list(folder)}

    def read(self, splits: Iterable[SplitMetadata]) -> Counter[Row]:
        """Return the rows of splits as their files have them, read by pyarrow alone."""
        return self.rows_at(split.key for split in splits)

    def rows_at(self, keys: Iterable[str]) -> Counter[Row]:
        """Return the rows of files; every file is fetched, and only bytes that were never seen are parsed."""
        contents = tuple(map(self._content, keys))
        if contents not in self._sums:
            found = self._sums[contents] = Counter()
            for content in contents:
                found.update(self._rows_in(content))
        return self._sums[contents]

    def _rows_in(self, content: bytes) -> Counter[Row]:
        """The rows of a file; the same bytes are looked at again after every step."""
        if content not in self._known:
            self._known[content] = rows_of([pq.read_table(pa.BufferReader(content))])
        return self._known[content]

    def _content(self, key: str) -> bytes:
        if not is_foreign(key):
            return self.store.get(key)
        if key not in self._foreign:
            self._foreign[key] = reach(self.store, key)
        store, name = self._foreign[key]
        return store.get(name)

    def rows(self, table: Table) -> Counter[Row]:
        """Return the rows that are visible in a table."""
        return self.read(visible(table))


def visible(table: Table) -> list[SplitMetadata]:
    """Return the splits that a table shows."""
    record = table.record()
    version = record.version if table.as_of is None else table.as_of
    pages = table.context.metastore.splits(record.table_id, version)
    return [split for page in pages for split in page]


def rows_of(tables: Iterable[pa.Table]) -> Counter[Row]:
    """Return rows as a multiset: values by name, where a null is as good as a column that is missing."""
    found: Counter[Row] = Counter()
    for table in tables:
        for row in table.to_pylist():
            found[tuple(sorted((name, _plain(value)) for name, value in row.items() if value is not None))] += 1
    return found


def _plain(value: Any) -> Any:
    """Values that cannot be counted, or that do not equal themselves, are compared by how they are written."""
    return repr(value) if isinstance(value, list | dict | float) else value


def points(*minutes: float | None, host: str = "a") -> pa.Table:
    """Return rows of one host, by minutes after noon; None has no timestamp."""
    times = [None if minute is None else NOON + timedelta(minutes=minute) for minute in minutes]
    return pa.table(
        {
            "host": pa.array([host] * len(times), pa.string()),
            "timestamp": pa.array(times, pa.timestamp("us", "UTC")),
            "value": pa.array(range(len(times)), pa.int64()),
        }
    )


def compact(table: Table, chosen: list[SplitMetadata]) -> None:
    """Merge splits of one scope and window into one, and publish that."""
    from windrow.merging.splits import merge_splits
    from windrow.splits.writer import SplitName

    context, record = table.context, table.record()
    commit_id = context.new_id()
    opened = context.metastore.open_commit(record.table_id, CommitKind.COMPACT, commit_id=commit_id, lease=120)

    def name(number: int) -> SplitName:
        return SplitName(table.record().folder, f"{commit_id}-{opened.attempt}-0-{number}", commit_id, context.now())

    merged = merge_splits(context.store, chosen, record.settings, name)
    context.metastore.publish(
        commit_id, attempt=opened.attempt, add=merged, replace=[split.split_id for split in chosen]
    )
