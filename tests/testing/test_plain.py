"""The plain store is a store."""

import itertools

import pytest

from windrow.testing import StoreTests
from windrow.testing.plain import PlainStore


class TestPlainStore(StoreTests):
    @pytest.fixture
    def store(self):
        return PlainStore(itertools.count(1_700_000_000_000_000).__next__)
