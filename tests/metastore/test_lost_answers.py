"""What a publish says when the metastore is lost under it: committed, not committed, or unknown, and never wrongly."""

import contextlib
import socket
import sqlite3
import threading

import pyarrow as pa
import pytest
from sqlalchemy import make_url

from windrow.errors import CommitUnknown, MetastoreError, Outcome
from windrow.metastore import CommitKind, CommitState, SqlMetastore, database
from windrow.testing.metastore_cases.samples import TABLE, a_split, a_table, add, begin, everything, ids

COMMIT = b"Q\0\0\0\x0bCOMMIT\0"
"""The message by which a client asks to commit."""
COMMITTED = b"C\0\0\0\x0bCOMMIT\0"
"""The message by which the server says that it has."""


class Proxy:
    """Forwards every connection to PostgreSQL at a Unix socket, until a client asks to commit.

    `lose` says what happens then: nothing (None), the request is lost ("request") or the answer is ("answer"). With
    `gone` nobody can connect again afterwards.
    """

    def __init__(self, server_socket):
        self.lose = None
        self.gone = False
        self.commits = 0
        self._server_socket = server_socket
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._sockets = []
        self._threads = []
        self._run(self._accept)

    def close(self):
        for end in (self._listener, *self._sockets):
            _hang_up(end)
        for thread in self._threads:
            thread.join()

    def _run(self, target, *arguments):
        thread = threading.Thread(target=target, args=arguments)
        self._threads.append(thread)
        thread.start()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.socket(socket.AF_UNIX)
                server.connect(self._server_socket)
                self._sockets += [client, server]
                self._run(self._forward_requests, client, server)
                self._run(self._forward_answers, server, client)

    def _forward_requests(self, client, server):
        with contextlib.suppress(OSError):
            while data := client.recv(65536):
                if COMMIT in data:
                    self.commits += 1
                    if self.lose == "request":
                        break
                server.sendall(data)
        self._cut(client, server)

    def _forward_answers(self, server, client):
        with contextlib.suppress(OSError):
            while data := server.recv(65536):
                if COMMITTED in data and self.lose == "answer":
                    break
                client.sendall(data)
        self._cut(client, server)

    def _cut(self, *ends):
        if self.gone and self.commits:
            _hang_up(self._listener)
        for end in ends:
            _hang_up(end)


def _hang_up(end):
    with contextlib.suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
    end.close()


def plan_a_merge(metastore):
    a_table(metastore)
    metastore.reserve_columns(TABLE, pa.schema([("host", pa.string())]))
    add(metastore, "c1", a_split("s1", "c1"), a_split("s2", "c1"))
    begin(metastore, "c2", CommitKind.COMPACT)


CHANGES = {
    "drop": lambda metastore: metastore.drop_table(TABLE),
    "rename": lambda metastore: metastore.rename_table(TABLE, "readings"),
}
"""Changes of a table as such: one transaction each, and the same again is the same."""


def merge(metastore):
    return metastore.publish("c2", add=[a_split("m", "c2", rows=20)], replace=["s1", "s2"])


