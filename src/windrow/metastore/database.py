"""The database under the metastore: how to reach it, whose it is, and what SQLite and PostgreSQL do differently."""

from __future__ import annotations

import re
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, Table, create_engine, event, inspect, make_url, text
from sqlalchemy.engine import URL
from sqlalchemy.exc import (
    ArgumentError,
    DataError,
    DBAPIError,
    IntegrityError,
    MultipleResultsFound,
    NoResultFound,
    OperationalError,
    SQLAlchemyError,
)
from sqlalchemy.exc import TimeoutError as NoFreeConnection

from windrow import forking, immortal
from windrow.config import masked
from windrow.errors import (
    AlreadyExists,
    Closed,
    ConfigError,
    Conflict,
    Damaged,
    Incompatible,
    InvalidInput,
    MetastoreError,
    NotFound,
)
from windrow.extras import require
from windrow.metastore.dialect import COMPILED, DRIVER
from windrow.metastore.migrate import revisions, upgrade
from windrow.metastore.stored import REBUILD
from windrow.network_disks import network_file_system

__all__ = ["Clock", "Database", "plain_address"]

Clock = Callable[[], int]
"""Returns the time in microseconds since the epoch."""

_SQLITE_BUSY_SECONDS = 30
_SQLITE_BUSY_PAUSE = 0.02
_SIGNS_OF_DAMAGE = (
    *("no such ", "no column named", "foreign key mismatch"),
    *("malformed", "decode to UTF-8", "not a database"),
)
_LOCK_TIMEOUT = "30s"
_COPY_FROM_ROWS = 50
_MARKS = 2**32
"""SQLite's numbers are below."""
_VERSION_TABLE = "windrow_migrations"
_REVISION = text(f"select version_num from {_VERSION_TABLE}")

# What waiting does not change: wrong credentials, no such database, no permission, a read-only database.
_LASTING_STATES = ("28", "3D", "42501", "25006")
_LASTING_CODES = frozenset({sqlite3.SQLITE_PERM, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_AUTH})
# Of a connection that was refused, the driver knows the words of the server and no code.
_LASTING_WORDS = re.compile(
    r"authentication failed|no password supplied|no pg_hba\.conf entry|permission denied|not permitted to log in"
    r"|(?:database|role) \".*\" does not exist"
)


