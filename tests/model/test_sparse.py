"""Rows that are spread thinly over many files are warned of, with what to set."""

import pytest

from windrow.model.settings import TableSettings
from windrow.model.sparse import FEW_ROWS, MANY_FILES, Spread, sparse_warning


def settings(**given):
    return TableSettings.of(sort="host|timestamp/V2", **given)


@pytest.mark.parametrize(
    ("rows", "files"),
    [(0, 0), (10, 10), (MANY_FILES - 1, MANY_FILES - 1), (MANY_FILES * FEW_ROWS, MANY_FILES), (10**9, 17_535)],
)
def test_few_files_or_full_ones_need_no_warning(rows, files):
    assert sparse_warning(Spread(rows, files, files), settings()) is None


@pytest.mark.parametrize(("cold", "written"), [("off", "15m has"), ("1d", "15m, 1d once it is closed, has")])
def test_the_warning_counts_files_and_names_the_longest_cold_window(cold, written):
    found = sparse_warning(Spread(365_558, 17_535, 60), settings(cold_window=cold))
    assert "365,558 rows lie in 17,535 files, about 21 in each" in found
    assert f"every {written}" in found
    assert 'cold_window="1w"' in found
    assert "about 60 files" in found


def test_where_cold_windows_are_the_longest_the_table_is_to_be_compacted():
    found = sparse_warning(Spread(365_558, 17_535, 60), settings(cold_window="7d"))
    assert "Set cold_window" not in found
    assert "Compact the table: about 60 files" in found


@pytest.mark.parametrize("cold", ["off", "1d", "7d"])
def test_where_no_window_would_help_other_ways_are_named(cold):
    found = sparse_warning(Spread(365_558, 17_535, 17_535), settings(cold_window=cold))
    assert "cold_window=" not in found
    assert "partition_by" in found
    assert "table.register" in found
