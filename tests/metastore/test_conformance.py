"""Both databases keep the contract of a metastore."""

import pytest

from windrow.metastore import SqlMetastore
from windrow.testing import MetastoreTests
from windrow.testing.metastore_cases.machine import MachineCases


class SqlClients:
    """Any number of clients on the database of a test."""

    @pytest.fixture
    def open_again(self, url, clock):
        opened = []

        def open_client():
            opened.append(SqlMetastore(url, clock=clock))
            return opened[-1]

        yield open_client
        for client in opened:
            client.close()

    @pytest.fixture
    def metastore(self, open_again):
        return open_again()


class TestSqlite(SqlClients, MetastoreTests):
    @pytest.fixture
    def url(self, sqlite_url):
        return sqlite_url


@pytest.mark.postgres
@pytest.mark.xdist_group("postgres")
class TestPostgres(SqlClients, MetastoreTests):
    @pytest.fixture
    def url(self, postgres_url):
        return postgres_url


@pytest.mark.long
class TestManySequences(SqlClients, MachineCases):
    machine_examples = 300

    @pytest.fixture
    def clock(self):
        return None