class Database:
    """One database that is ours, or was empty and is made ours."""

    def __init__(self, url: str, *, clock: Clock | None = None, create: bool = True) -> None:
        self.url = _parsed(url)
        self.is_sqlite = self.url.get_backend_name() == "sqlite"
        self._clock = clock
        self._is_closed = self._is_torn = False
        self._inside: list[None] = []
        """As long as there are transactions under way."""
        self._watching = threading.Lock()
        self._watch: sqlite3.Connection | None = None
        self._watches = 0
        self.engine = _sqlite_engine(self.url, create=create) if self.is_sqlite else _postgres_engine(self.url)
        try:
            self._make_ours(create=create)
        except BaseException:
            self.engine.dispose()
            raise
        forking.register(self)

    @property
    def place(self) -> str:
        """The address without its password, for messages."""
        return str(masked("metastore", self.url.render_as_string(hide_password=True)))

    @property
    def address(self) -> str:
        """The address without user and password, as a lake may write it down."""
        return plain_address(self.url)

    def close(self) -> None:
        """Give all connections back; what is used afterwards is `Closed`."""
        self._is_closed = True
        self._let_go()

    def _let_go(self) -> None:
        self.engine.dispose()
        with self._watching:
            if self._watch is not None:
                self._watch.close()
            self._watch = None

    def before_fork(self) -> None:
        """Have no connection that a child could inherit: SQLite would take the locks of its parent for its own."""
        if self.is_sqlite:
            self._let_go()

    def after_fork(self) -> None:
        """Connect anew, in a forked child: the connections that there are belong to the parent."""
        immortal.abandon(self.engine.pool, self._watch)
        self.engine.dispose(close=False)
        self._watching, self._watch = threading.Lock(), None
        self._is_torn, self._inside = self._is_torn or bool(self._inside), []

    @contextmanager
    def _used(self) -> Iterator[None]:
        """For a transaction: no fork comes in the middle, unless it takes too long."""
        with forking.working():
            self._check_usable()
            inside = self._inside
            inside.append(None)
            try:
                yield
            finally:
                inside.pop()

    def _check_usable(self) -> None:
        if self._is_closed:
            raise Closed(f"the lake with the metastore {self.place} was closed; connect again")
        if self._is_torn:
            raise MetastoreError(
                f"the metastore {self.place} cannot be used by this process, which was forked in the middle of a "
                'transaction; start processes by multiprocessing.get_context("spawn")'
            )

    def mark(self) -> int | None:
        """A number that differs once anybody has changed anything; None where only a look at the rows can tell.

        SQLite counts the commits of others than the connection that asks, and this one never writes.
        """
        if not self.is_sqlite:
            return None
        with self._used(), self._watching:
            if self._watch is None:
                # Numbers of two connections cannot be compared.
                self._watches += 1
                path = Path(self.url.database or "").absolute()
                self._watch = sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, check_same_thread=False)
            try:
                mark: int = self._watch.execute("PRAGMA data_version").fetchone()[0]
            except sqlite3.Error:
                return None
            return self._watches * _MARKS + mark

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A connection for reading, in one transaction."""
        with self._used(), self._named_errors(), self.engine.connect() as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A transaction that writes: committed when the block ends, rolled back when it raises.

        SQLite takes its one write lock at the start, so that nothing read in the block can change before it commits.
        """
        with (
            self._used(),
            self._named_errors(),
            self.engine.connect().execution_options(sqlite_begin="BEGIN IMMEDIATE") as connection,
            connection.begin(),
        ):
            yield connection

    @contextmanager
    def refusing_twins(self, message: str) -> Iterator[None]:
        """Raise AlreadyExists with the message when the block inserts a row whose name or id is taken."""
        try:
            yield
        except IntegrityError as error:
            raise AlreadyExists(message) from error

    def see_one_moment(self, connection: Connection) -> None:
        """Let all that a new transaction reads be of one moment; on SQLite it always is."""
        if not self.is_sqlite:
            connection.execute(text("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ"))

    def one_at_a_time(self, connection: Connection) -> None:
        """Wait until no other transaction is past this point; on SQLite those that write are alone anyway."""
        if not self.is_sqlite:
            connection.execute(text("select pg_advisory_xact_lock(7236828, 1)"))

    def now(self, connection: Connection) -> int:
        """Return the time by which leases are judged: the server's clock where there is a server."""
        if self._clock is not None:
            return self._clock()
        if self.is_sqlite:
            return time.time_ns() // 1000
        seconds = connection.execute(text("select extract(epoch from clock_timestamp()) * 1000000")).scalar_one()
        return int(seconds)

    def insert_rows(self, connection: Connection, table: Table, rows: Sequence[tuple[Any, ...]]) -> int:
        """Insert whole rows, given in the order of the table's columns; COPY on PostgreSQL when there are many."""
        names = ", ".join(column.name for column in table.columns)
        try:
            if not self.is_sqlite and len(rows) >= _COPY_FROM_ROWS:
                return _copy(connection, f"COPY {table.name} ({names}) FROM STDIN", rows)
            marks = ", ".join(["?" if self.is_sqlite else "%s"] * len(table.columns))
            statement = f"INSERT INTO {table.name} ({names}) VALUES ({marks})"
            return connection.exec_driver_sql(statement, list(rows)).rowcount
        except IntegrityError as error:
            raise Conflict(f"a row of this commit is in the metastore already: {_first_line(error)}") from error

    @contextmanager
    def _named_errors(self) -> Iterator[None]:
        try:
            yield
        except (OperationalError, NoFreeConnection) as error:
            if _is_damage(error):
                raise self._damaged(error) from error
            lasting = _is_lasting(error)
            way = (
                "check the address, the user and what it may do"
                if lasting
                else ("check that it runs and can be written, then try again")
            )
            raise MetastoreError(
                f"the metastore {self.place} did not answer: {_first_line(error)}; {way}", retryable=not lasting
            ) from error
        except (NoResultFound, MultipleResultsFound, UnicodeDecodeError) as error:
            # SQLite's own message may quote what is no text any more.
            raise self._damaged(error) from error
        except (DataError, OverflowError) as error:
            raise InvalidInput(f"the metastore {self.place} cannot hold a value: {_first_line(error)}") from error
        except UnicodeEncodeError as error:
            raise InvalidInput(
                f"the text {error.object[:60]!r} is not Unicode; the metastore cannot hold it"
            ) from error
        except (DBAPIError, sqlite3.Error) as error:
            if _is_damage(error):
                raise self._damaged(error) from error
            raise MetastoreError(f"the metastore {self.place} refused: {_first_line(error)}") from error

    def _damaged(self, error: Exception) -> Damaged:
        return Damaged(f"the metastore {self.place} is damaged: {_first_line(error)}; {REBUILD}")

    def _make_ours(self, *, create: bool) -> None:
        try:
            with self.engine.connect() as connection:
                names = _table_names(connection)
                ours = _VERSION_TABLE in names and "windrow_identity" in names
                revision = connection.execute(_REVISION).scalar_one_or_none() if ours else None
        except (SQLAlchemyError, sqlite3.Error, UnicodeDecodeError) as error:
            raise self._unreachable(error) from error
        if ours:
            self._check_revision(revision)
        elif any(name.startswith("windrow_") for name in names):
            raise Damaged(f"the metastore {self.place} is damaged: it lacks tables of Windrow's; {REBUILD}")
        elif names:
            raise Incompatible(
                f"the database {self.place} is not a Windrow metastore: it holds the tables "
                f"{', '.join(sorted(names)[:5])}; give the address of an empty database or of a Windrow metastore"
            )
        elif not create:
            raise NotFound(f"the database {self.place} is empty; create a lake there first")
        else:
            self._upgrade()
        if self.is_sqlite:
            self._let_readers_go_on()

    def _let_readers_go_on(self) -> None:
        """Keep SQLite's write-ahead log, with which nobody waits for a writer; it is a property of the file.

        SQLite does not wait for others who change it at the same time.
        """
        ends = time.monotonic() + _SQLITE_BUSY_SECONDS
        while True:
            try:
                with self._named_errors(), self.engine.connect().execution_options(sqlite_begin=None) as connection:
                    connection.exec_driver_sql("PRAGMA journal_mode=WAL")
                return
            except MetastoreError as error:
                if not error.retryable or time.monotonic() > ends:
                    raise
                time.sleep(_SQLITE_BUSY_PAUSE)

    def _check_revision(self, revision: str | None) -> None:
        own = revisions()
        if revision is None or not re.fullmatch(r"\d{4}", str(revision)):
            raise Damaged(f"the metastore {self.place} is damaged: its schema is {revision!r}; {REBUILD}")
        if revision not in own:
            raise Incompatible(
                f"the metastore {self.place} was written by a newer Windrow (its schema is {revision}, this version "
                f"knows up to {own[-1]}); install a newer Windrow"
            )
        if revision != own[-1]:
            self._upgrade()

    def _upgrade(self) -> None:
        try:
            with self.writing() as connection:
                # Two processes that open an empty database at once: the second waits, then finds it made.
                self.one_at_a_time(connection)
                upgrade(connection, _VERSION_TABLE)
        except MetastoreError as error:
            raise MetastoreError(
                f"the metastore {self.place} could not be set up: {error.__cause__ or error}; check that the folder "
                "or the database can be written by you",
                retryable=error.retryable,
            ) from error

    def _unreachable(self, error: Exception) -> MetastoreError | Incompatible | Damaged:
        if "not a database" in str(error):
            return Incompatible(
                f"{self.place} is not an SQLite database; give another path. If it was a metastore, it is damaged: "
                f"{REBUILD}"
            )
        if _is_damage(error):
            return self._damaged(error)
        return MetastoreError(
            f"the metastore {self.place} cannot be reached: {_first_line(error)}; check the address, that the server "
            "runs and that you may connect",
            retryable=not _is_lasting(error),
        )


