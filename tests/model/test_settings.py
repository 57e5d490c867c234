"""Settings read what people write, refuse what cannot be, and say what to write instead."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow.errors import InvalidInput, SortSchemaError
from windrow.model.points import Signal
from windrow.model.settings import PolicySettings, TableSettings
from windrow.model.window import VALID_MINUTES, Window

SORT = "metric_name|host|timestamp&region/V2"


def test_only_the_sort_schema_is_needed():
    made = TableSettings.of(sort=SORT)
    assert made.cold_window is made.gathers_into is None
    assert (made.window, made.compaction_start_time, made.late_data_acceptance_window) == (900, 0, 3600)
    assert (made.retention, made.tags, made.partition_by, made.verify) == (None, None, (), "full")


def test_people_write_durations_sizes_and_lists():
    made = TableSettings.of(
        sort=SORT,
        window="1h",
        retention=timedelta(days=7),
        late_data_acceptance_window="30m",
        target_split_size="64MiB",
        tags=["host"],
        partition_by=["tenant"],
        policy={"merge_factor": 4, "maturation_period": "12h"},
    )
    assert (made.window, made.retention, made.late_data_acceptance_window) == (3600, 604800, 1800)
    assert (made.target_split_size, made.tags, made.partition_by) == (64 * 2**20, ("host",), ("tenant",))
    assert made.policy == PolicySettings(merge_factor=4, maturation_period=43200)


@given(
    window=st.sampled_from([60 * minutes for minutes in VALID_MINUTES]),
    retention=st.one_of(st.none(), st.integers(3600, 10**9)),
    tags=st.one_of(st.none(), st.lists(st.text(min_size=1), unique=True)),
    start=st.integers(-(2**40), 2**40),
    cold=st.sampled_from([None, "off", "2h", "1d", 604800]),
)
def test_json_gives_the_same_settings_back(window, retention, tags, start, cold):
    made = TableSettings.of(
        sort="s=" + SORT, window=window, retention=retention, tags=tags, compaction_start_time=start, cold_window=cold
    )
    assert TableSettings.from_json(made.to_json()) == made


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({}, "needs a sort schema"),
        ({"sort": SORT, "window": "7m"}, "divide an hour"),
        ({"sort": SORT, "cold_window": "90m"}, "cold_window: '90m' is not a whole number of hours"),
        ({"sort": SORT, "cold_window": "1h"}, "cold_window: '1h' is not a whole number of hours from 2"),
        ({"sort": SORT, "cold_window": "8d"}, "cold_window: '8d' is not .* from 2 to 168"),
        ({"sort": SORT, "cold_window": "day"}, "cold_window: 'day' is not a duration"),
        ({"sort": SORT, "cold_window": True}, "cold_window: True is not a duration"),
        ({"sort": SORT, "windows": "5m"}, "did you mean window"),
        ({"sort": SORT, "zzz": 1}, "known: sort, window"),
        ({"sort": "host/V2"}, "set timestamp= to one of host"),
        ({"sort": SORT, "timestamp": "time"}, "does not name the column 'time'"),
        ({"sort": SORT, "timestamp_unit": "minutes"}, "timestamp_unit.*none of s, ms, us, ns"),
        ({"sort": SORT, "retention": "soon"}, "retention.*not a duration"),
        ({"sort": SORT, "retention": 60}, "retention.*at least 900"),
        ({"sort": SORT, "late_data_acceptance_window": -1}, "late_data_acceptance_window"),
        ({"sort": SORT, "target_split_size": "1 furlong"}, "target_split_size.*not a size"),
        ({"sort": SORT, "target_split_size": 5}, "at least 1048576"),
        ({"sort": SORT, "compaction_start_time": "yesterday"}, "compaction_start_time.*whole number"),
        ({"sort": SORT, "compaction_start_time": True}, "compaction_start_time.*whole number"),
        ({"sort": SORT, "tags": "host"}, "tags.*list of different column names"),
        ({"sort": SORT, "tags": ["a", "a"]}, "tags.*list of different column names"),
        ({"sort": SORT, "partition_by": [1]}, "partition_by.*list of different column names"),
        ({"sort": SORT, "verify": "half"}, "verify: 'half' is none of full, sample"),
        ({"sort": SORT, "verify": ["full"]}, "verify.*none of full, sample"),
        ({"sort": SORT, "policy": "fast"}, "policy.*expected a mapping"),
        ({"sort": SORT, "policy": {"name": "fast"}}, "none of stable-log, constant-write-amplification"),
        ({"sort": SORT, "policy": {"merge_facto": 3}}, "did you mean policy.merge_factor"),
        ({"sort": SORT, "policy": {"merge_factor": 1}}, "policy.merge_factor.*at least 2"),
        ({"sort": SORT, "policy": {"max_merge_factor": 3}}, "policy.max_merge_factor.*at least 16"),
    ],
)
def test_what_cannot_be_is_refused(values, message):
    with pytest.raises(InvalidInput, match=message):
        TableSettings.of(**values)


def test_a_malformed_schema_says_where():
    with pytest.raises(SortSchemaError) as caught:
        TableSettings.of(sort="host||timestamp/V2")
    assert caught.value.position == 5


def test_the_signal_follows_from_the_sort_schema():
    assert TableSettings.of(sort=SORT).signal is Signal.METRICS
    assert TableSettings.of(sort="level|timestamp/V2").signal is Signal.EVENTS


class TestChanging:
    made = TableSettings.of(sort=SORT, timestamp_unit="ms")

    def test_values_change_one_by_one(self):
        changed = self.made.changed(window="5m", sort="host|timestamp/V2")
        assert (changed.window, str(changed.sort), changed.timestamp_unit) == (300, "host|timestamp/V2", "ms")

    @pytest.mark.parametrize("values", [{"timestamp": "host"}, {"timestamp_unit": "s"}])
    def test_what_decides_the_window_is_fixed(self, values):
        with pytest.raises(InvalidInput, match="cannot change on a living table"):
            self.made.changed(**values)

    def test_naming_a_fixed_value_as_it_is_changes_nothing(self):
        assert self.made.changed(timestamp="timestamp") == self.made

    def test_the_whole_is_checked_anew(self):
        with pytest.raises(InvalidInput, match="does not name the column 'timestamp'"):
            self.made.changed(sort="host/V2")


def test_a_table_from_before_there_were_cold_windows_has_none():
    made = TableSettings.of(sort=SORT)
    old = json.loads(made.to_json())
    del old["cold_window"]
    assert TableSettings.from_json(json.dumps(old)) == made.changed(cold_window="off")


def test_the_window_may_be_changed_below_a_cold_one():
    made = TableSettings.of(sort=SORT, cold_window="5h")
    assert [made.changed(window=f"{minutes}m").gathers_into for minutes in VALID_MINUTES] == [5 * 3600] * 12


@pytest.mark.parametrize(("retention", "gathered"), [(None, 7200), ("2h", 7200), ("119m", None)])
def test_a_table_that_drops_windows_sooner_than_a_cold_one_lasts_has_none(retention, gathered):
    assert TableSettings.of(sort=SORT, cold_window="2h", retention=retention).gathers_into == gathered


@pytest.mark.parametrize(
    ("window", "changes", "cold"),
    [
        (Window(3600, 900), {}, Window(0, 7200)),
        (Window(-900, 900), {}, Window(-7200, 7200)),
        (Window(0, 7200), {}, Window(0, 7200)),
        (Window(3600, 900), {"cold_window": "off"}, None),
        (Window(7200, 900), {}, None),
        (Window(0, 5 * 3600), {}, None),
        (Window(0, 86_400), {}, None),
        (Window.overflow_of(900), {}, None),
        (Window(3600, 900), {"compaction_start_time": 3600}, None),
        (Window(3600, 900), {"compaction_start_time": 7200}, Window(0, 7200)),
        (Window(-(2**63) // 900 * 900 + 900, 900), {}, None),
    ],
    ids=str,
)
def test_a_window_is_gathered_into_the_cold_one_that_holds_it_once_that_is_closed(window, changes, cold):
    made = TableSettings.of(sort=SORT, cold_window="2h").changed(**changes)
    assert made.cold_window_of(window, 10_000) == cold
