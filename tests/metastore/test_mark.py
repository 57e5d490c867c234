"""The mark of a metastore: it differs once anybody has changed anything."""

from __future__ import annotations

import pytest

from windrow.errors import Closed
from windrow.metastore import SqlMetastore
from windrow.model.settings import TableSettings

SETTINGS = TableSettings.of(sort="host|timestamp/V2")


def test_a_mark_differs_after_a_change_and_only_then(tmp_path):
    url = f"sqlite:///{tmp_path}/windrow.db"
    with SqlMetastore(url) as ours, SqlMetastore(url) as others:
        first = ours.mark()
        assert first is not None
        ours.tables()
        assert ours.mark() == first
        others.create_table("a", SETTINGS, table_id="a")
        second = ours.mark()
        assert second != first
        ours.create_table("b", SETTINGS, table_id="b")
        assert ours.mark() != second


def test_a_metastore_that_was_closed_says_so(tmp_path):
    metastore = SqlMetastore(f"sqlite:///{tmp_path}/windrow.db")
    metastore.mark()
    metastore.close()
    metastore.close()
    for ask in (metastore.mark, metastore.tables):
        with pytest.raises(Closed, match="closed"):
            ask()


def test_a_mark_of_an_earlier_connection_is_never_taken_for_a_newer_one(tmp_path):
    """A fork makes the connection anew, and the numbers of SQLite begin again with it."""
    url = f"sqlite:///{tmp_path}/windrow.db"
    with SqlMetastore(url) as ours, SqlMetastore(url) as others:
        first = ours.mark()
        others.create_table("a", SETTINGS, table_id="a")
        ours.database.before_fork()
        assert ours.mark() != first


@pytest.mark.postgres
@pytest.mark.xdist_group("postgres")
def test_a_server_is_asked_for_the_rows_themselves(postgres_url):
    with SqlMetastore(postgres_url) as metastore:
        assert metastore.mark() is None