def plain_address(url: str | URL) -> str:
    """Return the address of a database without user and password, as a lake may write it down."""
    parsed = _parsed(url) if isinstance(url, str) else url
    if parsed.get_backend_name() == "sqlite":
        return f"sqlite:///{Path(parsed.database or '').absolute()}"
    place = {name: value for name, value in parsed.query.items() if name in ("host", "port", "dbname")}
    return URL.create("postgresql", None, None, parsed.host, parsed.port, parsed.database, place).render_as_string()


def _table_names(connection: Connection) -> set[str]:
    if connection.dialect.name == "sqlite":
        # What the inspector asks too, in a tenth of its time: every lake that is opened asks it.
        return set(connection.exec_driver_sql("select name from sqlite_master where type = 'table'").scalars())
    return set(inspect(connection).get_table_names())


def _parsed(url: str) -> URL:
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError) as error:
        raise ConfigError(_how_to_write_a_url(url)) from error
    backend = parsed.get_backend_name()
    if backend == "sqlite":
        return parsed.set(drivername="sqlite")
    if backend in ("postgresql", "postgres"):
        require("postgres")
        return parsed.set(drivername="postgresql+psycopg")
    raise ConfigError(_how_to_write_a_url(url))


def _how_to_write_a_url(url: str) -> str:
    # Only what cannot hold a password is repeated.
    scheme = "".join(re.findall(r"^[A-Za-z]+", url))
    return (
        f"metastore: cannot use the address that starts with {scheme!r}; write sqlite:///path/to/windrow.db or "
        "postgresql://user:password@host/database"
    )


