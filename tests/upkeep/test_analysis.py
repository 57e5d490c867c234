"""An analysis learns what is not known of a table, by reading that and nothing else."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from windrow.errors import Damaged, NotFound
from windrow.statistics.catalog import TableCatalog
from windrow.statistics.layout import split_id_of
from windrow.statistics.table_summary import table_statistics

MINUTE = 60_000_000


def rows(start: int, count: int) -> pa.Table:
    numbers = np.arange(start, start + count)
    return pa.table(
        {
            "host": pa.array([f"host-{number % 20}" for number in numbers]),
            "timestamp": pa.array(numbers * MINUTE // 100, pa.timestamp("us")),
            "value": numbers * 0.5,
            "tags": pa.array([[1]] * count),
        }
    )


@pytest.fixture
def filled(lake, table):
    table.ingest(rows(0, 3000))
    return lake.table("events")


def known(table, columns):
    """What the metastore's statistics tell of a table."""
    metastore, record = table.context.metastore, table.context.metastore.table(table.name)
    splits = [split for page in metastore.splits(record.table_id, record.version) for split in page]
    found = TableCatalog(metastore, record.table_id).load([split_id_of(split) for split in splits], columns)
    return table_statistics({split.split_id: split.row_count for split in splits}, found, columns)


def test_all_columns_are_learnt_at_once(filled):
    done = filled.upkeep.analyze()
    assert (done.table, done.rows) == ("events", 3000)
    statistics = known(filled, ["host", "timestamp", "value"])
    assert statistics.row_count == 3000
    assert statistics.column("host").distinct.estimate == 20
    assert statistics.column("host").minimum == "host-0"
    assert statistics.column("value").maximum == 1499.5
    assert statistics.column("value").distinct.estimate == pytest.approx(3000, rel=0.06)
    assert statistics.sample.num_rows == 1024
    assert {row["host"] == f"host-{int(row['value'] * 2) % 20}" for row in statistics.sample.to_pylist()} == {True}


def test_what_is_known_is_not_read_again(filled, monkeypatch):
    first = filled.upkeep.analyze(["host"])
    assert first.columns == first.splits
    assert filled.upkeep.analyze(["host"]).columns == 0
    assert known(filled, ["value"]).columns == {}
    filled.ingest(rows(3000, 100))
    heard = []
    again = filled.upkeep.analyze(on_splits=lambda *done: heard.append(done))
    assert known(filled, ["host"]).column("host").null_count == 0
    assert known(filled, ["value"]).row_count == again.rows == sum(count for count, _ in heard) == 3100


def test_a_column_that_is_not_there_is_named(filled):
    with pytest.raises(NotFound, match="no column 'hots'"):
        filled.upkeep.analyze(["hots"])


def test_an_empty_table_has_nothing_to_learn(table):
    assert table.upkeep.analyze().splits == 0


def test_a_file_that_cannot_be_read_is_named(filled, world):
    store = filled.context.store
    [info, *_] = [info for info in store.list() if info.key.endswith(".parquet")]
    content = store.get(info.key)
    store.put(info.key, content[:50] + bytes(len(content) - 50 - 1000) + content[-1000:])
    with pytest.raises(Damaged, match="windrow check events --data"):
        filled.upkeep.analyze()


def test_statistics_survive_a_merge_and_nothing_is_read_for_them(lake, table):
    for start in (0, 500, 1000):
        table.ingest(rows(start, 500))
    events = lake.table("events")
    events.upkeep.analyze()
    before = known(events, ["host", "value"])
    assert before.column("host").distinct.estimate == 20
    merged = lake.table("events").compact.run(threads=1)
    assert (merged.done, merged.splits_out) == (1, 1)
    after = known(lake.table("events"), ["host", "value"])
    assert after.column("host") == before.column("host")
    assert (after.column("value").minimum, after.column("value").maximum) == (0.0, 749.5)
    assert after.column("value").distinct.estimate == pytest.approx(1500, rel=0.06)
    assert {row["host"] == f"host-{int(row['value'] * 2) % 20}" for row in after.sample.to_pylist()} == {True}
    assert events.upkeep.analyze().columns == 0


def test_what_was_learnt_is_listed_by_column(filled):
    before = {row.column: row for row in filled.inspect.statistics()}
    assert (before["host"].rows, before["host"].learnt_rows, before["host"].distinct) == (3000, 0, None)
    filled.upkeep.analyze(["host", "value"])
    after = {row.column: row for row in filled.inspect.statistics()}
    host = after["host"]
    assert (host.learnt_rows, host.distinct, host.distinct_error, host.is_exact) == (3000, 20, 0.0, True)
    assert (host.nulls, host.minimum, host.maximum) == (0, "host-0", "host-9")
    assert after["timestamp"] == before["timestamp"]
    assert abs(after["value"].distinct - 3000) < 3 * after["value"].distinct_error * 3000


def test_rows_that_come_later_make_counts_vague(filled):
    filled.upkeep.analyze(["host"])
    filled.ingest(rows(9000, 500))
    [host] = [row for row in filled.inspect.statistics() if row.column == "host"]
    assert (host.rows, host.learnt_rows, host.distinct_error, host.is_exact) == (3500, 3000, None, False)
