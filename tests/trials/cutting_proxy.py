"""A proxy before PostgreSQL that cuts a connection at a COMMIT: before it arrives, or after it was carried out."""

import contextlib
import select
import socket
import threading
import time


class CuttingProxy:
    """Forwards connections of 127.0.0.1 to a server; use it in a `with` block.

    `cut(nth, of, after, away)` breaks the connection at the nth COMMIT from now on, of transactions that said `of`.
    With `after` the server gets it and its answer is thrown away, else it never arrives. For `away` seconds no new
    connection is let through.
    """

    def __init__(self, address):
        self._address = address
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._lock = threading.Lock()
        self._plan = None
        self._away_until = 0.0
        self.cuts = 0

    def __enter__(self):
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_):
        self._listener.close()

    def cut(self, nth, *, of=b"", after, away):
        with self._lock:
            self._plan = [nth, of, after, away]

    def heal(self):
        """Cut nothing from now on, and let everybody in."""
        with self._lock:
            self._plan, self._away_until = None, 0.0

    def _accept(self):
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            if time.monotonic() < self._away_until:
                client.close()
                continue
            threading.Thread(target=self._serve, args=[client], daemon=True).start()

    def _serve(self, client):
        family = socket.AF_UNIX if isinstance(self._address, str) else socket.AF_INET
        with client, socket.socket(family, socket.SOCK_STREAM) as server, contextlib.suppress(OSError):
            server.connect(self._address)
            said = b""
            while True:
                for ready in select.select([client, server], [], [])[0]:
                    data = ready.recv(65536)
                    if not data:
                        return
                    if ready is client:
                        said += data
                        if b"COMMIT" in data:
                            if self._is_cut(data, said, server):
                                return
                            said = b""
                    (server if ready is client else client).sendall(data)

    def _is_cut(self, data, said, server):
        with self._lock:
            if self._plan is None or self._plan[1] not in said:
                return False
            self._plan[0] -= 1
            if self._plan[0]:
                return False
            (_, _, after, away), self._plan = self._plan, None
            self.cuts += 1
        if after:
            server.sendall(data)
            # The answer says that it is done; nobody hears it.
            server.recv(65536)
        self._away_until = time.monotonic() + away
        return True
