"""A metastore serves the lakes that it knows, a lake is opened with its own metastore; what does not fit is refused."""

from __future__ import annotations

import json
import pickle
import shutil
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest
from sqlalchemy import text
from tests.proofs.worlds import points

from windrow.errors import AlreadyExists, ConfigError, Damaged, Incompatible, InvalidInput, NotFound
from windrow.identity.identify import identify
from windrow.identity.marker import MARKER
from windrow.lake import open_lake
from windrow.metastore import SqlMetastore

SORT = "host|timestamp/V2"
BOTH = ["sqlite", pytest.param("postgres", marks=[pytest.mark.postgres, pytest.mark.xdist_group("postgres")])]


@pytest.fixture
def metastore(tmp_path):
    """The address of a database that lies in no lake."""
    return f"sqlite:///{tmp_path}/shared.db"


@pytest.fixture(params=BOTH)
def either(request, metastore):
    """The same on each kind of database."""
    return metastore if request.param == "sqlite" else request.getfixturevalue("postgres_url")


def opened(place, metastore=None, **options):
    return open_lake(place, metastore, cache=None, **options)


def filled(place, metastore=None, name="events", rows=1, **options):
    """Make a lake with a table of some rows."""
    with opened(place, metastore, **options) as lake:
        lake.create_table(name, sort=SORT).ingest(points(*range(rows)))
    return place


def count(place, metastore=None, name="events", **options):
    with opened(place, metastore, create=False, **options) as lake:
        return lake.sql(f"select count(*) from {name}").to_arrow().column(0)[0].as_py()


def forget(metastore):
    """Make a database one of the time before lakes had ids."""
    with SqlMetastore(metastore) as known, known.database.writing() as connection:
        connection.execute(text("delete from windrow_lakes"))


def state(place, metastore=None):
    return identify(place, metastore=metastore).state.value


