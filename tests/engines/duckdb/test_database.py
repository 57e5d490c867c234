"""Databases of ours are set to what suits virtual files."""

from __future__ import annotations

from windrow.engines.duckdb.database import new_database
from windrow.model.limits import READ_OVER


def test_databases_of_ours_leave_fetching_ahead_to_us():
    with new_database() as connection:
        assert _settings(connection) == [0, 0, READ_OVER]


def test_cursors_have_these_settings_too():
    with new_database() as connection, connection.cursor() as cursor, cursor.cursor() as other:
        assert _settings(cursor) == _settings(other) == [0, 0, READ_OVER]


def _settings(connection):
    names = ("async_threads", "read_ahead_depth", "parquet_prefetch_column_gap")
    [settings] = connection.execute(f"SELECT {', '.join(f'current_setting({name!r})' for name in names)}").fetchall()
    return [int(each) for each in settings]
