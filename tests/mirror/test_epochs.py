"""A column got another type: other readers see what Windrow sees, or refuse; a lost metastore comes back."""

from datetime import UTC, datetime, timedelta
from itertools import chain

import polars as pl
import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder
from deltalake.exceptions import DeltaError

import windrow
from windrow.metastore import CommitKind
from windrow.mirror.follow import CHECKPOINT_EVERY
from windrow.mirror.log import Log

EARLY, LATE = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 3, tzinfo=UTC)


def rows(start, values, kind):
    times = [start + timedelta(seconds=n) for n in range(len(values))]
    return pa.table({"timestamp": times, "host": ["a"] * len(values), "load": pa.array(values, kind)})


@pytest.fixture
def retyped(table):
    """Two rows of text that read as null, and a number."""
    table.ingest(rows(EARLY, ["1", "2"], pa.string()))
    table.retype.run("load", "double", old_values="null")
    table.ingest(rows(LATE, [5.0], pa.float64()))
    return table


def folder(lake):
    return str(lake.context.store.root / "events")


def drop_early(table):
    """Take the splits of the first epoch out, as retention does."""
    metastore, table_id = table.context.metastore, table.record().table_id
    splits = chain.from_iterable(metastore.splits(table_id, table.version()))
    old = [split.split_id for split in splits if not split.scope.doc_mapping_uid]
    metastore.open_commit(table_id, CommitKind.EXPIRE, commit_id="expire-1", lease=60)
    metastore.publish("expire-1", replace=old)


READERS = {
    "pyarrow": lambda path: DeltaTable(path).to_pyarrow_table()["load"].to_pylist(),
    "deltalake": lambda path: pa.table(
        QueryBuilder().register("events", DeltaTable(path)).execute("select load from events").read_all()
    )["load"].to_pylist(),
    "polars": lambda path: pl.read_delta(path)["load"].to_list(),
}


@pytest.mark.parametrize("reader", READERS)
def test_other_readers_refuse_what_they_would_read_wrongly_and_never_show_it(lake, retyped, reader):
    assert sorted(map(str, retyped.scan().to_arrow()["load"].to_pylist())) == ["5.0", "None", "None"]
    with pytest.raises((DeltaError, pl.exceptions.PolarsError), match="windrowSchemaEpochs"):
        READERS[reader](folder(lake))


def test_versions_before_the_change_are_read_as_they_were(lake, retyped):
    assert DeltaTable(folder(lake), version=1).to_pyarrow_table()["load"].to_pylist() == ["2", "1"]
    assert retyped.at(version=1).scan().to_arrow()["load"].to_pylist() == ["2", "1"]


@pytest.mark.parametrize("reader", READERS)
def test_once_old_splits_are_gone_other_readers_are_served_again(lake, retyped, reader):
    drop_early(retyped)
    assert READERS[reader](folder(lake)) == [5.0]
    assert not retyped.upkeep.check(data=True).findings


def test_a_mirror_of_two_epochs_is_sound_and_one_that_lost_its_end_catches_up(lake, retyped):
    assert not retyped.upkeep.check(data=True).findings
    log = Log(lake.context.store, "events")
    for number in log.numbers()[2:]:
        lake.context.store.delete(log.key(number))
    assert retyped.upkeep.check().findings
    assert not retyped.upkeep.check(repair=True).findings
    with pytest.raises(DeltaError, match="windrowSchemaEpochs"):
        DeltaTable(folder(lake))


def test_a_change_on_an_empty_table_keeps_nobody_away(lake, table):
    table.ingest(rows(EARLY, ["1"], pa.string()))
    drop_early(table)
    assert "serves other readers" in table.retype.plan("load", "double", old_values="null").mirror
    table.retype.run("load", "double", old_values="null")
    assert DeltaTable(folder(lake)).to_pyarrow_table()["load"].to_pylist() == []
    table.ingest(rows(LATE, [5.0], pa.float64()))
    assert DeltaTable(folder(lake)).to_pyarrow_table()["load"].to_pylist() == [5.0]


def test_a_metastore_that_was_lost_comes_back_with_its_epochs(lake, retyped):
    retyped.retype.run("load", "string", old_values="cast")
    retyped.ingest(rows(LATE, ["many"], pa.string()))
    root = lake.context.store.root
    before, record = retyped.scan().to_arrow(), retyped.record()
    history = lake.context.metastore.history(record.table_id)
    lake.close()
    for path in root.glob("windrow.db*"):
        path.unlink()
    with windrow.connect(root, accept="repair") as again:
        again.rebuild_table("events")
        table = again.table("events")
        assert (table.record().schema_epoch, table.version()) == (2, record.version)
        assert again.context.metastore.history(record.table_id) == history
        assert table.scan().to_arrow().sort_by("load") == before.sort_by("load")
        assert not table.upkeep.check(data=True).findings
        table.ingest(rows(LATE, ["more"], pa.string()))
        assert sorted(map(str, table.scan().to_arrow()["load"].to_pylist())) == ["5.0", "None", "None", "many", "more"]


def test_a_checkpoint_of_mixed_epochs_is_refused_by_others_too(lake, retyped):
    metastore = lake.context.metastore
    while (version := retyped.version()) <= CHECKPOINT_EVERY:
        metastore.open_commit(retyped.record().table_id, CommitKind.EXPIRE, commit_id=f"x{version}", lease=60)
        metastore.publish(f"x{version}")
    assert list((lake.context.store.root / "events" / "_delta_log").glob("*.checkpoint.parquet"))
    assert retyped.upkeep.check(data=True).sound
    with pytest.raises(DeltaError, match="windrowSchemaEpochs"):
        DeltaTable(str(lake.context.store.root / "events")).to_pyarrow_table()
