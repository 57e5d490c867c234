"""What the databases say when versions or splits were collected."""

import pytest
from sqlalchemy import delete, update

from windrow.errors import SnapshotExpired
from windrow.metastore.schema import splits, tables
from windrow.testing.metastore_cases.samples import TABLE, a_table, add, ids


@pytest.fixture
def collected(metastore):
    """A table whose versions 0 to 2 are no longer kept."""
    a_table(metastore)
    for number in range(1, 5):
        add(metastore, f"c{number}")
    with metastore.database.writing() as connection:
        connection.execute(update(tables).values(oldest_version=3))
    return metastore


def test_a_version_that_is_not_kept_is_an_error(collected):
    for version in (0, 1, 2):
        with pytest.raises(SnapshotExpired, match=f"snapshot expired: version {version} .* the oldest is 3"):
            ids(collected, version)
        with pytest.raises(SnapshotExpired, match="snapshot expired"):
            collected.windows(TABLE, version)
        with pytest.raises(SnapshotExpired, match="snapshot expired"):
            list(collected.changes(TABLE, version))
        with pytest.raises(SnapshotExpired, match="snapshot expired"):
            collected.pin(TABLE, version, pin_id=f"p{version}", owner="me", seconds=60)
    assert collected.pins(TABLE) == []
    assert ids(collected, 3) == ["c1", "c2", "c3"]


def test_a_version_that_is_collected_between_two_pages_ends_the_listing(collected):
    pages = collected.splits(TABLE, 3, page_size=1)
    next(pages)
    with collected.database.writing() as connection:
        connection.execute(update(tables).values(oldest_version=4))
    with pytest.raises(SnapshotExpired, match="snapshot expired"):
        next(pages)


def test_a_pin_outlives_the_oldest_version(metastore):
    a_table(metastore)
    add(metastore, "c1")
    pin = metastore.pin(TABLE, 0, pin_id="p", owner="me", seconds=60)
    with metastore.database.writing() as connection:
        connection.execute(update(tables).values(oldest_version=1))
    assert ids(metastore, pin) == []


def test_changes_whose_splits_were_collected_are_an_error(collected):
    with collected.database.writing() as connection:
        connection.execute(delete(splits).where(splits.c.split_id == "c4"))
    with pytest.raises(SnapshotExpired, match="snapshot expired: 1 splits of version 4"):
        list(collected.changes(TABLE, 3))
