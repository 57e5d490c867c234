"""A lake: a folder or a bucket of tables, and the metastore that says what is in them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from windrow.cache import Cache, Caches, CacheSettings, MemoryCache, counted, default_cache
from windrow.context import Context
from windrow.engines.answer import Answer
from windrow.engines.duckdb.constants import Parameters
from windrow.engines.duckdb.engine import DuckDBEngine
from windrow.engines.duckdb.frames import named_frames
from windrow.engines.duckdb.stream import Stream
from windrow.engines.explanation import Explanation
from windrow.engines.lake_queries import queries_of
from windrow.errors import AlreadyExists, NotFound, WindrowError
from windrow.identity.binding import Accept
from windrow.identity.folders import has_log, table_folders
from windrow.inspection import TableRow, tables_as_rows
from windrow.model.ids import check_name
from windrow.model.limits import Limits
from windrow.model.rows import Rows
from windrow.model.settings import TableSettings
from windrow.model.units import format_count
from windrow.planning.data_files import weight_of
from windrow.planning.scan_plan import ScanPlan
from windrow.questdb.database import Database, open_database
from windrow.questdb.snapshot import Native
from windrow.reading.cells import Cells
from windrow.table import Table

if TYPE_CHECKING:
    from windrow.upkeep.rebuild import Rebuilt

__all__ = ["Lake", "connect"]

DEFAULT_CACHE = CacheSettings()
_MOST_SHOWN = 10
"""Tables in the text of a lake."""


class Lake:
    """An open lake. Close it, or use it in a `with` block."""

    def __init__(
        self,
        context: Context,
        *,
        sidecars_beside: bool = False,
        cache: CacheSettings | None = DEFAULT_CACHE,
    ) -> None:
        self.context = context
        self._cache = cache
        self._sidecars_beside = sidecars_beside
        self._queries = queries_of(context, sidecars_beside=sidecars_beside)
        self._is_closed = False
        self.cache = Caches([context.cache, context.parsed])
        """What the caches did: `cache.stats()`, `cache.prometheus()`."""

    def __reduce__(self) -> tuple[Callable[..., Lake], tuple[Any, ...]]:
        """A lake travels as its address, and is opened where it arrives."""
        context = self.context
        settings: dict[str, Any] = {
            "metastore": context.metastore_url,
            "store_options": dict(context.store_options),
            "cache": self._cache,
            "prune": context.prune,
            "sandbox": context.sandbox,
            "threads": context.limits.threads,
            "memory_limit": context.limits.memory_text,
            "sidecars_beside": self._sidecars_beside,
        }
        return partial(connect, create=False, **settings), (context.url,)

    def __repr__(self) -> str:
        try:
            names = [] if self._is_closed else self._queries.tables.names
        except WindrowError as error:
            return f"<Lake {self.url}: {error}>"
        shown = ", ".join(names[:_MOST_SHOWN]) + (", ..." if len(names) > _MOST_SHOWN else "")
        state = "closed" if self._is_closed else format_count(len(names), "table") + (f": {shown}" if names else "")
        return f"<Lake {self.url}: {state}>"

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
        made.check_names()
        self._refuse_lost(name)
        self.context.metastore.create_table(name, made, table_id=self.context.new_id())
        return Table(self.context, name)

    def _refuse_lost(self, name: str) -> None:
        """A table in a folder whose Delta log is of another one would be two tables to everybody else."""
        if check_name(name) is not None or not has_log(self.context.store, name):
            return
        if name not in [each.name for each in self.context.metastore.tables()]:
            raise AlreadyExists(
                f"the folder {name} of the lake holds the Delta log of a table that the metastore does not know; bring "
                f"it back by `windrow check {name} --repair`, or choose another name"
            )

    def table(self, name: str) -> Table:
        """Return a table by name, or raise NotFound with the nearest name."""
        try:
            self.context.metastore.table(name)
        except NotFound as error:
            if check_name(name) is None and has_log(self.context.store, name):
                raise NotFound(
                    f"{error}; its folder holds a Delta log: `windrow check {name} --repair` makes the table again"
                ) from error
            raise
        return Table(self.context, name)

    def rebuild_table(self, name: str) -> Rebuilt:
        """Make a table again that the metastore lost, from its Delta log and its files; says what it cannot know."""
        from windrow.upkeep.rebuild import rebuild_table

        return rebuild_table(self.context, name)

    def lost_tables(self) -> list[str]:
        """Return the tables that lie in the lake and that the metastore does not know, by name."""
        known = {each.name for each in self.context.metastore.tables()}
        return [name for name in table_folders(self.context.store) if name not in known]

    def rebuild(self) -> list[Rebuilt]:
        """Make every table again that the metastore lost, as `rebuild_table` does."""
        return [self.rebuild_table(name) for name in self.lost_tables()]

    def tables(self) -> Rows[TableRow]:
        """Return all tables, by name."""
        return tables_as_rows(self.context.metastore.tables())

    def sql(self, query: str, params: Parameters = None, *, tables: Mapping[str, object] | None = None) -> Answer:
        """Answer a query on DuckDB; tables of the lake are named as they are, other Parquet files by path or address.

        Values for `?`, `$1` or `$name` in the query are its `params`: a list, or a dictionary. Data frames of pandas
        and Polars, Arrow tables and whatever exports an Arrow stream are named as they are in `tables`, or as the
        variable of the caller that holds them. A query may do all that DuckDB can, to files and addresses too, unless
        the lake was opened with `sandbox`.

        >>> lake.sql("select * from metrics, 's3://bucket/raw/*.parquet' as raw where ...")  # doctest: +SKIP
        >>> lake.sql("select * from metrics join hosts using (host) where env = ?", ["prod"])  # doctest: +SKIP
        """
        variables = named_frames(query, sys._getframe(1))  # noqa: SLF001 (where the query was written)
        return self._started().answer(self._queries.request(query, params, tables, variables))

    def stream(self, query: str, params: Parameters = None, *, tables: Mapping[str, object] | None = None) -> Stream:
        """Answer a query batch by batch, as they are worked out; the answer need not fit in memory.

        The query runs while the `with` block lasts, which has a `pyarrow.RecordBatchReader`. Inside, this lake may be
        asked other queries. Leaving the block ends the query, whether all batches were read or not. `params` and
        `tables` are as in `sql`.

        >>> with lake.stream("select * from metrics") as batches:  # doctest: +SKIP
        ...     rows = sum(len(each) for each in batches)
        """
        variables = named_frames(query, sys._getframe(1))  # noqa: SLF001 (where the query was written)
        return self._started().stream(self._queries.request(query, params, tables, variables))

    def explain(
        self,
        query: str,
        *,
        analyze: bool = False,
        params: Parameters = None,
        tables: Mapping[str, object] | None = None,
    ) -> Explanation:
        """Say what a query reads of each table, and why: windows, splits, row groups, granules, bytes.

        With `analyze` the query is run, and what it read is said too. The result prints as text, and has `to_dict` and
        `svg`. A query that begins with EXPLAIN, or EXPLAIN ANALYZE, is answered with the same text. `params` and
        `tables` are as in `sql`.
        """
        variables = named_frames(query, sys._getframe(1))  # noqa: SLF001 (where the query was written)
        return self._started().explain(self._queries.request(query, params, tables, variables), analyze=analyze)

    def plan(
        self, query: str, params: Parameters = None, *, tables: Mapping[str, object] | None = None
    ) -> dict[str, ScanPlan]:
        """Return what a query would read of each table and file that it names; `tables` are as in `sql`."""
        variables = named_frames(query, sys._getframe(1))  # noqa: SLF001 (where the query was written)
        return self._started().plans(self._queries.request(query, params, tables, variables))

    def _started(self) -> DuckDBEngine:
        return self._queries.engine()

    def questdb(self, path: str | Path, *, native: Native = "refuse", recover: bool = False) -> Database:
        """Open the folder of a QuestDB database, read-only, with the limits of this lake; see docs/questdb.md."""
        return open_database(path, native=native, recover=recover, limits=self.context.limits)

    def close(self) -> None:
        """Close the lake: queries that are running end with `Closed`, and so does what is asked of it later."""
        self._is_closed = True
        self._queries.close()
        self.cache.record()
        self.context.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def connect(  # noqa: PLR0913 - each is a word that a user may say
    url: str | Path,
    *,
    metastore: str | None = None,
    create: bool = True,
    accept: Accept | None = None,
    store_options: Mapping[str, str] | None = None,
    now: Callable[[], int] | None = None,
    new_id: Callable[[], str] | None = None,
    cache: Cache[bytes] | CacheSettings | None = DEFAULT_CACHE,
    prune: bool = True,
    threads: int | None = None,
    memory_limit: str | None = None,
    sidecars_beside: bool = False,
    sandbox: bool = False,
) -> Lake:
    """Open a lake, or make an empty one.

    A local folder keeps its metastore in `windrow.db`, unless `metastore` names another database. A bucket needs one:
    `connect("s3://bucket/lake", metastore="postgresql://...")`. With `create=False` a lake that is not there is
    NotFound. A metastore knows its lakes, and a lake its metastore: where they do not fit, opening is refused, unless
    that is what you `accept`: "move" for a lake that was moved, "add" for one more lake of the same metastore, "repair"
    for a lake that lost its metastore, of which `rebuild` then makes the tables again.

    `store_options` are those of `windrow.storage.open_store`, for the lake and for files in other places that you name:
    a local lake takes those of buckets too. `cache` says how much may be kept in memory and on disk,
    or is a cache of your own for bytes; with None nothing is kept. Without `prune` queries read every row, so
    that an answer can be had that does not depend on metadata. `threads` and `memory_limit`, such as "4GB", are what
    each query, scan, ingest, compaction and check may use in this process, unless it is given its own; rows beyond the
    memory are put on disk where that can be done. What is learnt of local Parquet files that
    are in no table is kept in the cache folder; with `sidecars_beside` it is put beside each file, for others to find.

    SQL is DuckDB's with all that it can do: it reads and writes files, attaches databases, loads extensions. With
    `sandbox` it reads tables of the lake and does nothing else; open a lake so where others write the queries.
    """
    settings = cache if isinstance(cache, CacheSettings) else DEFAULT_CACHE
    given: dict[str, Any] = {
        "now": now,
        "new_id": new_id,
        "cache": counted(default_cache(cache) if isinstance(cache, CacheSettings) else cache),
        "parsed": None if cache is None else MemoryCache(settings.parsed_bytes, weigh=weight_of, name="parsed"),
    }
    if cache is not None and settings.decoded_bytes and prune:
        # Without pruning, every row goes through the engine.
        given["decoded"] = Cells(settings.decoded_bytes)
    parts = {name: part for name, part in given.items() if part is not None}
    parts |= {"create": create, "accept": accept, "prune": prune, "sandbox": sandbox}
    parts["limits"] = Limits.of(threads, memory_limit)
    context = Context.open(str(url), metastore, store_options, **parts)
    return Lake(context, sidecars_beside=sidecars_beside, cache=None if cache is None else settings)
