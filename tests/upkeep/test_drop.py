"""Tables that are dropped and renamed: names go at once, files go by garbage collection alone, whatever stops it."""

from __future__ import annotations

import pyarrow as pa
import pytest
from deltalake import DeltaTable

import windrow
from windrow.errors import AlreadyExists, NotFound, StorageError
from windrow.identity.folders import is_dropped
from windrow.upkeep.dropped import CollectDropped

SORT = "host|timestamp/V2"


def rows(*hosts):
    return pa.table({"host": list(hosts), "timestamp": pa.array([0] * len(hosts), pa.timestamp("us", "UTC"))})


def hosts(lake, table):
    return sorted(row["host"] for row in lake.sql(f"select host from {table}").to_dict())


@pytest.fixture
def lake(tmp_path):
    with windrow.connect(tmp_path / "lake") as opened:
        opened.create_table("events", sort=SORT).ingest(rows("a", "b"))
        yield opened


def files(lake, folder="events"):
    return [info.key for info in lake.context.store.list(folder)]


class TestDropping:
    def test_a_plan_says_what_leaves_and_changes_nothing(self, lake):
        plan = lake.drop_table.plan("events")
        assert (plan.table, plan.folder, plan.splits, plan.rows, plan.open_commits) == ("events", "events", 1, 2, 0)
        assert hosts(lake, "events") == ["a", "b"]

    def test_the_table_is_gone_and_its_files_are_there(self, lake):
        before = files(lake)
        assert lake.drop_table.run("events").rows == 2
        assert len(lake.tables()) == 0
        with pytest.raises(NotFound):
            lake.table("events")
        assert set(files(lake)) == {*before, "events/_dropped.json"}

    def test_queries_do_not_see_it_and_ingest_refuses(self, lake):
        table = lake.table("events")
        assert hosts(lake, "events") == ["a", "b"]
        lake.drop_table.run("events")
        with pytest.raises(windrow.WindrowError):
            hosts(lake, "events")
        with pytest.raises(NotFound):
            table.ingest(rows("c"))

    def test_a_writer_at_work_cannot_publish(self, lake):
        table = lake.table("events")

        def drop(_):
            lake.drop_table.run("events")

        with pytest.raises(windrow.WindrowError):
            table.ingest(rows("c"), on_split=drop)

    def test_a_new_table_of_the_name_shares_nothing_with_it(self, lake, tmp_path):
        lake.drop_table.run("events")
        lake.create_table("events", sort=SORT).ingest(rows("c"))
        record = lake.table("events").record()
        assert record.folder == f"events-{record.table_id}"
        assert hosts(lake, "events") == ["c"]
        assert lake.table("events").upkeep.check(data=True).sound
        lake.collect_dropped.run(grace=0)
        assert files(lake) == []
        lake.table("events").compact.run()
        assert lake.table("events").upkeep.gc.run(grace=0).unknown_files == 0
        assert hosts(lake, "events") == ["c"]
        assert DeltaTable(str(tmp_path / "lake" / record.folder)).to_pyarrow_table().num_rows == 1

    def test_it_is_not_taken_for_a_lost_table(self, lake):
        lake.drop_table.run("events")
        assert lake.lost_tables() == []
        assert lake.rebuild() == []

    def test_it_is_not_brought_back_when_the_metastore_is_lost(self, lake, tmp_path):
        lake.create_table("kept", sort=SORT).ingest(rows("k"))
        lake.drop_table.run("events")
        lake.close()
        for file in (tmp_path / "lake").glob("windrow.db*"):
            file.unlink()
        with windrow.connect(tmp_path / "lake", accept="repair") as again:
            assert [each.table for each in again.rebuild()] == ["kept"]
            with pytest.raises(NotFound, match="was dropped"):
                again.rebuild_table("events")
            assert again.create_table("events", sort=SORT).record().folder != "events"


