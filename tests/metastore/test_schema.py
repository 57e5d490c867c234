"""The migrations make what `schema` says, on both databases."""

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import create_engine, insert, inspect, make_url

from windrow.metastore import SqlMetastore
from windrow.metastore.migrate import _config, revisions
from windrow.metastore.schema import checkpoints, metadata, tables
from windrow.testing.metastore_cases.samples import SETTINGS, TABLE, add


@pytest.fixture
def migrated(empty_url):
    with SqlMetastore(empty_url) as metastore:
        yield metastore.database.engine


@pytest.fixture
def declared(request, tmp_path, empty_url):
    """A database that `schema` made by itself."""
    if empty_url.startswith("sqlite"):
        engine = create_engine(f"sqlite:///{tmp_path}/declared.db")
    else:
        engine = SqlMetastore(empty_url).database.engine
        with engine.begin() as connection:
            connection.exec_driver_sql("drop schema public cascade")
            connection.exec_driver_sql("create schema public")
    metadata.create_all(engine)
    yield engine
    engine.dispose()


def index(found):
    conditions = {name: str(value) for name, value in found.get("dialect_options", {}).items()}
    return repr((found["name"], found["column_names"], found["unique"], conditions))


def describe(engine):
    """Return tables with their columns, types, collations, keys, indexes and constraints, by name."""
    found = inspect(engine)
    return {
        table: {
            "columns": [(c["name"], repr(c["type"]), c["nullable"], c["default"]) for c in found.get_columns(table)],
            "key": found.get_pk_constraint(table),
            "foreign": sorted(map(repr, found.get_foreign_keys(table))),
            "unique": sorted(map(repr, found.get_unique_constraints(table))),
            "indexes": sorted(map(index, found.get_indexes(table))),
        }
        for table in sorted(metadata.tables)
    }


def test_the_migrations_end_at_the_newest_revision(migrated):
    with migrated.connect() as connection:
        revision = connection.exec_driver_sql("select version_num from windrow_migrations").scalar_one()
    assert revision == revisions()[-1]


def differences(engine):
    """What the database has and `schema` does not say, or the other way round."""
    options = {"compare_type": True, "compare_server_default": True, "version_table": "windrow_migrations"}
    with engine.connect() as connection:
        return compare_metadata(MigrationContext.configure(connection, opts=options), metadata)


def test_nothing_is_missing_and_nothing_is_too_much(migrated):
    assert differences(migrated) == []


def test_names_collations_keys_and_indexes_agree(migrated, request):
    made = describe(migrated)
    assert made == describe(request.getfixturevalue("declared"))
    assert len(made["windrow_splits"]["indexes"]) == 4


def test_ids_are_compared_bytewise_on_postgresql(migrated):
    columns = {column["name"]: column["type"] for column in inspect(migrated).get_columns("windrow_splits")}
    assert columns["split_id"].collation == ("C" if migrated.dialect.name == "postgresql" else None)


@pytest.mark.parametrize("revision", revisions()[:-1])
def test_an_older_metastore_is_brought_up_and_keeps_what_it_holds(empty_url, revision):
    url = make_url(empty_url)
    engine = create_engine(url if url.get_backend_name() == "sqlite" else url.set(drivername="postgresql+psycopg"))
    with engine.begin() as connection:
        command.upgrade(_config(connection, "windrow_migrations"), revision)
        row = {"table_id": TABLE, "name": "metrics", "settings": SETTINGS.to_json(), "created_at": 1, "version": 0}
        connection.execute(insert(tables).values(oldest_version=0, schema_epoch=0, **row))
        read = {"table_key": 1, "source_id": "s", "position": "7", "commit_id": "c0"}
        connection.execute(insert(checkpoints).values(read))
    engine.dispose()
    with SqlMetastore(empty_url) as metastore:
        assert [table.name for table in metastore.tables()] == ["metrics"]
        assert metastore.checkpoint(TABLE, "s") == "7"
        add(metastore, "c1")
        assert [group.splits for group in metastore.groups(TABLE)] == [1]
        assert differences(metastore.database.engine) == []


@pytest.mark.postgres
@pytest.mark.xdist_group("postgres")
def test_who_may_read_the_tables_of_an_older_metastore_may_read_its_lakes(postgres, empty_postgres_url):
    engine = create_engine(make_url(empty_postgres_url).set(drivername="postgresql+psycopg"))
    postgres.execute('create role "Windrow reader"')
    try:
        with engine.begin() as connection:
            command.upgrade(_config(connection, "windrow_migrations"), "0006")
            connection.exec_driver_sql('grant select on windrow_tables to "Windrow reader"')
        SqlMetastore(empty_postgres_url).close()
        with engine.begin() as connection:
            may = "select has_table_privilege('Windrow reader', 'windrow_lakes', '{}')"
            rights = [connection.exec_driver_sql(may.format(verb)).scalar_one() for verb in ("select", "insert")]
            connection.exec_driver_sql('drop owned by "Windrow reader"')
        assert rights == [True, False]
    finally:
        engine.dispose()
        postgres.execute('drop role "Windrow reader"')
