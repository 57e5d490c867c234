"""Databases of ours are set to what suits virtual files."""

from __future__ import annotations

from windrow.engines.duckdb.filesystem import new_database
from windrow.reading.local_files import READ_OVER


def test_databases_of_ours_leave_fetching_ahead_to_us():
    with new_database() as connection:
        [settings] = connection.execute(
            "SELECT current_setting('async_threads'), current_setting('read_ahead_depth'),"
            " current_setting('parquet_prefetch_column_gap')"
        ).fetchall()
    assert list(map(int, settings)) == [0, 0, READ_OVER]
