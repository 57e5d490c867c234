"""One flipped byte, anywhere: whatever changes an answer is found, and is put right or reported."""

from __future__ import annotations

import pytest
from tests.upkeep.flips import FlippedLake, try_flips


@pytest.fixture
def flipped(folder, monkeypatch):
    lake = FlippedLake(folder, monkeypatch)
    assert lake.check().sound
    return lake


@pytest.mark.parametrize(
    ("pattern", "count"),
    [
        ("events/_delta_log/*.json", 6),
        ("events/_delta_log/*checkpoint*", 4),
        pytest.param("events/_delta_log/*.json", 2000, marks=pytest.mark.long),
        pytest.param("events/_delta_log/*checkpoint*", 2000, marks=pytest.mark.long),
    ],
)
def test_a_flipped_byte_of_the_delta_log_is_found_and_put_right(flipped, pattern, count):
    outcomes = try_flips(flipped, pattern, 1, count)
    assert outcomes["reported"] == 0
    assert outcomes["repaired"] > 0


@pytest.mark.parametrize("count", [10, pytest.param(4000, marks=pytest.mark.long)])
def test_a_flipped_byte_of_the_database_is_found_where_it_changes_an_answer(flipped, count):
    outcomes = try_flips(flipped, "windrow.db", 3, count)
    assert outcomes["reported"] > 0