class TestOneDatabaseOfSeveralLakes:
    def test_another_address_is_refused_with_both_ways_out_and_nothing_is_written(self, tmp_path, either):
        filled(tmp_path / "one", either)
        for create in (True, False):
            with pytest.raises(ConfigError) as refused:
                opened(tmp_path / "two", either, create=create)
        words = str(refused.value)
        assert f"does not serve the lake at file://{tmp_path}/two; it serves file://{tmp_path}/one" in words
        assert "windrow lake move" in words
        assert "windrow lake add" in words
        assert not (tmp_path / "two").exists()

    def test_a_second_lake_is_added_and_neither_sees_the_tables_of_the_other(self, tmp_path, either):
        filled(tmp_path / "one", either, rows=1)
        filled(tmp_path / "two", either, rows=2, accept="add")
        assert count(tmp_path / "one", either) == 1
        assert count(tmp_path / "two", either) == 2
        with opened(tmp_path / "two", either) as lake:
            lake.create_table("more", sort=SORT)
            with pytest.raises(AlreadyExists, match="by case alone"):
                lake.create_table("Events", sort=SORT)
            assert [row.name for row in lake.tables()] == ["events", "more"]
        with opened(tmp_path / "one", either) as lake:
            assert [row.name for row in lake.tables()] == ["events"]
            with pytest.raises(NotFound, match="there are: events"):
                lake.table("more")

    def test_every_way_to_write_one_address_is_the_same_lake(self, tmp_path, metastore, monkeypatch):
        filled(tmp_path / "one", metastore)
        (tmp_path / "link").symlink_to(tmp_path / "one")
        monkeypatch.chdir(tmp_path)
        for place in ("one", "./one/", "../" + tmp_path.name + "/one", tmp_path / "link", f"file://{tmp_path}/one/"):
            assert count(place, metastore) == 1

    def test_a_lake_that_was_moved_is_refused_until_that_is_accepted(self, tmp_path, either):
        filled(tmp_path / "one", either)
        (tmp_path / "one").rename(tmp_path / "two")
        with pytest.raises(ConfigError, match=f"knows it at file://{tmp_path}/one.*windrow lake move"):
            opened(tmp_path / "two", either)
        with pytest.raises(ConfigError, match="a copy needs a metastore of its own"):
            opened(tmp_path / "two", either, accept="add")
        opened(tmp_path / "two", either, accept="move").close()
        assert count(tmp_path / "two", either) == 1
        with pytest.raises(ConfigError, match="does not serve"):
            opened(tmp_path / "one", either)

    def test_of_several_lakes_the_marker_says_which_one_was_moved(self, tmp_path, metastore):
        filled(tmp_path / "one", metastore)
        filled(tmp_path / "two", metastore, rows=2, accept="add")
        (tmp_path / "two").rename(tmp_path / "three")
        marker = tmp_path / "three" / MARKER
        said = marker.read_bytes()
        marker.unlink()
        with pytest.raises(ConfigError, match="has no _windrow.json that says which lake"):
            opened(tmp_path / "three", metastore, accept="move")
        marker.write_bytes(said)
        opened(tmp_path / "three", metastore, accept="move").close()
        assert (count(tmp_path / "one", metastore), count(tmp_path / "three", metastore)) == (1, 2)

    def test_a_word_that_is_no_way_out_is_refused(self, tmp_path):
        with pytest.raises(InvalidInput, match="none of move, add, repair"):
            opened(tmp_path / "one", accept="moved")

    def test_of_many_that_make_one_lake_at_once_all_get_the_same(self, tmp_path, either):
        with ThreadPoolExecutor(4) as pool:
            lakes = list(pool.map(lambda _: opened(tmp_path / "one", either), range(4)))
        with SqlMetastore(either) as known:
            [served] = known.lakes()
        for lake in lakes:
            lake.close()
        assert json.loads((tmp_path / "one" / MARKER).read_bytes())["lake_id"] == served.lake_id

    def test_of_two_metastores_that_take_one_lake_at_once_one_wins(self, tmp_path):
        place = tmp_path / "one"
        stores = [f"sqlite:///{tmp_path}/{name}.db" for name in "ab"]

        def late_id():
            # The other one opens the lake after this one has found it empty.
            opened(place, stores[1]).close()
            return "late"

        with pytest.raises(ConfigError, match=r"belongs to the metastore sqlite:////.*/b\.db"):
            opened(place, stores[0], new_id=late_id)
        with SqlMetastore(stores[0]) as known:
            assert known.lakes() == []
        opened(place, stores[1]).close()

    def test_a_task_opens_a_lake_again_without_looking_who_it_is(self, tmp_path, metastore, monkeypatch):
        filled(tmp_path / "one", metastore)
        filled(tmp_path / "two", metastore, rows=2, accept="add")
        with opened(tmp_path / "two", metastore) as lake:
            carried = pickle.dumps(lake.context)
        (tmp_path / "two" / MARKER).write_text("nobody reads this")
        context = pickle.loads(carried)
        try:
            [table] = context.metastore.tables()
            assert table.version == 1
            assert context.metastore.lake_key == 1
        finally:
            context.close()


