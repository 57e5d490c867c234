"""A lake: a folder or a bucket of tables, and the metastore that says what is in them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from windrow.cache import Cache, CacheSettings, MemoryCache, default_cache
from windrow.context import Context
from windrow.engines.duckdb import Answer, DuckDBEngine, Relation
from windrow.engines.foreign import foreign_relation
from windrow.inspection import TableRow, tables_as_rows
from windrow.model.rows import Rows
from windrow.model.settings import TableSettings
from windrow.scan.context import ReadContext, ScanContext
from windrow.scan.files import weight_of
from windrow.scan.foreign import ForeignFiles
from windrow.table import Table

if TYPE_CHECKING:
    import pyarrow as pa

    from windrow.upkeep.rebuild import Rebuilt

__all__ = ["Lake", "connect"]

T = TypeVar("T")

DEFAULT_CACHE = CacheSettings()


class Lake:
    """An open lake. Close it, or use it in a `with` block."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self._engine: DuckDBEngine | None = None
        self._files: ForeignFiles | None = None

    @property
    def url(self) -> str:
        """Where the lake is."""
        return self.context.url

    def create_table(self, name: str, *, sort: str, **settings: Any) -> Table:
        """Create an empty table.

        `sort` is the sort schema, for example "metric_name|host|timestamp/V2". The other settings are those of
        `TableSettings`: window="15m", retention="30d", tags=[...], partition_by=[...] and so on.
        """
        made = TableSettings.of(sort=sort, **settings)
        self.context.metastore.create_table(name, made, table_id=self.context.new_id())
        return Table(self.context, name)

    def table(self, name: str) -> Table:
        """Return a table by name, or raise NotFound with the nearest name."""
        self.context.metastore.table(name)
        return Table(self.context, name)

    def rebuild_table(self, name: str) -> Rebuilt:
        """Make a table again that the metastore lost, from its Delta log and its files; says what it cannot know."""
        from windrow.upkeep.rebuild import rebuild_table

        return rebuild_table(self.context, name)

    def tables(self) -> Rows[TableRow]:
        """Return all tables, by name."""
        return tables_as_rows(self.context.metastore.tables())

    def sql(self, query: str) -> Answer:
        """Answer a query on DuckDB; tables of the lake are named as they are, other Parquet files by path or address.

        >>> lake.sql("select * from metrics, 's3://bucket/raw/*.parquet' as raw where ...")  # doctest: +SKIP
        """
        return self._started().sql(query, self._relations(), self._foreign)

    def stream(self, query: str, into: Callable[[pa.RecordBatchReader], T]) -> T:
        """Answer a query batch by batch, as they are worked out; the answer need not fit in memory.

        `into` is called once, with a `pyarrow.RecordBatchReader` that it may read while it runs and not afterwards.
        Other queries of this lake wait until it returns, so it must not ask one itself.

        >>> lake.stream("select * from metrics", lambda batches: sum(len(each) for each in batches))  # doctest: +SKIP
        """
        return self._started().stream(query, self._relations(), self._foreign, into)

    def _started(self) -> DuckDBEngine:
        if self._engine is None:
            store = self.context.reading or self.context.store
            self._engine = DuckDBEngine(ReadContext(self.url, store, self.context.cache))
        return self._engine

    def _relations(self) -> dict[str, Callable[[], Relation]]:
        return {each.name: Table(self.context, each.name).relation for each in self.context.metastore.tables()}

    def _foreign(self, pattern: str) -> Relation | None:
        """What the path or address of Parquet files stands for in a query."""
        if self._files is None:
            shared = self.context
            context = ScanContext(self.url, shared.store, shared.cache, shared.parsed, prune=shared.prune)
            self._files = ForeignFiles(context, self.context.store_options)
        return foreign_relation(self._files, pattern)

    def close(self) -> None:
        """Give connections back."""
        if self._engine is not None:
            self._engine.close()
        self.context.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def connect(
    url: str | Path,
    *,
    metastore: str | None = None,
    create: bool = True,
    store_options: Mapping[str, str] | None = None,
    now: Callable[[], int] | None = None,
    new_id: Callable[[], str] | None = None,
    cache: Cache[bytes] | CacheSettings | None = DEFAULT_CACHE,
    prune: bool = True,
) -> Lake:
    """Open a lake, or make an empty one.

    A local folder keeps its metastore in `windrow.db`, unless `metastore` names another database. A bucket needs one:
    `connect("s3://bucket/lake", metastore="postgresql://...")`. With `create=False` a lake that is not there is
    NotFound. `store_options` are those of `windrow.storage.open_store`. `cache` says how much may be kept in memory and
    on disk, or is a cache of your own for bytes; with None nothing is kept. Without `prune` queries read every row, so
    that an answer can be had that does not depend on metadata.
    """
    settings = cache if isinstance(cache, CacheSettings) else DEFAULT_CACHE
    given = {
        "now": now,
        "new_id": new_id,
        "cache": default_cache(cache) if isinstance(cache, CacheSettings) else cache,
        "parsed": None if cache is None else MemoryCache(settings.parsed_bytes, weigh=weight_of, name="parsed"),
    }
    parts = {name: part for name, part in given.items() if part is not None}
    return Lake(Context.open(str(url), metastore, store_options, create=create, prune=prune, **parts))
