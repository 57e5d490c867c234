"""A call of the command line in an empty folder, and a table with a few splits to look at."""

import json
import os
from dataclasses import dataclass

import pyarrow as pa
import pytest

import windrow
from windrow.cli.main import run
from windrow.ingest.late import ArrivalRule
from windrow.ingest.write_task import WriteTask
from windrow.metastore import CommitKind
from windrow.model.split import SplitMetadata

SORT = "metric_name|host|timestamp&region/V2"


@dataclass(frozen=True)
class Call:
    """What a call printed and how it ended."""

    code: int
    out: str
    err: str

    @property
    def json(self):
        return json.loads(self.out)


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty working folder, and no settings in the environment."""
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("WINDROW_")]:
        monkeypatch.delenv(name)
    return tmp_path


@pytest.fixture
def call(here, capsys):
    """Run one command line in this process."""

    def called(*arguments):
        capsys.readouterr()
        code = run(arguments)
        return Call(code, *capsys.readouterr())

    return called


def write_points(table, points):
    """Bring points in as Spark's tasks would, in this process."""
    rows = pa.RecordBatch.from_pylist(points, POINTS)
    metastore, record, commit = table.context.metastore, table.record(), table.context.new_id()
    columns = metastore.reserve_columns(record.table_id, POINTS)
    metastore.open_commit(record.table_id, CommitKind.INGEST, commit_id=commit, lease=60)
    task = WriteTask(
        table.context.url, table.name, record.table_id, record.settings, commit, 1, "test", 0, ArrivalRule(0), columns
    )
    splits = [each for each in task.run([rows], 0) if isinstance(each, SplitMetadata)]
    metastore.publish(commit, add=splits, columns=POINTS.names)


POINTS = pa.schema(
    [
        ("metric_name", pa.string()),
        ("host", pa.string()),
        ("region", pa.string()),
        ("timestamp", pa.timestamp("us", tz="UTC")),
        ("value", pa.float64()),
    ]
)


def point(host, seconds, value):
    micros = None if seconds is None else seconds * 10**6
    return {"metric_name": "cpu", "host": host, "region": "eu", "timestamp": micros, "value": value}


@pytest.fixture
def metrics(here):
    """A table of two versions: three points in two windows, then one more and one without a timestamp."""
    with windrow.connect(here / "lake") as lake:
        table = lake.create_table("metrics", sort=SORT, cold_window="off")
        write_points(
            table, [point("a", 1_700_000_000, 1.0), point("b", 1_700_000_001, 2.0), point("a", 1_700_001_000, 4.0)]
        )
        write_points(table, [point("c", 1_700_001_001, 8.0), point("c", None, 16.0)])
    return "metrics"


@pytest.fixture
def events(call, here):
    """A table with a point of 2020 and one of the overflow window."""
    (here / "points.csv").write_text("host,timestamp\na,2020-01-01T00:00:00Z\nb,\n")
    assert call("create", "events", "--sort", "host|timestamp/V2").code == 0
    assert call("ingest", "events", "points.csv").code == 0
