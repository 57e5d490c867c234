"""A QuestDB server of its own for the tests: started from a jar, asked over HTTP, stopped or killed by its process."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

SETTINGS = """\
http.net.bind.to=127.0.0.1:{port}
http.min.enabled=false
pg.enabled=false
line.tcp.enabled=false
line.udp.enabled=false
telemetry.enabled=false
shared.worker.count=1
http.worker.count=1
cairo.partition.encoder.parquet.row.group.size=1000
"""
PATIENCE = 120.0


class QuestDb:
    """One server over one folder."""

    def __init__(self, jar: Path, folder: Path):
        self.jar, self.folder = jar, folder
        self.port = free_port()
        self.process = None
        (folder / "conf").mkdir(parents=True, exist_ok=True)

    def start(self):
        (self.folder / "conf" / "server.conf").write_text(SETTINGS.format(port=self.port))
        command = ["java", "-Xmx1g", "-p", str(self.jar), "-m", "io.questdb/io.questdb.ServerMain"]
        with (self.folder / "server.log").open("ab") as log:
            self.process = subprocess.Popen(
                [*command, "-d", str(self.folder)], stdout=log, stderr=subprocess.STDOUT, start_new_session=True
            )
        wait_until(self._answers, "the server to answer")
        return self

    def _answers(self):
        if self.process.poll() is not None:
            log = (self.folder / "server.log").read_text(errors="replace")
            raise AssertionError(f"QuestDB ended with {self.process.returncode}:\n{log[-4000:]}")
        try:
            return self.ask("select 1").get("count") == 1
        except OSError:
            return False

    def ask(self, query, limit=None):
        """The JSON that the server gives for one statement."""
        words = {"query": query} | ({} if limit is None else {"limit": limit})
        address = f"http://127.0.0.1:{self.port}/exec?{urllib.parse.urlencode(words)}"
        try:
            with urllib.request.urlopen(address, timeout=PATIENCE) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as refusal:
            with refusal:
                raise AssertionError(f"{query}: {refusal.read().decode(errors='replace')}") from None

    def rows(self, query):
        """All rows of a query."""
        return self.ask(query, limit=10_000_000)["dataset"]

    def run(self, *statements, table=None):
        """Statements one after the other; with `table`, wait until its WAL is applied."""
        for statement in statements:
            self.ask(statement)
            if table is not None:
                self.wait_for(table)

    def wait_for(self, table):
        wait_until(lambda: self._is_applied(table), f"the WAL of {table} to be applied")

    def _is_applied(self, table):
        found = self.rows(f"select suspended, writerTxn, sequencerTxn from wal_tables() where name = '{table}'")
        for suspended, written, sequenced in found:
            assert not suspended, f"{table} is suspended"
            if written != sequenced:
                return False
        return True

    def table_folder(self, table):
        """The folder of a table."""
        [[name]] = self.rows(f"select directoryName from tables() where table_name = '{table}'")
        return self.folder / "db" / name

    def stop(self):
        self._end(signal.SIGTERM)

    def kill(self):
        self._end(signal.SIGKILL)

    def _end(self, number):
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(number)
            self.process.wait(timeout=PATIENCE)
        self.process = None


def wait_until(condition, what):
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, f"waited {PATIENCE:.0f} s for {what}"
        time.sleep(0.1)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def jar_of_environment():
    """The jar that QUESTDB_JAR names, or why there is none."""
    named = os.environ.get("QUESTDB_JAR")
    if not named:
        return None, "QUESTDB_JAR is not set: make interop QUESTDB_JAR=/path/to/questdb.jar, the jar from Maven Central"
    path = Path(named).resolve()
    if not path.is_file():
        raise FileNotFoundError(f"QUESTDB_JAR: there is no file {path}")
    return path, ""
