"""Servers on loopback for the tests of remote stores."""

import itertools
import threading
import urllib.request

import pytest

from windrow.testing import RangeServer

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


@pytest.fixture
def range_server():
    """An HTTP server that answers range requests for what is put into its `objects`."""
    with RangeServer() as server:
        yield server
