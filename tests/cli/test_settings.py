"""What people type for a setting of a table."""

from __future__ import annotations

import pytest

from windrow.cli.settings import dotted, read_pairs, read_setting
from windrow.model.settings import TableSettings


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("window", "5m", "5m"),
        ("window", "300", 300),
        ("retention", "none", None),
        ("retention", "0", 0),
        ("tags", "a, b", ["a", "b"]),
        ("tags", "", []),
        ("tags", "none", None),
        ("partition_by", "none", ["none"]),
        ("timestamp", "12", "12"),
        ("sort", "none", "none"),
        ("compaction_start_time", "1700000000", 1700000000),
        ("compaction_start_time", "-86400", -86400),
        ("compaction_start_time", "1969-12-31T23:59:59.5Z", -1),
        ("compaction_start_time", "2023-11-14", 1699920000),
        ("compaction_start_time", "2023-11-14T22:13:20Z", 1700000000),
        ("compaction_start_time", "2023-11-14T23:13:20+01:00", 1700000000),
    ],
)
def test_text_becomes_the_value(name, text, value):
    assert read_setting(name, text) == value


def test_a_value_may_hold_an_equals_sign_and_a_key_may_have_dashes():
    assert read_pairs(["sort=by=host|timestamp/V2", "partition-by=a"]) == {
        "sort": "by=host|timestamp/V2",
        "partition_by": ["a"],
    }


def test_dotted_names_are_those_that_can_be_typed():
    settings = TableSettings.of(sort="host|timestamp/V2", retention="30d", tags=["a"]).to_dict()
    pairs = [f"{name}={'none' if value is None else value}" for name, value in dotted(settings).items()]
    pairs = [pair.replace("['a']", "a").replace("[]", "") for pair in pairs]
    assert TableSettings.of(**read_pairs(pairs)).to_dict() == settings
