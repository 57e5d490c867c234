"""A Spark session with sane settings, and a clear word when Java is missing."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from windrow.errors import ConfigError, MissingDependency
from windrow.extras import require
from windrow.runners.java_log import start_with_log

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["check_java", "spark_session"]

_NEEDED_JAVA = 17
_CONNECT = "sc://"
_MASTER, _REMOTE = "spark.master", "spark.remote"
_LOGGING = Path(__file__).with_name("log4j2.properties").as_uri()
_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
    "spark.sql.shuffle.partitions": "8",
    "spark.python.worker.reuse": "true",
    "spark.python.daemon.module": "windrow.runners.daemon",
    "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={_LOGGING}",
}
_CHATTER = ("WARNING:", "Setting default log level", "To adjust logging level")


def spark_session(
    master: str = "local[*]", *, options: Mapping[str, str] | None = None, log: Path | None = None
) -> SparkSession:
    """Return the session that is active, or start one; `options` are Spark's own settings and win over ours.

    A master that starts with `sc://` is a server of Spark Connect: then Java runs there and not here. Java writes to
    stderr as it starts and as it runs; where `log` names a file, it writes there instead.
    """
    require("spark")
    from pyspark.sql import SparkSession

    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    if master.startswith(_CONNECT):
        require("connect")
        return _start({_REMOTE: master, **(options or {})}, None)
    check_java()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    if master.startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    return _start({"spark.app.name": "windrow", _MASTER: master} | _SETTINGS | dict(options or {}), log)


def _start(settings: dict[str, Any], log: Path | None) -> SparkSession:
    from pyspark.sql import SparkSession

    try:
        if log is not None:
            start_with_log(settings, log)
        return SparkSession.builder.config(map=settings).getOrCreate()
    except Exception as error:  # what pyspark and py4j raise has no other root
        raise ConfigError(
            f"Spark did not start: {_problem(error, log)}; check the master "
            f"{settings.get(_MASTER) or settings[_REMOTE]!r} and Spark's options"
        ) from error


def _problem(error: Exception, log: Path | None) -> str:
    """Return the one line that tells; when Java did not even start, it is in the log."""
    lines = log.read_text(errors="replace").splitlines() if log is not None and log.is_file() else []
    errors = [line.strip() for line in lines if not line.startswith(_CHATTER)]
    java = getattr(error, "java_exception", None)
    return str(errors[0] if java is None and errors else java or error).partition("\n")[0]


def check_java() -> int:
    """Return the version of the Java that Spark will run on, or raise MissingDependency with what to do."""
    home = os.environ.get("JAVA_HOME")
    program = str(Path(home, "bin", "java")) if home else shutil.which("java")
    version = _java_version(program) if program else None
    if version is not None and version >= _NEEDED_JAVA:
        return version
    state = f"{program} is version {version}" if version else f"{program} does not run" if program else "none was found"
    raise MissingDependency(
        f"Spark needs Java {_NEEDED_JAVA} or newer, and {state}. Install it (Debian, Ubuntu: sudo apt-get install -y "
        "openjdk-17-jre-headless; Fedora: sudo dnf install java-17-openjdk-headless; macOS: brew install openjdk@17), "
        "or set JAVA_HOME to where it is"
    )


def _java_version(program: str) -> int | None:
    try:
        answer = subprocess.run([program, "-version"], capture_output=True, text=True, timeout=60, check=False)  # noqa: S603
    except OSError:
        return None
    match = re.search(r'version "(?:1\.)?(\d+)', answer.stderr + answer.stdout)
    return int(match[1]) if match else None
