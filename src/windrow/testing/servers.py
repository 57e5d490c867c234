"""A web server on loopback that answers range requests, counts them, and misbehaves on plan."""

from __future__ import annotations

import hashlib
import re
import threading
import time
from collections.abc import Callable
from enum import StrEnum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple, Self

from windrow.closing import Closing

__all__ = ["Misbehaviour", "RangeServer", "Request"]


class Misbehaviour(StrEnum):
    """What a server does wrong."""

    NO_RANGES = "no ranges"
    """It answers a request for a range with the whole object."""
    SHORT = "short"
    """It breaks off in the middle of an answer."""
    HANG_UP = "hang up"
    """It closes the connection without an answer."""


class Request(NamedTuple):
    """One request that came in."""

    method: str
    path: str
    range: str | None


def _well(_: Request) -> None:
    return None


class RangeServer(Closing):
    """Serves `objects` (path to bytes; a number is a status to answer with); use it in a `with` block.

    `requests` are those that came in, `sent` the bytes of objects that went out. `behave` is called with each request
    and may give a status to answer with, a `Misbehaviour`, or seconds to wait; None is good behaviour.
    """

    def __init__(self) -> None:
        self.objects: dict[str, bytes | int] = {}
        self.requests: list[Request] = []
        self.sent = 0
        self._etag = b"", '""'
        self.behave: Callable[[Request], int | float | Misbehaviour | None] = _well
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.owner = self
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})

    @property
    def url(self) -> str:
        """Where the server listens."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def etag(self, data: bytes) -> str:
        """The etag of an object, which other bytes do not have."""
        if self._etag[0] is not data:
            self._etag = data, f'"{hashlib.blake2b(data, digest_size=8).hexdigest()}"'
        return self._etag[1]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def close(self) -> None:
        """Stop."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    """A server that knows whose it is."""

    owner: RangeServer

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of clients that went away."""


class _Handler(BaseHTTPRequestHandler):
    """Answers one connection."""

    server: _Server
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        request = Request(self.command, self.path, self.headers.get("Range"))
        self.server.owner.requests.append(request)
        wanted = self.server.owner.behave(request)
        if isinstance(wanted, float):
            time.sleep(wanted)
        stored = self.server.owner.objects.get(self.path, 404)
        if wanted is Misbehaviour.HANG_UP:
            self.close_connection = True
        elif isinstance(wanted, int):
            self._answer(wanted)
        elif isinstance(stored, int):
            self._answer(stored)
        else:
            self._serve(stored, request, wanted)

    do_HEAD = do_GET  # noqa: N815 (the name that http.server looks for)

    def _serve(self, data: bytes, request: Request, wanted: object) -> None:
        match = re.fullmatch(r"bytes=(\d*)-(\d*)", request.range or "")
        if match is None or wanted is Misbehaviour.NO_RANGES:
            self._answer(200, data, data)
            return
        first, last = match.groups()
        start = int(first) if first else max(0, len(data) - int(last))
        piece = data[start : int(last) + 1] if first and last else data[start:]
        if not piece:
            self._answer(416)
            return
        place = {"Content-Range": f"bytes {start}-{start + len(piece) - 1}/{len(data)}"}
        self._answer(206, piece, data, place, short=wanted is Misbehaviour.SHORT)

    def _answer(
        self, status: int, body: bytes = b"", of: bytes = b"", headers: Any = (), *, short: bool = False
    ) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": len(body), "ETag": self.server.owner.etag(of), **dict(headers)}.items():
            self.send_header(name, str(value))
        self.send_header("Last-Modified", "Wed, 01 Jan 2025 00:00:00 GMT")
        self.end_headers()
        if self.command == "GET":
            sent = body[: len(body) // 2] if short else body
            self.server.owner.sent += len(sent)
            self.wfile.write(sent)
            self.close_connection = self.close_connection or short

    def log_message(self, *_: Any) -> None:
        pass