@pytest.mark.postgres
@pytest.mark.xdist_group("postgres")
class TestPostgres:
    @pytest.fixture
    def direct(self, postgres_url):
        """A client that nothing is lost for, with a merge to publish."""
        with SqlMetastore(postgres_url) as metastore:
            plan_a_merge(metastore)
            yield metastore

    @pytest.fixture
    def proxy(self, postgres_url):
        forwarding = Proxy(f"{make_url(postgres_url).query['host']}/.s.PGSQL.5432")
        yield forwarding
        forwarding.close()

    @pytest.fixture
    def waits(self):
        """How long the client waited before it read back."""
        return []

    @pytest.fixture
    def address(self, proxy, postgres_url):
        through = make_url(postgres_url).set(host="127.0.0.1", port=proxy.port, query={"sslmode": "disable"})
        return through.render_as_string(hide_password=False)

    @pytest.fixture
    def client(self, direct, address, waits):
        with SqlMetastore(address, sleep=waits.append) as metastore:
            metastore.tables()
            yield metastore

    def test_nothing_is_lost_when_the_proxy_loses_nothing(self, client, proxy, waits):
        assert merge(client).version == 2
        assert (proxy.commits, waits) == (1, [])

    def test_a_lost_request_is_not_committed(self, client, direct, proxy):
        before = everything(direct)
        proxy.lose = "request"
        with pytest.raises(MetastoreError, match="did not answer") as failed:
            merge(client)
        assert (failed.value.outcome, failed.value.retryable) == (Outcome.NOT_COMMITTED, True)
        assert everything(direct) == before
        proxy.lose = None
        assert merge(client).version == 2

    def test_a_lost_answer_is_read_back(self, client, direct, proxy):
        proxy.lose = "answer"
        assert merge(client) == merge(direct)
        assert proxy.commits == 1
        assert ids(direct, 2) == ["m"]

    @pytest.mark.parametrize("change", CHANGES)
    def test_a_lost_answer_to_a_drop_or_a_rename_is_read_back(self, client, direct, proxy, change):
        proxy.lose = "answer"
        CHANGES[change](client)
        assert proxy.commits == 1
        assert [table.name for table in direct.tables()] == ([] if change == "drop" else ["readings"])

    @pytest.mark.parametrize("change", CHANGES)
    def test_a_lost_request_to_drop_or_rename_is_not_committed(self, client, direct, proxy, change):
        before = everything(direct)
        proxy.lose = "request"
        with pytest.raises(MetastoreError, match="did not answer") as failed:
            CHANGES[change](client)
        assert failed.value.outcome is Outcome.NOT_COMMITTED
        assert everything(direct) == before

    @pytest.mark.parametrize("change", CHANGES)
    def test_a_drop_or_rename_is_unknown_when_the_metastore_stays_away(self, client, direct, proxy, change):
        proxy.lose, proxy.gone = "answer", True
        with pytest.raises(CommitUnknown, match="delete nothing until then") as failed:
            CHANGES[change](client)
        assert (failed.value.outcome, failed.value.commit_id) == (Outcome.UNKNOWN, TABLE)
        assert [table.name for table in direct.tables()] == ([] if change == "drop" else ["readings"])

    def test_when_the_metastore_stays_away_the_outcome_is_unknown(self, client, direct, proxy, waits):
        proxy.lose, proxy.gone = "answer", True
        with pytest.raises(CommitUnknown, match="delete nothing until then") as failed:
            merge(client)
        assert (failed.value.outcome, failed.value.commit_id) == (Outcome.UNKNOWN, "c2")
        assert waits == sorted(waits)
        assert len(waits) > 1
        assert direct.commit("c2").state is CommitState.PUBLISHED
        assert merge(direct).version == 2

    def test_an_unknown_commit_may_not_be_committed(self, client, direct, proxy):
        proxy.lose, proxy.gone = "request", True
        with pytest.raises(CommitUnknown):
            merge(client)
        assert direct.commit("c2").state is CommitState.OPEN
        assert merge(direct).version == 2

    def test_publishing_again_while_the_metastore_is_away_stays_unknown(self, client, direct, proxy):
        proxy.lose, proxy.gone = "answer", True
        for _ in range(2):
            with pytest.raises(CommitUnknown):
                merge(client)
        assert direct.table("metrics").version == 2

    @pytest.mark.parametrize("step", ["begun", "checked", "replaced", "added", "versioned"])
    def test_a_connection_lost_before_the_request_is_not_committed(self, direct, postgres, postgres_url, step):
        def terminate(name):
            if name == step:
                query = "select pg_terminate_backend(pid) from pg_stat_activity where datname = %s and pid != %s"
                postgres.execute(query, [make_url(postgres_url).database, postgres.info.backend_pid])

        before = everything(direct)
        with SqlMetastore(postgres_url, at_step=terminate) as client:
            with pytest.raises(MetastoreError, match="did not answer") as failed:
                client.publish("c2", add=[a_split(f"m{n}", "c2", rows=1) for n in range(20)], replace=["s1", "s2"])
            assert failed.value.outcome is Outcome.NOT_COMMITTED
            assert everything(direct) == before

    def test_a_metastore_that_goes_away_before_the_request_has_surely_not_committed(self, direct, proxy, address):
        def go_away(name):
            if name == "added":
                proxy.close()

        with SqlMetastore(address, at_step=go_away) as client:
            with pytest.raises(MetastoreError, match="did not answer") as failed:
                merge(client)
            assert failed.value.outcome is Outcome.NOT_COMMITTED
        assert direct.commit("c2").state is CommitState.OPEN

    def test_a_table_that_is_held_for_too_long_is_not_committed(self, direct, postgres_url, monkeypatch):
        monkeypatch.setattr(database, "_LOCK_TIMEOUT", "50ms")
        with SqlMetastore(postgres_url) as client, direct.database.writing() as connection:
            direct.held(connection, 1)
            with pytest.raises(MetastoreError, match="lock timeout") as failed:
                merge(client)
            assert (failed.value.outcome, failed.value.retryable) == (Outcome.NOT_COMMITTED, True)


