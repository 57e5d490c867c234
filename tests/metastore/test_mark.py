"""The mark of a metastore: it differs once anybody has changed anything."""

from __future__ import annotations

import pytest

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


def test_a_metastore_that_was_closed_can_be_asked_again(tmp_path):
    metastore = SqlMetastore(f"sqlite:///{tmp_path}/windrow.db")
    metastore.mark()
    metastore.close()
    assert metastore.mark() is not None
    metastore.close()


@pytest.mark.postgres
@pytest.mark.xdist_group("postgres")
def test_a_server_is_asked_for_the_rows_themselves(postgres_url):
    with SqlMetastore(postgres_url) as metastore:
        assert metastore.mark() is None
