"""Checkpoints hold what the entries hold, as deltalake would write it, and whoever begins with one reads the same."""

from __future__ import annotations

import json
import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.proofs.worlds import compact, points, visible

from windrow.mirror import follow
from windrow.mirror.checkpoint_rows import SCHEMA
from windrow.mirror.checkpoints import Checkpoints
from windrow.mirror.log import Log
from windrow.storage import open_store

WEEK = 7 * 24 * 3600 * 1000


@pytest.fixture
def log(lake, table):
    """A log of ingests and merges."""
    draw = random.Random(3)
    while table.version() < 24:
        if len(visible(table)) > 4 and draw.random() < 0.3:
            compact(table, [split for split in visible(table) if split.window == visible(table)[0].window])
        else:
            table.ingest(points(draw.choice((3, 20, 40)), host=draw.choice("abc")))
    return Log(lake.context.store, table.record().folder)


def rows(log, number):
    """The rows of a checkpoint, in an order of their own."""
    content = log.find(f"{number:020d}.checkpoint.parquet")
    return sorted(
        json.dumps(plain(each), sort_keys=True) for each in pq.read_table(pa.BufferReader(content)).to_pylist()
    )


def plain(value):
    """Without what is null: files may have a column of nothing, or none; maps are pairs in no order."""
    if isinstance(value, dict):
        return {name: plain(each) for name, each in value.items() if each is not None and name != "dataChange"}
    if isinstance(value, list):
        return sorted([plain(each) for each in value], key=str)
    return value


def test_it_has_the_rows_that_deltalake_writes(lake, log):
    checkpoints = Checkpoints(log)
    assert checkpoints.make(log.last_number())
    own = rows(log, log.last_number())
    DeltaTable(str(lake.context.store.root / "events")).create_checkpoint()
    theirs = rows(log, log.last_number())
    assert [each for each in own if '"remove"' in each], "merges removed files"
    # the other library repeats of a removed file what was said when it appeared
    assert {json.loads(each)["remove"]["path"] for each in theirs if '"remove"' in each} == {
        json.loads(each)["remove"]["path"] for each in own if '"remove"' in each
    }
    assert [each for each in own if '"remove"' not in each] == [each for each in theirs if '"remove"' not in each]


def test_readers_see_the_same_when_the_entries_before_are_gone(lake, table, log):
    place, last = lake.context.store.root / "events", log.last_number()
    whole = DeltaTable(str(place))
    Checkpoints(log).extend(last - 1)
    for number in range(last - 1):
        log.store.delete(log.key(number))
    begun = DeltaTable(str(place))
    assert begun.version() == whole.version() == last
    assert sorted(begun.file_uris()) == sorted(whole.file_uris())
    assert begun.metadata().configuration == whole.metadata().configuration
    assert begun.schema() == whole.schema()
    assert begun.transaction_version(f"windrow.{table.record().table_id}") == last
    assert begun.to_pyarrow_table().num_rows == table.scan().count()


def test_a_whole_log_and_the_newest_checkpoint_give_the_same_rows(log):
    checkpoints = Checkpoints(log)
    for number in (5, 11, 12, 23):
        checkpoints.extend(number)
        begun = rows(log, number)
        assert checkpoints.make(number)
        assert begun == rows(log, number)
    assert checkpoints.problem(23, None) is None
    assert json.loads(log.find("_last_checkpoint"))["version"] == 23


@pytest.mark.parametrize("change", [lambda content: content[:-9], lambda content: b"", lambda content: content + b" "])
def test_a_damaged_checkpoint_is_no_base(log, change):
    checkpoints, name = Checkpoints(log), f"{log.folder}/{11:020d}.checkpoint.parquet"
    checkpoints.extend(11)
    log.store.put(name, change(log.store.get(name)))
    assert checkpoints._newest_before(20) is None
    checkpoints.extend(20)
    assert checkpoints.problem(20, None) is None


def test_a_log_with_a_damaged_entry_gets_none(log, caplog):
    log.store.put(log.key(7), b"{")
    assert not Checkpoints(log).make(11)
    assert "entry 7 is damaged" in caplog.text
    log.store.delete(log.key(7))
    assert not Checkpoints(log).make(11)
    assert not Checkpoints(log).numbers()


def test_one_that_cannot_be_written_is_no_trouble_of_the_commit(table, monkeypatch, caplog):
    def fail(_log, _number):
        raise OSError("no space")

    monkeypatch.setattr(follow, "CHECKPOINT_EVERY", 2)
    monkeypatch.setattr(Checkpoints, "extend", fail)
    table.ingest(points(1))
    table.ingest(points(2))
    assert table.version() == 2
    assert "no checkpoint 2 was made, readers take longer: no space" in caplog.text


PATHS = st.sampled_from("abcdef")
CHANGES = st.one_of(
    st.builds(lambda path, size: {"add": added(path, size)}, PATHS, st.integers(0, 9)),
    st.builds(lambda path, moment: {"remove": removed(path, moment)}, PATHS, st.integers(0, 3 * WEEK) | st.none()),
    st.builds(lambda app, version: {"txn": {"appId": app, "version": version}}, PATHS, st.integers(0, 9)),
    st.builds(lambda name: {"metaData": described(name)}, PATHS),
    st.builds(lambda moment: {"commitInfo": {"timestamp": moment}}, st.integers(0, 3 * WEEK)),
)
ENTRIES = st.lists(
    st.lists(
        CHANGES, min_size=1, max_size=4, unique_by=lambda each: str(each.get("add") or each.get("remove") or each)[:20]
    ),
    min_size=2,
    max_size=9,
)


def added(path, size):
    values = {"partition_id": "0", "window_start": None}
    return {"path": path, "partitionValues": values, "size": size, "modificationTime": 1, "dataChange": True}


def removed(path, moment):
    return {"path": path, "dataChange": True} | ({} if moment is None else {"deletionTimestamp": moment})


def described(name):
    shape = {"provider": "parquet", "options": {}}
    return {"id": name, "format": shape, "schemaString": "{}", "partitionColumns": [], "configuration": {"a": name}}


@given(ENTRIES, st.sets(st.integers(0, 8)))
@settings(max_examples=60, deadline=None)
def test_steps_and_whole_logs_agree_whatever_the_entries_say(entries, steps):
    log = Log(open_store("memory:///"), "t")
    moment = 0
    for number, actions in enumerate(entries):
        for each in actions:  # time goes on
            if "commitInfo" in each:
                moment = each["commitInfo"]["timestamp"] = max(moment, each["commitInfo"]["timestamp"])
            elif "deletionTimestamp" in each.get("remove", {}):
                moment = each["remove"]["deletionTimestamp"] = max(moment, each["remove"]["deletionTimestamp"])
        assert log.append(number, actions)
    checkpoints, last = Checkpoints(log), len(entries) - 1
    for step in sorted(steps):
        if step < last:
            checkpoints.extend(step)
    checkpoints.extend(last)
    begun = rows(log, last)
    assert checkpoints.make(last)
    assert begun == rows(log, last)
    content = log.find(f"{last:020d}.checkpoint.parquet")
    assert pq.read_schema(pa.BufferReader(content)).equals(SCHEMA)
