"""A lake: a folder or a bucket of tables, and the metastore that says what is in them."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Mapping
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from windrow import forking
from windrow.closing import Closing
from windrow.engines.answer import Answer
from windrow.engines.direct.answers import DirectAnswers
from windrow.engines.direct.unopened import Unopened
from windrow.errors import AlreadyExists, Closed, NotFound, WindrowError
from windrow.model.cache_settings import CacheSettings
from windrow.model.learning_settings import LearningSettings
from windrow.model.limits import NO_LIMITS, Limits
from windrow.opening import DEFAULT_CACHE, context_of, settings_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from windrow.cache import Cache, Caches
    from windrow.context import Context
    from windrow.databases import Database
    from windrow.doctor import Finding
    from windrow.engines.duckdb.constants import Parameters
    from windrow.engines.duckdb.engine import DuckDBEngine
    from windrow.engines.duckdb.stream import Stream
    from windrow.engines.explanation import Explanation
    from windrow.engines.lake_queries import LakeQueries
    from windrow.identity.binding import Accept
    from windrow.inspection import TableRow
    from windrow.model.rows import Rows
    from windrow.model.settings import Duration, Names, PolicySettings, Verify
    from windrow.model.sort_schema import SortSchema
    from windrow.planning.scan_plan import ScanPlan
    from windrow.questdb.snapshot import Native
    from windrow.table import Table
    from windrow.upkeep.drop import DropTable, RenameTable
    from windrow.upkeep.dropped import CollectDropped
    from windrow.upkeep.file_analysis import Files
    from windrow.upkeep.rebuild import RebuildLost, RebuildTable

__all__ = ["Lake", "connect", "open_lake"]

DEFAULT_STATISTICS = LearningSettings()
_MOST_SHOWN = 10
"""Tables in the text of a lake."""


class Lake(Closing):
    """An open lake. Close it, or use it in a `with` block."""

    def __init__(
        self,
        context: Context | Unopened,
        *,
        sidecars_beside: bool = False,
        cache: CacheSettings | None = DEFAULT_CACHE,
    ) -> None:
        self._cache = cache
        self._sidecars_beside = sidecars_beside
        self._is_closed = False
        self._opening = threading.Lock()
        self._unopened = context if isinstance(context, Unopened) else None
        if not isinstance(context, Unopened):
            self._opened = context, self._queries_of(context)
        forking.register(self)

    def after_fork(self) -> None:
        """Have a lock of its own, in a forked child."""
        self._opening = threading.Lock()

    @property
    def context(self) -> Context:
        """The parts of the lake, which are made when they are first needed."""
        return self._open()[0]

    @property
    def _queries(self) -> LakeQueries:
        return self._open()[1]

    def _open(self) -> tuple[Context, LakeQueries]:
        if self._unopened is not None:
            with self._opening:
                if self._unopened is not None:
                    if self._is_closed:
                        raise Closed(f"lake {self.url}: it was closed; connect again")
                    context: Context = self._unopened.open()
                    self._opened = context, self._queries_of(context)
                    self._unopened = None
        return self._opened

    def _queries_of(self, context: Context) -> LakeQueries:
        from windrow.engines.lake_queries import queries_of

        # The tables of the lake share what the lake holds.
        return queries_of(context, sidecars_beside=self._sidecars_beside)

    @cached_property
    def cache(self) -> Caches:
        """What the caches did: `cache.stats()`, `cache.prometheus()`."""
        from windrow.cache import Caches

        return Caches([self.context.cache, self.context.parsed])

    def __reduce__(self) -> tuple[Callable[..., Lake], tuple[Any, ...]]:
        """A lake travels as its address, and is opened where it arrives."""
        context = self.context
        settings: dict[str, Any] = {
            "metastore": context.metastore_url,
            "store_options": dict(context.store_options),
            "cache": self._cache,
            "prune": context.prune,
            "sandbox": context.sandbox,
            "limits": context.limits,
            "statistics": context.statistics,
            "beside": self._sidecars_beside,
        }
        return partial(open_lake, create=False, **settings), (context.url,)

    def __repr__(self) -> str:
        try:
            names = [] if self._is_closed else self._queries.tables.names
        except WindrowError as error:
            return f"<Lake {self.url}: {error}>"
        from windrow.model.units import format_count

        shown = ", ".join(names[:_MOST_SHOWN]) + (", ..." if len(names) > _MOST_SHOWN else "")
        state = "closed" if self._is_closed else format_count(len(names), "table") + (f": {shown}" if names else "")
        return f"<Lake {self.url}: {state}>"

    @property
    def url(self) -> str:
        """Where the lake is."""
        unopened = self._unopened
        return self.context.url if unopened is None else unopened.url

    def create_table(  # noqa: PLR0913 - each is a setting
        self,
        name: str,
        *,
        sort: str | SortSchema,
        window: Duration = 900,
        cold_window: Duration | None = None,
        timestamp: str = "timestamp",
        timestamp_unit: str | None = None,
        timestamp_precision: str = "us",
        tags: Names | None = None,
        partition_by: Names = (),
        bloom_filters: Names = (),
        primary_key: Names = (),
        compaction_start_time: int = 0,
        late_data_acceptance_window: Duration = 3600,
        retention: Duration | None = None,
        target_split_size: str | int = 256 * 2**20,
        mirror: bool = True,
        verify: Verify = "full",
        policy: PolicySettings | dict[str, Any] | None = None,
    ) -> Table:
        """Create an empty table.

        `sort` is the sort schema, for example "metric_name|host|timestamp/V2". The settings are explained in
        `windrow.model.settings.TableSettings`; `table.change` changes them later.
        """
        given = {setting: value for setting, value in locals().items() if setting not in ("self", "name")}
        from windrow.model.ids import check_name
        from windrow.model.settings import TableSettings
        from windrow.table import Table

        if policy is None:
            del given["policy"]
        settings = TableSettings.of(**given)
        settings.check_names()
        table_id = self.context.new_id()
        folder = None if check_name(name) else self._other_folder(name, table_id)
        self.context.metastore.create_table(name, settings, table_id=table_id, folder=folder)
        return Table(self.context, name)

    def _other_folder(self, name: str, table_id: str) -> str | None:
        """Return a folder of another name than the table's where a dropped table left that one; refuse a lost table's.

        A table in a folder whose Delta log is of another one would be two tables to everybody else.
        """
        from windrow.identity.folders import has_log, is_dropped

        if name in self.context.metastore.folders():
            return None
        if is_dropped(self.context.store, name):
            return f"{name}-{table_id}"
        if has_log(self.context.store, name):
            raise AlreadyExists(
                f"the folder {name} of the lake holds the Delta log of a table that the metastore does not know; bring "
                f"it back by `windrow check {name} --repair`, or choose another name"
            )
        return None

    @property
    def drop_table(self) -> DropTable:
        """Drop a table: `drop_table.plan(name)`, `drop_table.run(name)`; `collect_dropped` deletes its files later."""
        from windrow.upkeep.drop import DropTable

        return DropTable(self.context)

    @property
    def rename_table(self) -> RenameTable:
        """Give a table another name: `rename_table.plan(before, after)`, `rename_table.run(before, after)`."""
        from windrow.upkeep.drop import RenameTable

        return RenameTable(self.context)

    @property
    def collect_dropped(self) -> CollectDropped:
        """Delete what dropped tables left: `collect_dropped.plan()`, `collect_dropped.run()`."""
        from windrow.upkeep.dropped import CollectDropped

        return CollectDropped(self.context)

    def table(self, name: str) -> Table:
        """Return a table by name, or raise NotFound with the nearest name."""
        from windrow.table import Table

        try:
            self.context.metastore.table(name)
        except NotFound as error:
            if self._is_lost(name):
                raise NotFound(
                    f"{error}; its folder holds a Delta log: `windrow check {name} --repair` makes the table again"
                ) from error
            raise
        return Table(self.context, name)

    @property
    def rebuild_table(self) -> RebuildTable:
        """Make a table again that the metastore lost, from its Delta log and its files, by the name of its folder.

        `rebuild_table(name)` is `rebuild_table.run(name)`; `rebuild_table.plan(name)` says what would come back.
        """
        from windrow.upkeep.rebuild import RebuildTable

        return RebuildTable(self.context)

    @property
    def rebuild(self) -> RebuildLost:
        """Make every table again that the metastore lost: `rebuild.plan()`, `rebuild.run()`, which is `rebuild()`."""
        from windrow.upkeep.rebuild import RebuildLost

        return RebuildLost(self.context)

    def lost_tables(self) -> list[str]:
        """Return the folders of tables that lie in the lake and are not in the metastore."""
        from windrow.upkeep.rebuild import lost_tables

        return lost_tables(self.context)

    def _is_lost(self, name: str) -> bool:
        """Whether the folder of a name holds a table that the metastore does not know."""
        from windrow.identity.folders import has_log, is_dropped
        from windrow.model.ids import check_name

        if check_name(name) is not None or name in self.context.metastore.folders():
            return False
        return has_log(self.context.store, name) and not is_dropped(self.context.store, name)

    def tables(self) -> Rows[TableRow]:
        """Return all tables, by name."""
        from windrow.inspection import tables_as_rows

        return tables_as_rows(self.context.metastore.tables())

    def doctor(self, table: str | None = None, *, lag: Duration = "10m") -> Rows[Finding]:
        """Return what is not well with the tables, or with one; nothing is changed.

        Each finding names a condition, the figure that shows it, the likely cause and the command that helps. `lag` is
        how soon a closed window should be compacted.

        >>> lake.doctor()  # doctest: +SKIP
        """
        from windrow.doctor import examine_lake

        return examine_lake(self.context, table, lag=lag)

    def sql(self, query: str, params: Parameters = None, *, tables: Mapping[str, object] | None = None) -> Answer:
        """Answer a query on DuckDB; tables of the lake are named as they are, other Parquet files by path or address.

        Values for `?`, `$1` or `$name` in the query are its `params`: a list, or a dictionary. Data frames of pandas
        and Polars, Arrow tables and whatever exports an Arrow stream are named as they are in `tables`, or as the
        variable of the caller that holds them. A query may do all that DuckDB can, to files and addresses too, unless
        the lake was opened with `sandbox`.

        >>> lake.sql("select * from metrics, 's3://bucket/raw/*.parquet' as raw where ...")  # doctest: +SKIP
        >>> lake.sql("select * from metrics join hosts using (host) where env = ?", ["prod"])  # doctest: +SKIP
        """
        direct = None if params or tables else self.answer_directly(query)
        if direct is not None:
            return direct
        return self._started().answer(self._queries.request(query, params, tables))

    def answer_directly(self, query: str) -> Answer | None:
        """Answer a plain query before the engine of the lake is loaded; None where it takes the engine.

        The first queries of a process are answered so by `sql`.
        """
        unopened = self._unopened
        rows = None if unopened is None else unopened.direct.answer(query)
        return None if rows is None else Answer(rows)

    def stream(self, query: str, params: Parameters = None, *, tables: Mapping[str, object] | None = None) -> Stream:
        """Answer a query batch by batch, as they are worked out; the answer need not fit in memory.

        The query runs while the `with` block lasts, which has a `pyarrow.RecordBatchReader`. Inside, this lake takes
        other queries. Leaving the block ends the query, whether all batches were read or not. `params` and
        `tables` are as in `sql`.

        >>> with lake.stream("select * from metrics") as batches:  # doctest: +SKIP
        ...     rows = sum(len(each) for each in batches)
        """
        return self._started().stream(self._queries.request(query, params, tables))

    def explain(
        self,
        query: str,
        *,
        analyze: bool = False,
        params: Parameters = None,
        tables: Mapping[str, object] | None = None,
    ) -> Explanation:
        """Say what a query reads of each table, and why: windows, splits, row groups, granules, bytes.

        With `analyze` the query is run, and what it read is shown too. The result prints as text, and has `to_dict` and
        `svg`. A query that begins with EXPLAIN, or EXPLAIN ANALYZE, is answered with the same text. `params` and
        `tables` are as in `sql`.
        """
        return self._started().explain(self._queries.request(query, params, tables), analyze=analyze)

    def plan(
        self, query: str, params: Parameters = None, *, tables: Mapping[str, object] | None = None
    ) -> dict[str, ScanPlan]:
        """Return what a query would read of each table and file that it names; `tables` are as in `sql`."""
        return self._started().plans(self._queries.request(query, params, tables))

    def spark_sql(self, spark: SparkSession, query: str, views: Mapping[str, str]) -> DataFrame:
        """Run a query of Spark SQL, in a better order of joins where statistics show that its own is much worse.

        `views` says what views of the session read: tables of the lake, or Parquet files by path or address. What was
        learnt of these decides; nothing else of the query changes, and views that are not among them are left alone.
        Only text is sent, so it works through Spark Connect too.

        >>> lake.spark_sql(
        ...     spark, "select ... from o, l where ...", {"o": "orders", "l": "raw/*.parquet"}
        ... )  # doctest: +SKIP
        """
        return spark.sql(self.query_for_spark(query, views))

    def query_for_spark(self, query: str, views: Mapping[str, str]) -> str:
        """Return the text that `spark_sql` runs."""
        from windrow.engines.spark.join_orders import in_better_order_for_spark

        relations = {view: self._queries.relation(name) for view, name in views.items()}
        with self._started().cursor() as cursor:
            return in_better_order_for_spark(query, relations, cursor)

    def _started(self) -> DuckDBEngine:
        return self._queries.engine()

    def files(self, pattern: str) -> Files:
        """Return Parquet files that are in no table, by path, glob or address: their statistics, and how to get them.

        >>> lake.files("raw/*.parquet").analyze()  # doctest: +SKIP
        >>> lake.files("raw/*.parquet").statistics()  # doctest: +SKIP
        """
        from windrow.upkeep.file_analysis import Files

        return Files(self.context, pattern, self._sidecars_beside)

    def questdb(self, path: str | Path, *, native: Native = "refuse", recover: bool = False) -> Database:
        """Open the folder of a QuestDB database, read-only, with the limits of this lake; see docs/questdb.md."""
        from windrow.databases import open_database

        return open_database(path, native=native, recover=recover, limits=self.context.limits)

    def close(self) -> None:
        """Close the lake: queries that are running end with `Closed`, and so do later calls."""
        self._is_closed = True
        with self._opening:
            if self._unopened is not None:
                self._unopened.direct.close()
                return
        self._queries.close()
        self.cache.record()
        self.context.close()


def connect(  # noqa: PLR0913 - each is a word that a user may say
    url: str | Path,
    *,
    metastore: str | None = None,
    create: bool = True,
    accept: Accept | None = None,
    store_options: Mapping[str, str] | None = None,
    cache: Cache[bytes] | CacheSettings | None = DEFAULT_CACHE,
    threads: int | None = None,
    memory_limit: str | None = None,
    sidecars_beside: bool = False,
    sandbox: bool = False,
    statistics: LearningSettings | float = DEFAULT_STATISTICS,
) -> Lake:
    """Open a lake, or make an empty one.

    A local folder keeps its metastore in `windrow.db`, unless `metastore` names another database. A bucket needs one:
    `connect("s3://bucket/lake", metastore="postgresql://...")`. With `create=False` a lake that is not there is
    NotFound. A metastore knows its lakes, and a lake its metastore: where they do not fit, opening is refused, unless
    that is what you `accept`: "move" for a lake that was moved, "add" for one more lake of the same metastore, "repair"
    for a lake that lost its metastore, of which `rebuild` then makes the tables again.

    `store_options` are those of `windrow.storage.open_store`, for the lake and for files in other places that you name:
    a local lake takes those of buckets too. `cache` says how much may be cached in memory and on disk,
    or is a cache of your own for bytes; with None nothing is cached. `threads` and `memory_limit`, such as "4GB", are
    what each query, scan, ingest, compaction and check may use in this process, unless it is given its own; rows beyond
    the memory are put on disk where that can be done. What is learnt of local Parquet files that are in no table
    goes to the cache folder; with `sidecars_beside` it is put beside each file, for others to use.

    While queries run, statistics are collected of what they read, for no more than a share of the CPU that the queries
    use: `statistics` is that share, or settings, and with 0 nothing is collected.

    SQL is DuckDB's with all that it can do: it reads and writes files, attaches databases, loads extensions. With
    `sandbox` it reads tables of the lake and does nothing else; open a lake so where others write the queries.
    """
    parts: dict[str, Any] = {"create": create, "accept": accept, "sandbox": sandbox, "statistics": statistics}
    limits = Limits.of(threads, memory_limit)
    return open_lake(url, metastore, store_options, cache=cache, beside=sidecars_beside, limits=limits, **parts)


def open_lake(
    url: str | Path,
    metastore: str | None = None,
    store_options: Mapping[str, str] | None = None,
    *,
    cache: Cache[bytes] | CacheSettings | None = DEFAULT_CACHE,
    beside: bool = False,
    prune: bool = True,
    statistics: LearningSettings | float = DEFAULT_STATISTICS,
    **parts: Any,
) -> Lake:
    """Open a lake with parts of its context; tests give a clock, `now`, and ids, `new_id`, of their own.

    Without `prune` queries read every row, so that an answer can be had that does not depend on metadata. `forcing` has
    rows arrive in one way. Both are for tests and diagnosis.
    """
    settings = LearningSettings.of(statistics)
    opening = partial(context_of, str(url), metastore, store_options, cache, prune=prune, statistics=settings, **parts)
    is_plain = metastore is None and not store_options and prune and (cache is None or cache is DEFAULT_CACHE)
    direct = _direct(url, **parts) if is_plain and _ENGINE not in sys.modules else None
    given = opening() if direct is None else Unopened(Path(url).expanduser().resolve().as_uri(), direct, opening)
    return Lake(given, sidecars_beside=beside, cache=settings_of(cache))


_ENGINE = "windrow.engines.lake_queries"
"""Once it is loaded, nothing is faster."""


def _direct(
    url: str | Path, *, accept: Accept | None = None, sandbox: bool = False, limits: Limits = NO_LIMITS, **parts: Any
) -> DirectAnswers | None:
    """The first answers of a lake that is whole, in a local folder, and is opened in no special way."""
    is_folder = ":" not in str(url) and "\0" not in str(url)
    if not is_folder or accept is not None or sandbox or parts.keys() - {"create"}:
        return None
    return DirectAnswers.of(Path(url).expanduser(), limits)
