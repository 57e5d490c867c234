"""What is refused when a metastore is opened, with words that help, and that nothing is left behind then."""

import sqlite3
from functools import partial
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import make_url, text

from windrow.errors import ConfigError, Incompatible, MetastoreError, NotFound
from windrow.metastore import SqlMetastore, database
from windrow.metastore.migrate import revisions
from windrow.network_disks import network_file_system
from windrow.testing.metastore_cases.samples import a_table, everything

NETWORK_MOUNTS = Path(__file__).with_name("mountinfo.txt")


def refusal(url, error, *, retryable=None, **options):
    """Return the words with which an address is refused."""
    with pytest.raises(error) as refused:
        SqlMetastore(url, **options)
    assert retryable in (None, refused.value.retryable)
    return str(refused.value)


def tables_of(url):
    with psycopg.connect(url) as connection:
        rows = connection.execute("select tablename from pg_tables where schemaname = 'public' order by 1")
        return [name for (name,) in rows]


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


# Addresses


@pytest.mark.parametrize(
    "url",
    [
        "",
        "windrow.db",
        "/var/lib/windrow.db",
        "mysql://user:secret@host/db",
        "s3://bucket/lake",
        "postgresql//user:secret@host/db",
        "postgresql://user:secret@host:port/db",
        "sqllite:///windrow.db",
    ],
)
def test_an_address_of_another_kind_is_refused_and_the_right_kinds_are_named(url):
    words = refusal(url, ConfigError)
    assert "sqlite:///path/to/windrow.db or postgresql://" in words
    assert "secret" not in words


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///", "sqlite:///:memory:", "sqlite+pysqlite:///:memory:"])
def test_a_metastore_in_memory_is_refused(url):
    assert "must be a file" in refusal(url, ConfigError)


@pytest.mark.parametrize("options", ["mode=memory&uri=true", "cache=shared", "timeout=1"])
def test_an_sqlite_address_has_no_options(tmp_path, options):
    assert "takes no options" in refusal(f"sqlite:///file:{tmp_path}/windrow.db?{options}", ConfigError)
    assert contents(tmp_path) == {}


def test_the_driver_is_ours_to_choose(tmp_path):
    with SqlMetastore(f"sqlite+aiosqlite:///{tmp_path}/windrow.db") as metastore:
        assert metastore.tables() == []


# Databases that are not ours


def test_a_metastore_of_a_newer_version_is_left_alone(metastore, url):
    a_table(metastore)
    before = everything(metastore)
    with metastore.database.writing() as connection:
        connection.execute(text("update windrow_migrations set version_num = '9999'"))
    words = refusal(url, Incompatible)
    assert f"newer Windrow (its schema is 9999, this version knows up to {revisions()[-1]})" in words
    assert everything(metastore) == before


def test_an_sqlite_database_of_somebody_else_is_left_alone(tmp_path):
    path = tmp_path / "photos.db"
    with sqlite3.connect(path) as connection:
        connection.execute("create table photos (name text)")
    connection.close()
    before = contents(tmp_path)
    for create in (True, False):
        words = refusal(f"sqlite:///{path}", Incompatible, create=create)
        assert "not a Windrow metastore: it holds the tables photos" in words
    assert contents(tmp_path) == before


@pytest.mark.parametrize("data", [b"just some text, and more of it\n" * 100, bytes(range(256)) * 20])
def test_a_file_that_is_no_database_is_left_alone(tmp_path, data):
    path = tmp_path / "notes.txt"
    path.write_bytes(data)
    assert "is not an SQLite database" in refusal(f"sqlite:///{path}", Incompatible)
    assert contents(tmp_path) == {"notes.txt": data}


@pytest.mark.postgres
@pytest.mark.xdist_group("postgres")
def test_a_postgresql_database_of_somebody_else_is_left_alone(empty_postgres_url):
    with psycopg.connect(empty_postgres_url) as connection:
        connection.execute("create table photos (name text)")
    for create in (True, False):
        words = refusal(empty_postgres_url, Incompatible, create=create)
        assert "not a Windrow metastore: it holds the tables photos" in words
    assert tables_of(empty_postgres_url) == ["photos"]


def test_without_create_a_missing_file_is_not_made(tmp_path):
    words = refusal(f"sqlite:///{tmp_path}/windrow.db", NotFound, create=False)
    assert f"there is no file {tmp_path}/windrow.db" in words
    assert contents(tmp_path) == {}


@pytest.mark.postgres
@pytest.mark.xdist_group("postgres")
def test_without_create_an_empty_database_stays_empty(empty_postgres_url):
    assert "is empty; create a lake there first" in refusal(empty_postgres_url, NotFound, create=False)
    assert tables_of(empty_postgres_url) == []


