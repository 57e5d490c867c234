"""Databases for the tests: an SQLite file, and the PostgreSQL of the test session."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from windrow.metastore import SqlMetastore


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