class TestLakesOfBefore:
    def test_the_first_to_open_one_claims_it_and_leaves_a_marker(self, tmp_path, either):
        filled(tmp_path / "one", either)
        forget(either)
        (tmp_path / "one" / MARKER).unlink()
        assert count(tmp_path / "one", either) == 1
        assert state(tmp_path / "one", either) == "bound"
        assert (tmp_path / "one" / MARKER).exists()

    def test_a_folder_without_its_files_cannot_claim_it(self, tmp_path, metastore):
        filled(tmp_path / "one", metastore)
        forget(metastore)
        with pytest.raises(ConfigError, match="a lake whose files are not there"):
            opened(tmp_path / "two", metastore)
        filled(tmp_path / "two", metastore, rows=2, accept="add")
        assert (count(tmp_path / "one", metastore), count(tmp_path / "two", metastore)) == (1, 2)

    def test_a_backup_from_before_is_taken_back_by_its_lake(self, tmp_path, metastore):
        filled(tmp_path / "one", metastore)
        before = json.loads((tmp_path / "one" / MARKER).read_bytes())["lake_id"]
        forget(metastore)
        assert count(tmp_path / "one", metastore) == 1
        assert identify(tmp_path / "one", metastore=metastore).lake_id == before

    def test_an_empty_one_that_is_only_looked_at_stays_as_it_is(self, tmp_path, metastore):
        SqlMetastore(metastore).close()
        with opened(tmp_path / "one", metastore, create=False) as lake:
            assert list(lake.tables()) == []
        assert not (tmp_path / "one").exists()
        assert state(tmp_path / "one", metastore) == "new"

    @pytest.mark.postgres
    @pytest.mark.xdist_group("postgres")
    def test_a_role_that_may_only_read_opens_and_checks_it(self, tmp_path, postgres, postgres_url):
        from sqlalchemy import make_url

        filled(tmp_path / "one", postgres_url)
        forget(postgres_url)
        (tmp_path / "one" / MARKER).unlink()
        postgres.execute("create role windrow_reader login")
        try:
            with SqlMetastore(postgres_url) as known, known.database.writing() as connection:
                connection.execute(text("grant select on all tables in schema public to windrow_reader"))
            reader = make_url(postgres_url).set(username="windrow_reader").render_as_string(hide_password=False)
            assert count(tmp_path / "one", reader) == 1
            with opened(tmp_path / "one", reader, create=False) as lake:
                assert lake.table("events").upkeep.check(data=True).sound
            assert not (tmp_path / "one" / MARKER).exists()
        finally:
            with SqlMetastore(postgres_url) as known, known.database.writing() as connection:
                connection.execute(text("drop owned by windrow_reader"))
            postgres.execute("drop role windrow_reader")


class TestAFolderWithItsOwnDatabase:
    def test_it_may_be_moved_and_copied(self, tmp_path):
        filled(tmp_path / "one")
        (tmp_path / "one").rename(tmp_path / "two")
        shutil.copytree(tmp_path / "two", tmp_path / "three")
        filled(tmp_path / "two", name="more", rows=3)
        assert count(tmp_path / "two", name="more") == 3
        assert count(tmp_path / "three") == 1

    @pytest.mark.postgres
    @pytest.mark.xdist_group("postgres")
    def test_the_marker_names_no_user_and_no_password(self, tmp_path, postgres_url):
        filled(tmp_path / "one", postgres_url)
        said = json.loads((tmp_path / "one" / MARKER).read_bytes())
        assert said["kind"] == "postgresql"
        assert said["metastore"].startswith("postgresql://")
        assert "postgres@" not in said["metastore"]

    def test_its_database_may_be_named_by_its_path(self, tmp_path):
        filled(tmp_path / "one")
        assert count(tmp_path / "one", f"sqlite:///{tmp_path}/one/windrow.db") == 1
        (tmp_path / "one").rename(tmp_path / "two")
        assert count(tmp_path / "two", f"sqlite:///{tmp_path}/two/windrow.db") == 1

    def test_another_metastore_is_refused_by_name(self, tmp_path, metastore):
        filled(tmp_path / "one")
        with pytest.raises(ConfigError, match="belongs to the metastore windrow.db in its own folder"):
            opened(tmp_path / "one", metastore)

    def test_a_database_of_another_lake_is_refused(self, tmp_path):
        for name in ("one", "two"):
            filled(tmp_path / name)
        shutil.copy(tmp_path / "one" / "windrow.db", tmp_path / "two" / "windrow.db")
        with pytest.raises(ConfigError, match="does not know it"):
            opened(tmp_path / "two")

    def test_a_lost_marker_is_written_again(self, tmp_path):
        filled(tmp_path / "one")
        said = (tmp_path / "one" / MARKER).read_bytes()
        (tmp_path / "one" / MARKER).unlink()
        assert count(tmp_path / "one") == 1
        assert (tmp_path / "one" / MARKER).read_bytes() == said

    @pytest.mark.parametrize(
        ("content", "error", "words"),
        [
            ("{", Damaged, "delete it"),
            ("[]", Damaged, "delete it"),
            ('{"format": 2, "lake_id": "x", "metastore": "y"}', Incompatible, "newer Windrow"),
        ],
    )
    def test_a_marker_that_cannot_be_read_is_refused_by_name(self, tmp_path, content, error, words):
        filled(tmp_path / "one")
        (tmp_path / "one" / MARKER).write_text(content)
        with pytest.raises(error, match=words) as refused:
            opened(tmp_path / "one")
        assert MARKER in str(refused.value)

    def test_a_marker_is_no_data_to_foreign_readers(self, tmp_path):
        import pyarrow.dataset as ds

        (tmp_path / MARKER).write_text("{}")
        pa.parquet.write_table(pa.table({"a": [1]}), tmp_path / "x.parquet")
        assert ds.dataset(tmp_path, format="parquet").files == [str(tmp_path / "x.parquet")]