class TestSqlite:
    @pytest.fixture
    def metastore(self, sqlite_url, monkeypatch):
        monkeypatch.setattr(database, "_SQLITE_BUSY_SECONDS", 0.05)
        with SqlMetastore(sqlite_url) as opened:
            plan_a_merge(opened)
            yield opened

    def test_a_locked_database_is_not_committed(self, metastore, tmp_path):
        before = everything(metastore)
        other = sqlite3.connect(tmp_path / "windrow.db", isolation_level=None)
        other.execute("begin immediate")
        with pytest.raises(MetastoreError, match="database is locked") as failed:
            merge(metastore)
        assert (failed.value.outcome, failed.value.retryable) == (Outcome.NOT_COMMITTED, True)
        assert everything(metastore) == before
        other.rollback()
        other.close()
        assert merge(metastore).version == 2

    @pytest.mark.parametrize("change", CHANGES)
    def test_a_locked_database_drops_and_renames_nothing(self, metastore, tmp_path, change):
        before = everything(metastore)
        other = sqlite3.connect(tmp_path / "windrow.db", isolation_level=None)
        other.execute("begin immediate")
        with pytest.raises(MetastoreError, match="database is locked") as failed:
            CHANGES[change](metastore)
        assert failed.value.outcome is Outcome.NOT_COMMITTED
        other.rollback()
        other.close()
        assert everything(metastore) == before

    def test_a_full_disk_is_not_committed(self, metastore, sqlite_url, workers, tmp_path):
        before = everything(metastore)
        room = (tmp_path / "windrow.db-wal").stat().st_size + 100
        ((ended, (kind, outcome, message)),) = workers(["publish_with_little_room", sqlite_url, room])
        assert (ended, kind, outcome) == (0, "MetastoreError", Outcome.NOT_COMMITTED)
        assert "windrow.db" in message
        assert everything(metastore) == before
        assert merge(metastore).version == 2

    def test_a_folder_that_is_away_leaves_the_outcome_unknown(self, metastore, sqlite_url, tmp_path):
        away = tmp_path.with_name(f"{tmp_path.name}-away")
        with SqlMetastore(sqlite_url, sleep=lambda _: None) as client:
            # A connection that is open would still have the file.
            client.database.engine.dispose()
            tmp_path.rename(away)
            with pytest.raises(CommitUnknown, match="unable to open database file") as failed:
                merge(client)
            assert failed.value.outcome is Outcome.UNKNOWN
            away.rename(tmp_path)
            assert merge(client).version == 2
