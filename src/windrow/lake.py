"""A lake: a folder or a bucket of tables, and the metastore that says what is in them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from sqlalchemy import URL

from windrow.context import Context
from windrow.engines.duckdb import Answer, DuckDBEngine
from windrow.errors import ConfigError, NotFound, StorageError
from windrow.inspection import TableRow, tables_as_rows
from windrow.metastore import SqlMetastore
from windrow.model.rows import Rows
from windrow.model.settings import TableSettings
from windrow.storage import LocalStore, Store, open_store
from windrow.table import Table

__all__ = ["Lake", "connect"]

_DATABASE = "windrow.db"


class Lake:
    """An open lake. Close it, or use it in a `with` block."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self._engine: DuckDBEngine | None = None

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

    def tables(self) -> Rows[TableRow]:
        """Return all tables, by name."""
        return tables_as_rows(self.context.metastore.tables())

    def sql(self, query: str) -> Answer:
        """Answer a query on DuckDB; the tables of the lake are named as they are."""
        if self._engine is None:
            self._engine = DuckDBEngine(self.context.store)
        records = self.context.metastore.tables()
        return self._engine.sql(query, {each.name: Table(self.context, each.name).relation for each in records})

    def close(self) -> None:
        """Give connections back."""
        if self._engine is not None:
            self._engine.close()
        self.context.metastore.close()

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
) -> Lake:
    """Open a lake, or make an empty one.

    A local folder keeps its metastore in `windrow.db`, unless `metastore` names another database. A bucket needs one:
    `connect("s3://bucket/lake", metastore="postgresql://...")`. With `create=False` a lake that is not there is
    NotFound. `store_options` are those of `windrow.storage.open_store`.
    """
    options = dict(store_options or {})
    store = open_store(str(url), options=options)
    address = metastore or _beside(store, create=create)
    extra: dict[str, Any] = {}
    if now is not None:
        extra["now"] = now
    if new_id is not None:
        extra["new_id"] = new_id
    return Lake(Context(store.url, store, SqlMetastore(address, create=create), options, **extra))


def _beside(store: Store, *, create: bool) -> str:
    """Return the address of the database in a local lake's own folder."""
    if not isinstance(store, LocalStore):
        raise ConfigError(
            f"metastore: a lake at {store.url} needs a database that many machines can reach, and none was named; "
            "name one as the metastore, such as postgresql://user:password@host/database"
        )
    path = store.root / _DATABASE
    if not path.exists():
        if not create:
            raise NotFound(f"there is no lake in {store.root}: it has no {_DATABASE}; create a table there first")
        _make_folder(store.root)
    # Spelled out, since a folder may be named with any character.
    return URL.create("sqlite", database=str(path)).render_as_string()


def _make_folder(root: Path) -> None:
    try:
        root.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(
            f"the folder {root} cannot be made: {error.strerror}; choose a folder that you may write to"
        ) from error