class TestALostMetastore:
    @pytest.fixture
    def lost(self, tmp_path):
        filled(tmp_path / "lake", rows=2)
        filled(tmp_path / "lake", name="more", rows=3)
        for file in (tmp_path / "lake").glob("windrow.db*"):
            file.unlink()
        return tmp_path / "lake"

    @pytest.mark.parametrize("marked", [True, False])
    @pytest.mark.parametrize("create", [True, False])
    def test_nothing_is_made_beside_what_is_left(self, lost, marked, create):
        if not marked:
            (lost / MARKER).unlink()
        with pytest.raises(Damaged, match="the tables are: events, more;.*windrow check --repair"):
            opened(lost, create=create)
        assert not (lost / "windrow.db").exists()

    def test_every_table_is_made_again_and_goes_on(self, lost):
        with opened(lost, accept="repair", create=False) as lake:
            planned = lake.rebuild.plan()
            assert lake.lost_tables() == ["events", "more"]
            assert lake.rebuild() == planned
            assert [(each.table, each.rows) for each in planned] == [("events", 2), ("more", 3)]
        with opened(lost) as lake:
            lake.table("events").ingest(points(9))
            assert lake.table("events").upkeep.check(data=True).sound
        assert (count(lost), count(lost, name="more")) == (3, 3)

    def test_a_repair_that_was_cut_off_is_still_a_lost_metastore(self, lost):
        opened(lost, accept="repair").close()
        with pytest.raises(Damaged, match="has no tables, and the tables are: events, more"):
            opened(lost)
        with opened(lost, accept="repair") as lake:
            lake.rebuild_table("more")
        with opened(lost) as lake:
            assert lake.lost_tables() == ["events"]
            with pytest.raises(AlreadyExists, match="windrow check events --repair"):
                lake.create_table("events", sort=SORT)
            with pytest.raises(NotFound, match="windrow check events --repair"):
                lake.table("events")
            lake.rebuild()
        assert count(lost) == 2

    @pytest.mark.parametrize("create", [False, True])
    def test_an_empty_file_in_its_place_is_as_good_as_none(self, lost, create):
        (lost / "windrow.db").touch()
        with pytest.raises(Damaged, match="has lost its metastore.*windrow check --repair"):
            opened(lost, create=create)
        with opened(lost, accept="repair") as lake:
            lake.rebuild()
        assert count(lost) == 2

    def test_a_table_without_a_delta_log_counts_too(self, tmp_path):
        with opened(tmp_path / "lake") as lake:
            lake.create_table("plain", sort=SORT, mirror=False).ingest(points(1))
        for file in (tmp_path / "lake").glob("windrow.db*"):
            file.unlink()
        with pytest.raises(Damaged, match="the tables are: plain"):
            opened(tmp_path / "lake")

    def test_a_delta_table_of_somebody_else_is_none_of_ours(self, tmp_path):
        log = tmp_path / "lake" / "theirs" / "_delta_log"
        log.mkdir(parents=True)
        (log / f"{0:020d}.json").write_text('{"protocol":{"minReaderVersion":1}}\n')
        filled(tmp_path / "lake")
        assert count(tmp_path / "lake") == 1
        with opened(tmp_path / "lake") as lake, pytest.raises(AlreadyExists, match="holds the Delta log"):
            lake.create_table("theirs", sort=SORT)

    @pytest.mark.postgres
    @pytest.mark.xdist_group("postgres")
    def test_a_lake_of_a_server_that_is_opened_without_it_is_told_which(self, tmp_path, postgres_url):
        filled(tmp_path / "lake", postgres_url)
        for accept in (None, "repair"):
            with pytest.raises(ConfigError, match="belongs to the metastore postgresql://.*--metastore"):
                opened(tmp_path / "lake", accept=accept)
        assert not (tmp_path / "lake" / "windrow.db").exists()
        (tmp_path / "lake" / MARKER).unlink()
        with pytest.raises(Damaged, match="if it belongs to another metastore, name that one"):
            opened(tmp_path / "lake")

    @pytest.mark.postgres
    @pytest.mark.xdist_group("postgres")
    def test_a_server_that_lost_everything_gets_it_back(self, tmp_path, postgres_url):
        filled(tmp_path / "lake", postgres_url, rows=2)
        with SqlMetastore(postgres_url) as known, known.database.writing() as connection:
            connection.execute(text("drop schema public cascade"))
            connection.execute(text("create schema public"))
        for create in (False, True):
            with pytest.raises(Damaged, match="has no tables.*windrow check --repair"):
                opened(tmp_path / "lake", postgres_url, create=create)
        with opened(tmp_path / "lake", postgres_url, accept="repair", create=False) as lake:
            lake.rebuild()
        assert count(tmp_path / "lake", postgres_url) == 2

    @pytest.mark.postgres
    @pytest.mark.xdist_group("postgres")
    def test_another_server_may_take_the_place_of_a_lost_one(self, tmp_path, empty_postgres_url, postgres_url):
        filled(tmp_path / "lake", postgres_url, rows=2)
        with pytest.raises(ConfigError, match="windrow lake add"):
            opened(tmp_path / "lake", empty_postgres_url, accept="repair")
        opened(tmp_path / "lake", empty_postgres_url, accept="add").close()
        with opened(tmp_path / "lake", empty_postgres_url, accept="repair", create=False) as lake:
            lake.rebuild()
        assert count(tmp_path / "lake", empty_postgres_url) == 2


@pytest.mark.s3
@pytest.mark.postgres
@pytest.mark.xdist_group("postgres")
class TestABucket:
    def test_its_address_is_the_same_however_it_is_written(self, s3_url, s3_options, postgres_url):
        filled(s3_url, postgres_url, store_options=s3_options)
        for url in (f"{s3_url}/", s3_url.replace("s3://", "s3a://")):
            assert count(url, postgres_url, store_options=s3_options | {"region": "eu-central-1"}) == 1

    def test_without_its_metastore_it_is_told_which(self, s3_url, s3_options, postgres_url):
        filled(s3_url, postgres_url, store_options=s3_options)
        with pytest.raises(ConfigError, match="none was named; name one as the metastore, its postgresql://"):
            opened(s3_url, store_options=s3_options)

    def test_what_is_left_of_a_lost_metastore_is_found(self, s3_url, s3_options, postgres_url, empty_postgres_url):
        filled(s3_url, postgres_url, store_options=s3_options)
        with pytest.raises(ConfigError, match="belongs to the metastore postgresql://"):
            opened(s3_url, empty_postgres_url, store_options=s3_options)
        with opened(s3_url, empty_postgres_url, store_options=s3_options, accept="add") as lake:
            assert lake.lost_tables() == ["events"]
