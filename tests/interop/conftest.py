"""One running QuestDB for all tests of this folder; without a jar they are skipped, and say so."""

import pytest
from tests.interop.server import QuestDb, jar_of_environment


@pytest.fixture(scope="session")
def questdb_jar():
    jar, reason = jar_of_environment()
    if jar is None:
        pytest.skip(reason)
    return jar


@pytest.fixture(scope="session")
def questdb(questdb_jar, tmp_path_factory):
    """A server that the tests share; each makes tables of its own."""
    server = QuestDb(questdb_jar, tmp_path_factory.mktemp("questdb"))
    server.start()
    yield server
    server.stop()
