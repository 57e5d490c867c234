"""Rows that are spread thinly over many files are warned of, with what to set."""

import pytest

from windrow.model.sparse import FEW_ROWS, MANY_FILES, Spread, sparse_warning


@pytest.mark.parametrize(
    ("rows", "files"),
    [(0, 0), (10, 10), (MANY_FILES - 1, MANY_FILES - 1), (MANY_FILES * FEW_ROWS, MANY_FILES), (10**9, 17_535)],
)
def test_few_files_or_full_ones_need_no_warning(rows, files):
    assert sparse_warning(Spread(rows, files, files), 900) is None


def test_the_warning_counts_files_and_names_the_longest_window():
    found = sparse_warning(Spread(365_558, 17_535, 6_000), 900)
    assert "365,558 rows lie in 17,535 files, about 21 in each" in found
    assert "every 15m" in found
    assert 'window="1h"' in found
    assert "about 6,000 files" in found


@pytest.mark.parametrize(("window", "in_longest"), [(3600, 17_535), (900, 17_535)])
def test_where_no_window_would_help_other_ways_are_named(window, in_longest):
    found = sparse_warning(Spread(365_558, 17_535, in_longest), window)
    assert 'window="1h"' not in found
    assert "partition_by" in found
    assert "table.register" in found
