"""Moments as microseconds since the epoch."""

from datetime import UTC, date, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow.model.moments import EPOCH, instant, microseconds


@given(st.datetimes(timezones=st.just(UTC)))
def test_a_moment_comes_back_exactly(moment):
    assert instant(microseconds(moment)) == moment


def test_a_time_without_a_zone_is_utc_and_a_date_begins_at_midnight():
    assert microseconds(datetime(1970, 1, 2)) == microseconds(date(1970, 1, 2)) == 86_400_000_000  # noqa: DTZ001
    assert microseconds(datetime(1970, 1, 1, 1, tzinfo=timezone(timedelta(hours=1)))) == microseconds(EPOCH) == 0


def test_there_is_an_end_of_time():
    with pytest.raises(OverflowError):
        instant(2**63)
