"""A small lake from rows to answers: what an installation must be able to do that has no extra and no Java.

A program of its own, which knows nothing of the checkout: `python small_lake.py FOLDER [--light]`. With `--light` it
refuses an environment in which an extra is installed, and sees that each is named where it is needed.
"""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow as pa

import windrow

EXTRAS = ("pyspark", "pandas", "polars", "psycopg", "opentelemetry", "grpc", "deltalake")
QUERY = "select host, count(*) as points, sum(value) as total from metrics where host <> 'c' group by all order by all"


def rows(number: int) -> pa.Table:
    times = pa.array([60_000_000 * number + each for each in range(3)], pa.timestamp("us", "UTC"))
    return pa.table({"host": ["a", "b", "c"], "timestamp": times, "value": [float(number)] * 3})


def make(folder: str) -> None:
    with windrow.connect(folder) as lake:
        metrics = lake.create_table("metrics", sort="host|timestamp/V2", window="15m")
        for number in range(6):
            metrics.ingest(rows(number))
        assert metrics.compact.run().splits_out == 1
        expected = [{"host": host, "points": 6, "total": 15.0} for host in "ab"]
        assert lake.sql(QUERY).to_dict() == expected
        assert metrics.upkeep.check(data=True).sound
        assert expected == json.loads(command(folder, "sql", QUERY, "--json").stdout)
    log = Path(folder, "metrics", "_delta_log")
    assert len(list(log.glob("*.json"))) == 8, "the mirror follows every version"


def command(folder: str, *words: str) -> subprocess.CompletedProcess[str]:
    windrow_command = str(Path(sys.executable).with_name("windrow"))
    return subprocess.run([windrow_command, "--lake", folder, *words], capture_output=True, text=True, check=False)


def is_light() -> None:
    assert [name for name in EXTRAS if importlib.util.find_spec(name)] == []
    assert shutil.which("java") is None


def refusals(folder: str) -> None:
    """Each extra is named, with the command that installs it, by the call that needs it and by no other."""
    from windrow.runners.session import spark_session

    protobuf = Path(folder, "points.otlp")
    # one resource with one scope with a metric that is called m
    protobuf.write_bytes(bytes([0x0A, 7, 0x12, 5, 0x12, 3, 0x0A, 1, ord("m")]))
    with windrow.connect(folder) as lake:
        metrics = lake.table("metrics")
        calls = {
            "pandas": lake.sql("from metrics").to_pandas,
            "polars": metrics.scan().to_polars,
            "spark": spark_session,
            "postgres": lambda: windrow.connect(folder, metastore="postgresql://localhost/windrow"),
            "otlp": lambda: metrics.ingest(str(protobuf)),
        }
        for extra, call in calls.items():
            said = "nothing"
            try:
                call()
            except windrow.MissingDependency as error:
                said = str(error)
            assert f"which is not installed; run: pip install 'windrow[{extra}]'" in said, said
    answer = command(folder, "compact", "metrics", "--runner", "spark")
    assert answer.returncode == 7, answer
    assert "pip install 'windrow[spark]'" in answer.stderr


if __name__ == "__main__":
    place = sys.argv[1]
    if "--light" in sys.argv:
        is_light()
    make(place)
    if "--light" in sys.argv:
        refusals(place)
    print(f"a small lake was made by Windrow {windrow.__version__} and Python {sys.version.split()[0]}")
