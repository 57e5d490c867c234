"""Every changed byte of a split is found by a check of the data, of a sidecar by any; older files are reported."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.proofs.worlds import visible

import windrow
from windrow.cli.main import run
from windrow.upkeep.check_split import check_split

ROWS = 40_000
"""More than pyarrow writes for us: such a split has pages of ours."""


def readings(count, seed):
    """Rows of one window, with nulls and a nested column."""
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "host": [f"h{n}" for n in rng.integers(0, 300, count)],
            "timestamp": pa.array(1_700_000_100_000_000 + rng.integers(0, 10**8, count), pa.timestamp("us", tz="UTC")),
            "value": pa.array(rng.normal(size=count), mask=rng.random(count) < 0.1),
            "tags": pa.array([[("k", f"v{n % 7}")] for n in range(count)], pa.map_(pa.string(), pa.string())),
        }
    )


@pytest.fixture(scope="module")
def lake(tmp_path_factory):
    with windrow.connect(tmp_path_factory.mktemp("rot") / "lake") as opened:
        table = opened.create_table("events", sort="host|timestamp/V2", window="15m", bloom_filters=["host"])
        table.ingest(readings(ROWS, 0))
        for seed in (1, 2):
            table.ingest(readings(500, seed))
        yield opened


def flips(data, count, seed):
    """The same bytes with one bit of one byte changed, at random places, and at both ends."""
    rng = np.random.default_rng(seed)
    for place in [0, 5, len(data) - 1, *rng.integers(0, len(data), count).tolist()]:
        yield place, data[:place] + bytes([data[place] ^ 1 << int(rng.integers(0, 8))]) + data[place + 1 :]


def missed(lake, key_of, count, *, data):
    """The places of single flips, in files of every kind, that a check does not find."""
    table, store = lake.table("events"), lake.context.store
    found = []
    for number, split in enumerate(visible(table)):
        key = key_of(split)
        clean = store.get(key)
        assert check_split(store, split, table.settings(), data=data) == []
        for place, damaged in flips(clean, count, number):
            store.put(key, damaged)
            if not check_split(store, split, table.settings(), data=data):
                found.append((key, place))
        store.put(key, clean)
    return found


@pytest.mark.parametrize("count", [40, pytest.param(5000, marks=pytest.mark.long)])
class TestEveryChangedByte:
    def test_of_a_split_is_found(self, lake, count):
        assert missed(lake, lambda split: split.key, count, data=True) == []

    def test_of_a_sidecar_is_found(self, lake, count):
        assert missed(lake, lambda split: split.sidecar.key, count, data=False) == []


def test_the_check_of_a_table_names_the_file_and_a_merged_split_is_protected_too(tmp_path):
    with windrow.connect(tmp_path) as lake:
        table = lake.create_table("events", sort="host|timestamp/V2", window="15m", policy={"merge_factor": 2})
        for seed in (1, 2):
            table.ingest(readings(300, seed))
        assert table.compact.run().done == 1
        (split,) = visible(table)
        path = tmp_path / split.key
        clean = path.read_bytes()
        for _, damaged in flips(clean, 3, 7):
            path.write_bytes(damaged)
            assert split.key in {finding.place for finding in table.upkeep.check(data=True).findings}
        path.write_bytes(clean)
        result = table.upkeep.check(data=True)
        assert (result.sound, result.unprotected) == (True, 0)


def test_a_damaged_split_that_a_rule_does_not_contradict_is_found_by_its_digest_alone(lake):
    table, store = lake.table("events"), lake.context.store
    split = visible(table)[0]
    clean = store.get(split.key)
    # four bytes of magic at the beginning are read by nobody
    store.put(split.key, b"PAR2" + clean[4:])
    (finding,) = check_split(store, split, table.settings(), data=True)
    assert (finding.kind, finding.place) == ("file", split.key)
    assert split.digest in finding.problem
    assert check_split(store, replace(split, digest=None), table.settings(), data=True) == []
    store.put(split.key, clean)


def test_a_footer_that_makes_no_sense_is_a_finding_and_no_error(lake):
    table, store = lake.table("events"), lake.context.store
    split = visible(table)[0]
    clean = store.get(split.key)
    # the codec of a column becomes one that nobody knows
    assert b"\x15\x0c\x16" in clean
    store.put(split.key, clean[::-1].replace(b"\x16\x0c\x15", b"\x16\x2c\x15", 1)[::-1])
    try:
        findings = check_split(store, split, table.settings(), data=True)
    finally:
        store.put(split.key, clean)
    assert {finding.place for finding in findings} == {split.key}
    assert any("unknown codec" in finding.problem for finding in findings)


def test_splits_without_a_digest_stay_readable_and_are_reported_as_unprotected(tmp_path, capsys):
    with windrow.connect(tmp_path / "lake") as lake:
        table = lake.create_table("events", sort="host|timestamp/V2", window="15m", mirror=False)
        for seed in (1, 2):
            table.ingest(readings(300, seed))
    database = sqlite3.connect(tmp_path / "lake" / "windrow.db")
    with database:
        database.execute("update windrow_splits set digest = null where rowid = 1")
    database.close()
    with windrow.connect(tmp_path / "lake") as lake:
        table = lake.table("events")
        assert lake.sql("select count(*) as n from events").to_arrow().to_pylist() == [{"n": 600}]
        assert [table.upkeep.check(data=data).unprotected for data in (False, True)] == [1, 1]
    assert run(["--lake", str(tmp_path / "lake"), "check", "events", "--data", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["unprotected"] == 1


def test_a_registered_file_is_unprotected(tmp_path):
    pq.write_table(readings(100, 3).drop_columns(["tags"]), tmp_path / "foreign.parquet")
    with windrow.connect(tmp_path / "lake") as lake:
        table = lake.create_table("events", sort="host|timestamp/V2", window="15m")
        table.register.run([str(tmp_path / "foreign.parquet")])
        result = table.upkeep.check(data=True)
        assert (result.sound, result.splits, result.unprotected) == (True, 1, 1)
