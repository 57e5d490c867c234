"""Servers on loopback for the tests of remote stores."""

import itertools
import re
import threading
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

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


class RangeHandler(BaseHTTPRequestHandler):
    """Serves `server.objects`; a number in place of bytes is a status to answer with, an exception breaks off."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.server.requests.append((self.command, self.path, self.headers.get("Range")))
        found = self.server.objects.get(self.path, 404)
        if isinstance(found, int):
            self.answer(found)
        elif isinstance(found, Exception):
            self.close_connection = True
        else:
            self.serve(found)

    do_HEAD = do_GET  # noqa: N815 (the name that http.server looks for)

    def serve(self, data):
        wanted = re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("Range", ""))
        if wanted is None:
            self.answer(200, data)
            return
        first, last = wanted.groups()
        start = int(first) if first else max(0, len(data) - int(last))
        piece = data[start : int(last) + 1] if first and last else data[start:]
        if piece:
            self.answer(206, piece, {"Content-Range": f"bytes {start}-{start + len(piece) - 1}/{len(data)}"})
        else:
            self.answer(416)

    def answer(self, status, body=b"", headers=()):
        self.send_response(status)
        for name, value in {"Content-Length": len(body), "ETag": '"1"', **dict(headers)}.items():
            self.send_header(name, str(value))
        self.send_header("Last-Modified", "Wed, 01 Jan 2025 00:00:00 GMT")
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture
def range_server():
    """An HTTP server that answers range requests for what is put into its `objects`."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), RangeHandler)
    server.objects, server.requests = {}, []
    server.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()
