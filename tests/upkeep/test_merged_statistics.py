"""Merging splits of which statistics are known reads no data for these, and they are as if collected anew."""

from __future__ import annotations

from collections import Counter

import pytest
from tests.proofs.worlds import World
from tests.upkeep.test_cardinality import points

from windrow.statistics.catalog import TableCatalog
from windrow.statistics.layout import split_id_of
from windrow.testing import RecordingStore
from windrow.upkeep.split_learning import Lesson, learn_split

COLUMNS = ("metric_name", "host", "zone", "value", "timestamp", "timeseries_id")


def bytes_of_data(store: RecordingStore, since: int) -> Counter[str]:
    """Bytes of data files that were read, by verb."""
    read: Counter[str] = Counter()
    for call in store.calls[since:]:
        if call.key.endswith(".parquet"):
            read[call.verb] += call.received
    return read


def merged(folder, *, analyzed: bool):
    """A table of four splits that were merged into one; what was read of data meanwhile, and the opened lake."""
    folder.mkdir()
    world = World(folder)
    world.store = store = RecordingStore(world.store)
    lake = world.open()
    sort = "metric_name|host|timeseries_id|timestamp/V2"
    table = lake.create_table("metrics", sort=sort, window="15m", mirror=False)
    for part in range(4):
        table.ingest(points(0, 3000, hosts=1500, first_host=600 * part))
    if analyzed:
        table.upkeep.analyze()
    world.clock.advance(86_400)
    since = len(store.calls)
    assert table.compact.run(threads=1).splits_out == 1
    return lake, bytes_of_data(store, since)


def test_no_data_is_read_for_the_statistics_of_a_merged_split(tmp_path):
    with_statistics, read = merged(tmp_path / "analyzed", analyzed=True)
    without, expected = merged(tmp_path / "plain", analyzed=False)
    assert sum(expected.values()) > 0
    assert read == expected
    assert with_statistics.table("metrics").inspect.cardinality().missing == ()
    assert without.table("metrics").inspect.cardinality().missing != ()
    with_statistics.close()
    without.close()


def test_estimates_are_those_of_statistics_collected_anew(tmp_path):
    lake, _ = merged(tmp_path / "analyzed", analyzed=True)
    with lake:
        table, context = lake.table("metrics"), lake.context
        record = table.record()
        [split] = [each for page in context.metastore.splits(record.table_id, record.version) for each in page]
        columns = {each.name: each.type for each in context.metastore.columns(record.table_id)}
        anew = learn_split(context.store, Lesson(split, columns, ("host", "zone")), {}, {}, table="metrics")
        inherited = TableCatalog(context.metastore, record.table_id).load([split_id_of(split)], COLUMNS)[split.split_id]
        for name in COLUMNS:
            one, other = inherited[name].sketch, anew.columns[name].sketch
            assert one.estimate == pytest.approx(other.estimate, rel=3 * (one.error + other.error) or 1e-9), name
            assert inherited[name].synopses.whole == anew.columns[name].synopses.whole
            assert inherited[name].known_rows == anew.columns[name].known_rows == split.row_count
        found = table.inspect.cardinality()
        [pair] = found.pairs
        sketch = anew.labels.pairs["host", "zone"]
        assert pair.distinct == pytest.approx(sketch.estimate, rel=3 * (pair.error + sketch.error))
        for row in found.metrics:
            sketch = anew.labels.metrics[row.metric]
            assert row.series == pytest.approx(sketch.estimate, rel=3 * (row.error + sketch.error))
