"""Files that no version has or will have are found; those of a run that may yet publish are not."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa
import pytest

import windrow
from windrow.ingest.batch import StreamBatch
from windrow.ingest.settings import IngestSettings
from windrow.upkeep.orphans import find_orphans

NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)
ROWS = pa.table({"host": ["a", "b"], "timestamp": pa.array([NOON, None], pa.timestamp("us", "UTC"))})


@pytest.fixture
def lake(tmp_path):
    with windrow.connect(tmp_path / "lake") as opened:
        opened.create_table("events", sort="host|timestamp/V2")
        yield opened


def an_attempt(lake, batch=0):
    """Begin a batch of a stream and write its files."""
    run = IngestSettings().ingest(lake.context, "events", StreamBatch("q", batch))
    opened = run.open(ROWS.schema)
    return run, opened, list(opened.task.report(ROWS.to_batches(), 0))


def found(lake, later=0):
    now = lake.context.now() + later * 10**6
    return list(find_orphans(lake.context.store, lake.context.metastore, lake.table("events").record, now))


def test_what_is_published_is_no_orphan(lake):
    lake.table("events").ingest(ROWS)
    assert found(lake, later=10**6) == []


def test_a_run_that_may_yet_publish_has_none(lake):
    run, opened, reports = an_attempt(lake)
    assert found(lake) == []
    run.publish(opened.commit.attempt, reports)
    assert found(lake, later=10**6) == []


def test_a_run_whose_lease_ran_out_leaves_data_files_and_sidecars(lake):
    run, _, _ = an_attempt(lake)
    orphans = found(lake, later=1000)
    assert {(each.commit_id, each.attempt) for each in orphans} == {(run.commit_id, 1)}
    stored = {info.key: info.size for info in lake.context.store.list("events")}
    assert {each.key: each.size_bytes for each in orphans} == stored
    assert len(stored) == 4  # a window and the overflow, each with its sidecar


def test_a_run_that_was_given_up_leaves_orphans(lake):
    run, opened, _ = an_attempt(lake)
    run.give_up(opened.commit.attempt)
    assert len(found(lake)) == 4


def test_files_of_an_attempt_that_was_taken_over_are_orphans_at_once(lake):
    an_attempt(lake)
    run, opened, reports = an_attempt(lake)
    assert {each.attempt for each in found(lake)} == {1}
    run.publish(opened.commit.attempt, reports)
    assert {each.attempt for each in found(lake)} == {1}
    assert lake.table("events").describe().rows == 2


def test_a_replaced_split_is_no_orphan_while_a_version_has_it(lake):
    result = lake.table("events").ingest(ROWS)
    table = lake.table("events").record
    metastore = lake.context.metastore
    old = [split.split_id for page in metastore.splits(table.table_id, result.version) for split in page]
    metastore.open_commit(table.table_id, "expire", commit_id="c", lease=60)
    metastore.publish("c", replace=old)
    assert lake.table("events").describe().rows == 0
    assert found(lake) == []


def test_files_of_others_are_passed_by(lake):
    for name in ("notes.txt", "day=1/part-00000.parquet", "_delta_log/0.json"):
        lake.context.store.put(f"events/{name}", b"x")
    assert found(lake) == []


def test_files_of_a_commit_that_nobody_knows_are_orphans(lake):
    lake.context.store.put("events/partition_id=0/window_start=0/ghost-1-0-0.parquet", b"x")
    assert [each.commit_id for each in found(lake)] == ["ghost"]
