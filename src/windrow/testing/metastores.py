"""What every metastore has to do: a suite for pytest.

Subclass `MetastoreTests` in a test module and give it three fixtures: `metastore`, an empty metastore; `open_again`, a
function that opens another client on the same data; and, when time is passed into the implementation, `clock`, the
clock that both take:

    class TestMyMetastore(MetastoreTests):
        @pytest.fixture
        def metastore(self, tmp_path, clock):
            return MyMetastore(tmp_path, clock=clock)

        @pytest.fixture
        def open_again(self, tmp_path, clock):
            return lambda: MyMetastore(tmp_path, clock=clock)

An implementation that asks a clock of its own overrides `clock` to return None; what needs time to pass is then
skipped.
"""

from __future__ import annotations

import pytest

from windrow.testing.metastore_cases.collecting import CollectingCases
from windrow.testing.metastore_cases.commits import CommitCases
from windrow.testing.metastore_cases.compaction import CompactionCases
from windrow.testing.metastore_cases.epochs import EpochCases
from windrow.testing.metastore_cases.listing import ListingCases
from windrow.testing.metastore_cases.machine import MachineCases
from windrow.testing.metastore_cases.naming import NamingCases
from windrow.testing.metastore_cases.publishing import CheckpointCases, PublishCases, RefusalCases
from windrow.testing.metastore_cases.samples import FakeClock
from windrow.testing.metastore_cases.snapshots import HistoryCases, PinCases
from windrow.testing.metastore_cases.statistics import StatisticsCases
from windrow.testing.metastore_cases.tables import AttributeCases, ColumnCases, TableCases
from windrow.testing.metastore_cases.texts import TextCases

__all__ = ["FakeClock", "MetastoreTests"]


class MetastoreTests(
    TableCases,
    NamingCases,
    AttributeCases,
    ColumnCases,
    EpochCases,
    CommitCases,
    PublishCases,
    CheckpointCases,
    RefusalCases,
    HistoryCases,
    PinCases,
    ListingCases,
    CompactionCases,
    CollectingCases,
    StatisticsCases,
    TextCases,
    MachineCases,
):
    """The conformance suite of `windrow.metastore.Metastore`."""

    @pytest.fixture
    def clock(self) -> FakeClock | None:
        """The clock of the metastore under test; None when it takes none."""
        return FakeClock()

    @pytest.fixture
    def settable_clock(self, clock: FakeClock | None) -> FakeClock:
        """The clock, for cases in which time passes."""
        if clock is None:
            pytest.skip("this metastore takes no clock")
        return clock
