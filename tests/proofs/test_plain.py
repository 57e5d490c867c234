"""Stores dated by a clock are stores, and are dated by it."""

import itertools

import pytest
from tests.proofs.plain import DatedFolder, PlainStore

from windrow.testing import StoreTests


class TestPlainStore(StoreTests):
    @pytest.fixture
    def store(self):
        return PlainStore(itertools.count(1_700_000_000_000_000).__next__)


class TestDatedFolder(StoreTests):
    @pytest.fixture
    def store(self, tmp_path):
        return DatedFolder(tmp_path / "root", itertools.count(1_700_000_000_000_000).__next__)


def test_files_of_a_folder_have_the_time_of_the_clock(tmp_path):
    store = DatedFolder(tmp_path, lambda: 1_700_000_000_000_000)
    first, second = store.put("a", b"1"), store.put("a", b"2")
    assert first.modified.timestamp() == second.modified.timestamp() == 1_700_000_000
    assert first.etag != second.etag