def _sqlite_engine(url: URL, *, create: bool) -> Engine:
    _check_sqlite_path(url, create=create)
    engine = create_engine(
        url.set(drivername=DRIVER),
        connect_args={"timeout": _SQLITE_BUSY_SECONDS},
        execution_options={"compiled_cache": COMPILED},
    )
    event.listen(engine, "connect", _set_up_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def _check_sqlite_path(url: URL, *, create: bool) -> None:
    if not url.database or url.database == ":memory:":
        raise ConfigError("metastore: an SQLite metastore must be a file, since every thread has its own connection")
    if url.query:
        raise ConfigError(
            f"metastore: an SQLite address takes no options, found {', '.join(url.query)}; give a path alone"
        )
    path = Path(url.database).absolute()
    if path.exists() or create:
        kind = network_file_system(path)
        if kind is not None:
            raise ConfigError(
                f"metastore: {path} lies on a network file system ({kind}), where SQLite's locks do not hold; "
                "put windrow.db on a local disk or use postgresql://"
            )
    if not path.exists() and not create:
        raise NotFound(f"metastore: there is no file {path}; create a lake there first")


def _set_up_sqlite(connection: Any, _: Any) -> None:
    # The driver must not open transactions by itself: `_begin_sqlite` does, and says of which kind.
    connection.isolation_level = None
    cursor = connection.cursor()
    for pragma in ("synchronous=FULL", "foreign_keys=ON", "temp_store=MEMORY"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _begin_sqlite(connection: Connection) -> None:
    begin = connection.get_execution_options().get("sqlite_begin", "BEGIN")
    if begin is not None:
        connection.exec_driver_sql(begin)


def _postgres_engine(url: URL) -> Engine:
    options = f"-c lock_timeout={_LOCK_TIMEOUT} -c timezone=UTC"
    return create_engine(url, pool_pre_ping=True, connect_args={"options": options, "connect_timeout": 10})


def _copy(connection: Connection, statement: str, rows: Sequence[tuple[Any, ...]]) -> int:
    """COPY is the driver's own way, so its errors are given the same classes as everywhere else."""
    import psycopg

    try:
        with connection.connection.cursor() as cursor:  # type: ignore[attr-defined]
            with cursor.copy(statement) as copy:
                for row in rows:
                    copy.write_row(row)
            return int(cursor.rowcount)
    except psycopg.IntegrityError as error:
        raise IntegrityError(statement, None, error) from error
    except psycopg.DataError as error:
        raise DataError(statement, None, error) from error
    except psycopg.Error as error:
        raise OperationalError(statement, None, error) from error


def _is_lasting(error: Exception) -> bool:
    """Whether the same call fails in the same way later, until somebody changes an address or a right."""
    cause = getattr(error, "orig", None)
    state = getattr(cause, "sqlstate", None)
    if state is not None:
        return str(state).startswith(_LASTING_STATES)
    code = getattr(cause, "sqlite_errorcode", None)
    # The lower byte is the kind of an error, the rest its details.
    return code & 0xFF in _LASTING_CODES if code is not None else bool(_LASTING_WORDS.search(str(cause)))


def _is_damage(error: Exception) -> bool:
    """Whether SQLite reports its file as damaged, rather than locked, full or out of reach."""
    cause = getattr(error, "orig", None) or error
    if isinstance(cause, UnicodeDecodeError):
        return True
    if not isinstance(cause, sqlite3.Error):
        return False
    code = getattr(cause, "sqlite_errorcode", None)
    is_broken = code is not None and code & 0xFF in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
    # The schema is Windrow's own: a name that is missing, or a key that fits none, was damaged.
    return is_broken or any(sign in str(cause) for sign in _SIGNS_OF_DAMAGE)


def _first_line(error: Exception) -> str:
    return str(getattr(error, "orig", None) or error).strip().splitlines()[0]
