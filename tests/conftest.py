"""What all suites share: one Spark session, one S3 server, and how hard Hypothesis tries."""

import itertools
import os
import threading
import urllib.request

import pytest
from hypothesis import HealthCheck, settings

# The shipped suites explain their failures like tests do.
pytest.register_assert_rewrite("windrow.testing")

# A loaded machine is slow, not wrong.
_PATIENT = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("dev", max_examples=50, **_PATIENT)
settings.register_profile("ci", max_examples=100, derandomize=True, **_PATIENT)
settings.register_profile("long", max_examples=5000, **_PATIENT)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if os.environ.get("CI") else "dev"))


@pytest.fixture(scope="session")
def spark(tmp_path_factory):
    """The one session; tests that use it carry the marks `spark` and `xdist_group("spark")`."""
    from windrow.runners.session import spark_session

    session = spark_session("local[2]", log=tmp_path_factory.mktemp("spark") / "spark.log")
    yield session
    session.stop()


BUCKET = "windrow-tests"
_numbers = itertools.count()


@pytest.fixture(scope="session")
def s3_endpoint():
    """An S3 server with one bucket."""
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    _make_puts_atomic(server._server)
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