class TestCollecting:
    def test_a_plan_says_what_would_go(self, lake):
        lake.drop_table.run("events")
        before = files(lake)
        (found,) = lake.collect_dropped.plan(grace=0)
        assert (found.table, found.files, found.held_by) == ("events", len(before), ())
        assert files(lake) == before

    def test_the_grace_period_holds_everything(self, lake):
        lake.drop_table.run("events")
        before = files(lake)
        assert lake.collect_dropped.run()[0].held_by == ("the grace period",)
        assert files(lake) == before

    def test_a_reader_holds_everything_until_it_ends(self, lake, tmp_path):
        with windrow.connect(tmp_path / "lake") as other:
            batches = other.table("events").scan().to_reader()
            lake.drop_table.run("events")
            before = files(lake)
            assert "pin of" in lake.collect_dropped.run(grace=0)[0].held_by[0]
            assert files(lake) == before
            assert batches.read_all().num_rows == 2
        assert lake.collect_dropped.run(grace=0)[0].held_by == ()
        assert files(lake) == []
        assert lake.collect_dropped.run(grace=0) == []

    def test_files_of_others_stay(self, lake):
        lake.context.store.put("events/notes.txt", b"mine")
        lake.drop_table.run("events")
        assert lake.collect_dropped.run(grace=0)[0].other_files == 1
        assert files(lake) == ["events/notes.txt"]
        assert lake.create_table("events", sort=SORT).record().folder == "events"

    def test_the_name_and_its_folder_are_free_afterwards(self, lake):
        lake.drop_table.run("events")
        lake.collect_dropped.run(grace=0)
        table = lake.create_table("events", sort=SORT)
        assert table.record().folder == "events"
        table.ingest(rows("n"))
        assert hosts(lake, "events") == ["n"]

    def test_a_collection_that_stops_anywhere_is_continued(self, lake, monkeypatch):
        lake.drop_table.run("events")
        total = len(files(lake))
        delete = type(lake.context.store).delete
        for allowed in range(total):
            done = []

            def some(store, key, allowed=allowed, done=done):
                if len(done) >= 1 + allowed % 2:
                    raise StorageError(f"{key} stays")
                done.append(key)
                delete(store, key)

            monkeypatch.setattr(type(lake.context.store), "delete", some)
            before = files(lake)
            reports = lake.collect_dropped.run(grace=0)
            if not reports:
                break
            left = files(lake)
            assert set(left) <= set(before)
            # As long as there is a file, the folder says that it is no table; the log goes after the splits.
            assert not left or is_dropped(lake.context.store, "events")
            if any(key.endswith(".parquet") and "_delta_log" not in key for key in left):
                assert any("_delta_log" in key for key in left)
            assert lake.lost_tables() == []
        assert files(lake) == []
        assert lake.context.metastore.dropped_tables() == []

    def test_a_run_that_is_killed_before_it_forgets_leaves_the_rest_to_the_next(self, lake, monkeypatch):
        lake.drop_table.run("events")
        with monkeypatch.context() as patch:
            patch.setattr(type(lake.context.metastore), "forget_table", _killed)
            with pytest.raises(KeyboardInterrupt):
                lake.collect_dropped.run(grace=0)
        assert files(lake) == []
        assert [each.files for each in CollectDropped(lake.context).run(grace=0)] == [0]
        assert lake.collect_dropped.run(grace=0) == []

    def test_a_drop_that_is_killed_before_its_mark_is_marked_by_the_next_collection(self, lake, monkeypatch):
        with monkeypatch.context() as patch:
            patch.setattr("windrow.upkeep.drop.mark_dropped", _killed)
            with pytest.raises(KeyboardInterrupt):
                lake.drop_table.run("events")
        assert len(lake.tables()) == 0
        assert lake.lost_tables() == []
        lake.collect_dropped.run()
        assert is_dropped(lake.context.store, "events")


class TestRenaming:
    def test_a_plan_refuses_what_a_run_refuses(self, lake):
        lake.create_table("other", sort=SORT)
        for verb in (lake.rename_table.plan, lake.rename_table.run):
            with pytest.raises(AlreadyExists, match="'other' exists already"):
                verb("events", "OTHER")
            with pytest.raises(windrow.InvalidInput, match="not a table name"):
                verb("events", "a b")
            with pytest.raises(NotFound):
                verb("evnts", "x")
        assert lake.rename_table.plan("events", "readings").folder == "events"
        assert [each.name for each in lake.tables()] == ["events", "other"]

    def test_everything_works_under_the_new_name_in_the_old_folder(self, lake, tmp_path):
        before = files(lake)
        lake.rename_table.run("events", "readings")
        assert files(lake) == before
        table = lake.table("readings")
        table.ingest(rows("c"))
        table.compact.run()
        assert hosts(lake, "readings") == ["a", "b", "c"]
        assert table.upkeep.check(data=True).sound
        table.upkeep.gc.run(grace=0)
        assert table.upkeep.check(data=True).sound
        assert files(lake, "readings") == []
        delta = DeltaTable(str(tmp_path / "lake" / "events"))
        assert delta.metadata().name == "readings"
        assert delta.to_pyarrow_table().num_rows == 3

    def test_the_mirror_is_sound_before_the_next_commit_too(self, lake):
        lake.rename_table.run("events", "readings")
        assert lake.table("readings").upkeep.check().sound

    def test_registered_files_and_dead_letters_go_to_the_same_folder(self, lake, tmp_path):
        lake.rename_table.run("events", "readings")
        _write(tmp_path / "raw.parquet")
        lake.table("readings").register.run(tmp_path / "raw.parquet")
        assert any("_registered" in key for key in files(lake))
        assert lake.table("readings").upkeep.check(data=True).sound

    def test_a_lost_metastore_has_the_name_that_the_log_knows(self, lake, tmp_path):
        lake.create_table("later", sort=SORT).ingest(rows("l"))
        lake.rename_table.run("events", "readings")
        lake.table("readings").ingest(rows("c"))
        lake.rename_table.run("later", "unseen")
        lake.close()
        for file in (tmp_path / "lake").glob("windrow.db*"):
            file.unlink()
        with windrow.connect(tmp_path / "lake", accept="repair") as again:
            assert again.lost_tables() == ["events", "later"]
            assert [each.table for each in again.rebuild()] == ["readings", "later"]
            assert "a name that the table was given after the last commit" in again_cannot_know()
            assert hosts(again, "readings") == ["a", "b", "c"]
            assert again.table("readings").upkeep.check(data=True).sound


def again_cannot_know():
    from windrow.upkeep.rebuild import Rebuilt

    return Rebuilt.__dataclass_fields__["cannot_know"].default


def _write(path):
    import pyarrow.parquet as pq

    pq.write_table(rows("r"), path)


def _killed(*_):
    raise KeyboardInterrupt
