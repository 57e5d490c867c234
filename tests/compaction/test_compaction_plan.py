"""A plan tells people why splits of one window stay apart."""

from __future__ import annotations

from dataclasses import replace

from windrow.compaction.compaction_plan import make_plan
from windrow.compaction.forecast import Rates
from windrow.compaction.planner import Planner
from windrow.model.window import Window

from .conftest import SORT, points

NEW = "region|host|timestamp/V2"
OLD = "metric_name|host|timeseries_id|timestamp/V2"
CLOSED = 10**10


def planned(shelf):
    return make_plan(Planner(shelf.metastore, shelf.record, CLOSED), Rates())


def test_splits_of_a_former_sort_schema_are_named_with_the_reason(empty_lake):
    table = empty_lake.create_table("metrics", sort=OLD, cold_window="off")
    for seed in range(2):
        table.ingest(points(seed, windows=2))
    table.change.run(sort=NEW)
    table.ingest(points(2, windows=2))
    plan = table.compact.plan()
    (apart,) = plan.apart
    assert (apart.setting, apart.then, apart.now) == ("sort", OLD, NEW)
    assert (apart.splits, apart.windows) == (6, 3)
    assert "merged among themselves, never with newer ones" in apart.why
    assert plan.to_dict()["apart"][0]["then"] == OLD
    table.compact.run(threads=1)
    assert [each.splits for each in table.inspect.windows() if each.start is not None] == [2, 2]
    assert [each.splits for each in table.compact.plan().apart] == [4]


def test_a_lone_split_of_a_former_sort_schema_says_what_keeps_it_alone(shelf):
    former = shelf.scope(sort_schema="host|timestamp+/V2")
    shelf.publish([shelf.split("old", scope=former), shelf.split("new")])
    reasons = list(planned(shelf).left)
    among = "it is alone in its window among splits sorted by host|timestamp+/V2"
    assert f"{among}; the table is sorted by {SORT}" in reasons
    assert "it is alone in its window" in reasons


def test_splits_of_a_former_window_duration_are_named_too(shelf):
    former = shelf.split("old", scope=shelf.scope(window_duration=300), window=Window(0, 300))
    shelf.publish([former, shelf.split("new")])
    (apart,) = planned(shelf).apart
    assert (apart.setting, apart.then, apart.now, apart.splits) == ("window", "5m", "15m", 1)


def test_splits_of_a_former_schema_epoch_are_named_too(shelf):
    shelf.publish([shelf.split("a"), shelf.split("b")])
    later = replace(shelf.record, schema_epoch=1)
    (apart,) = make_plan(Planner(shelf.metastore, later, CLOSED), Rates()).apart
    assert (apart.setting, apart.then, apart.now, apart.splits) == ("schema epoch", "0", "1", 2)


def test_nothing_is_apart_in_a_table_that_never_changed(shelf):
    registered = shelf.scope(sort_schema="", window_duration=0)
    shelf.publish([shelf.split("a"), shelf.split("b"), shelf.split("r", window=None, scope=registered)])
    assert planned(shelf).apart == ()