def test_a_set_up_that_fails_leaves_nothing(empty_url, monkeypatch):
    upgrade = database.upgrade

    def fail_at_the_end(connection, version_table):
        upgrade(connection, version_table)
        connection.execute(text("select * from nothing"))

    monkeypatch.setattr(database, "upgrade", fail_at_the_end)
    assert "could not be set up" in refusal(empty_url, MetastoreError)
    assert "is empty" in refusal(empty_url, NotFound, create=False)
    monkeypatch.undo()
    SqlMetastore(empty_url).close()


# Databases that cannot be reached


@pytest.mark.parametrize("path", ["/proc/windrow.db", "{file}/windrow.db", "{folder}/missing/windrow.db", "{folder}"])
def test_a_place_that_cannot_be_written_is_named(tmp_path, path):
    file = tmp_path / "file"
    file.write_text("text")
    place = path.format(file=file, folder=tmp_path)
    words = refusal(f"sqlite:///{place}", MetastoreError, retryable=False)
    assert place in words
    assert "unable to open database file" in words
    assert contents(tmp_path) == {"file": b"text"}


@pytest.mark.parametrize("place", ["@127.0.0.1:1/db", "@/db?host=/no/such/folder"])
def test_a_server_that_does_not_run_is_named_without_the_password(place):
    words = refusal(f"postgresql://user:secret{place}", MetastoreError, retryable=True)
    assert "cannot be reached" in words
    assert "secret" not in words


def test_a_password_among_the_options_of_an_address_is_not_repeated():
    assert "secret" not in refusal("postgresql://127.0.0.1:1/db?user=me&password=secret", MetastoreError)


@pytest.mark.postgres
@pytest.mark.xdist_group("postgres")
class TestPostgres:
    @pytest.fixture
    def guest(self, postgres):
        """A role that needs a password."""
        postgres.execute("create role windrow_guest login password 'secret'")
        rules = Path(postgres.execute("show hba_file").fetchone()[0])
        plain = rules.read_text()
        rules.write_text("local all windrow_guest scram-sha-256\n" + plain)
        postgres.execute("select pg_reload_conf()")
        yield "windrow_guest"
        rules.write_text(plain)
        postgres.execute("select pg_reload_conf()")
        postgres.execute("drop role windrow_guest")

    def test_a_wrong_password_is_not_repeated(self, postgres_url, guest):
        address = make_url(postgres_url).set(username=guest, password="letmein")
        words = refusal(address.render_as_string(hide_password=False), MetastoreError, retryable=False)
        assert "password authentication failed" in words
        assert "letmein" not in words

    def test_a_role_that_may_not_make_tables_is_told_so(self, empty_postgres_url, guest):
        address = make_url(empty_postgres_url).set(username=guest, password="secret")
        words = refusal(address.render_as_string(hide_password=False), MetastoreError, retryable=False)
        assert "could not be set up" in words
        assert "permission denied" in words
        assert "secret" not in words
        assert tables_of(empty_postgres_url) == []

    def test_a_database_that_is_not_there_is_named(self, postgres_url):
        nowhere = make_url(postgres_url).set(database="nowhere").render_as_string()
        assert '"nowhere" does not exist' in refusal(nowhere, MetastoreError, retryable=False)

    def test_a_role_that_is_not_there_or_may_see_nothing_is_told_so_once(self, postgres_url, guest):
        nobody = make_url(postgres_url).set(username="nobody").render_as_string()
        assert '"nobody" does not exist' in refusal(nobody, MetastoreError, retryable=False)
        address = make_url(postgres_url).set(username=guest, password="secret")
        words = refusal(address.render_as_string(hide_password=False), MetastoreError, retryable=False)
        assert "permission denied for table windrow_migrations" in words


# Network file systems


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/", None),
        ("/home/me/lake", None),
        ("/mnt/share/lake", "nfs4"),
        ("/mnt/share", "nfs4"),
        ("/mnt/share/local/lake", None),
        ("/mnt/shared", None),
        ("/mnt/with space/lake", "cifs"),
        ("/mnt/bucket/a/b", "fuse.s3fs"),
        ("/mnt/twice", "nfs"),
        ("/mnt/share/../home", None),
    ],
)
def test_the_innermost_mount_decides(path, kind):
    assert network_file_system(Path(path), NETWORK_MOUNTS) == kind


def test_where_the_system_does_not_tell_nothing_is_known(tmp_path):
    assert network_file_system(Path("/mnt/share"), tmp_path / "missing") is None


def test_sqlite_on_a_network_file_system_is_refused(monkeypatch):
    fake = partial(network_file_system, mounts=NETWORK_MOUNTS)
    monkeypatch.setattr(database, "network_file_system", fake)
    words = refusal("sqlite:////mnt/share/windrow.db", ConfigError)
    assert "/mnt/share/windrow.db lies on a network file system (nfs4)" in words
    assert "use postgresql://" in words
