"""What a table was: its columns at a version, and the versions that led there."""

from __future__ import annotations

import pyarrow as pa
import pytest

import windrow

UTC = pa.timestamp("us", "UTC")


def rows(**columns):
    count = len(next(iter(columns.values())))
    return pa.table({"timestamp": pa.array(range(count), UTC), **columns})


@pytest.fixture
def table(tmp_path):
    with windrow.connect(tmp_path / "lake") as lake:
        yield lake.create_table("events", sort="host|timestamp/V2", window="1h")


class TestSchema:
    def test_it_is_that_of_the_version(self, table):
        table.ingest(rows(host=["a"], n=pa.array([1], pa.int32())))
        table.ingest(rows(host=["b"], n=pa.array([2], pa.int64()), zone=["x"]))
        assert table.schema.field("n").type == pa.int64()
        assert "zone" in table.schema.names
        assert "zone" not in table.at(version=1).schema.names

    def test_rows_have_it(self, table):
        table.ingest(rows(host=["a"], n=[1]))
        assert table.scan().to_arrow().schema.equals(table.schema)

    def test_an_empty_table_has_what_its_settings_lead_to_expect(self, table):
        assert table.schema.names == table.scan().to_arrow().schema.names
        assert {"host", "timestamp"} <= set(table.schema.names)


class TestHistory:
    def test_every_version_says_what_made_it(self, table):
        added = [table.ingest(rows(host=[host, host])) for host in "ab"]
        table.compact.run()
        table.upkeep.expire.run(retention="1d")
        found = table.history()
        assert [each.kind for each in found] == [each.kind for each in table.inspect.commits()]
        assert [each.version for each in found] == list(range(table.version(), 0, -1))
        assert [found[-1].commit_id, found[-2].commit_id] == [each.commit_id for each in added]
        assert (found[-1].splits_added, found[-1].rows_added, found[-1].rows_removed) == (1, 2, 0)
        assert (found[0].splits_removed, found[0].rows_removed) == (1, 4)

    def test_it_ends_at_the_version_that_is_read_and_can_be_cut(self, table):
        for host in "abc":
            table.ingest(rows(host=[host]))
        assert [each.version for each in table.at(version=2).history()] == [2, 1]
        assert [each.version for each in table.history(limit=1)] == [3]

    def test_a_commit_that_is_open_made_no_version(self, table):
        record = table.record()
        table.context.metastore.open_commit(record.table_id, "ingest", commit_id="open", lease=60)
        assert len(table.history()) == 0
        assert [each.commit_id for each in table.inspect.commits()] == ["open"]
