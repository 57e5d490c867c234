"""What queries leave behind: of what they read, once, for a share of what they cost, and never an error."""

from __future__ import annotations

import gc
import logging
import sqlite3
import threading
import time
from contextlib import closing
from datetime import UTC, datetime, timedelta

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.engines.streams import streamed
from tests.learning.lakes import PLENTY, assert_alike, expected, learning_lake, learnt, settle, some_rows

import windrow
from windrow.errors import InvalidInput
from windrow.learning import LearningSettings, learner
from windrow.learning.log import ReportedScan
from windrow.questions.naming import Question
from windrow.statistics.layout import split_id_of

ROWS, GROUP = 50_000, 10_000
START = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def lake(tmp_path):
    with learning_lake(tmp_path) as opened:
        yield opened


@pytest.fixture
def path(tmp_path):
    place = tmp_path / "x.parquet"
    pq.write_table(some_rows(ROWS), place, row_group_size=GROUP)
    return place


def covered(lake, path, columns):
    return {name: int(each.covered.sum()) for name, each in learnt(lake, path, columns).items()}


def test_a_query_leaves_statistics_of_what_it_read(lake, path):
    lake.sql(f"select sum(n), max(text), count(long), sum(part) from '{path}' where many > 5 and few <> 3")
    settle(lake)
    names = ["n", "few", "many", "text", "long", "part"]
    found = learnt(lake, path, names)
    assert sorted(found) == sorted(names)
    oracle = expected(path, found["n"].layout.file, names)
    for name in names:
        assert_alike(found[name], oracle[name])


def test_columns_that_no_query_touched_stay_open(lake, path):
    lake.sql(f"select sum(n) from '{path}'")
    settle(lake)
    assert covered(lake, path, ["n", "few", "text"]) == {"n": 5}
    lake.sql(f"select max(text) from '{path}'")
    settle(lake)
    assert covered(lake, path, ["n", "few", "text"]) == {"n": 5, "text": 5}


def test_row_groups_that_a_query_skipped_stay_open_until_one_reads_them(lake, path):
    lake.sql(f"select sum(few) from '{path}' where n < {2 * GROUP}")
    settle(lake)
    assert covered(lake, path, ["n", "few"]) == {"n": 2, "few": 2}
    lake.sql(f"select sum(few) from '{path}'")
    settle(lake)
    found = learnt(lake, path, ["n", "few"])
    assert found["few"].is_complete
    assert not found["n"].is_complete
    assert_alike(found["few"], expected(path, found["few"].layout.file, ["few"])["few"])


def test_a_stream_that_was_read_to_its_end_leaves_them_too(lake, path):
    streamed(lake, f"select n from '{path}'")
    settle(lake)
    assert covered(lake, path, ["n"]) == {"n": 5}


@pytest.mark.parametrize("ask", ["explain", "plan"])
def test_a_query_that_was_not_run_leaves_none(lake, path, ask):
    getattr(lake, ask)(f"select sum(n) from '{path}'")
    settle(lake)
    assert covered(lake, path, ["n"]) == {}


def test_a_query_that_failed_leaves_none(lake, path):
    with pytest.raises(Exception, match="cast"):
        lake.sql(f"select sum(text::int) from '{path}'")
    settle(lake)
    assert covered(lake, path, ["text"]) == {}


def test_what_is_known_is_reported_no_more(lake, path):
    query = f"select sum(n) from '{path}' where n > 7"
    for _ in range(2):
        lake.sql(query)
        settle(lake)
    log = lake.context.learner.log
    log.news.clear()
    lake.sql(query)
    assert not log.scans
    assert not log.news.is_set()


def test_another_lake_finds_them_in_the_cache_folder(tmp_path, path):
    with learning_lake(tmp_path) as lake:
        lake.sql(f"select sum(n) from '{path}'")
        settle(lake)
    with learning_lake(tmp_path) as other:
        assert covered(other, path, ["n"]) == {"n": 5}


def test_closing_stores_what_is_complete_and_ends_the_thread_at_once(tmp_path, path):
    with learning_lake(tmp_path) as lake:
        for name in ("n", "few", "many", "long"):
            lake.sql(f"select max({name}) from '{path}' where n >= 0")
        began = time.monotonic()
    assert time.monotonic() - began < 30
    assert not [each for each in threading.enumerate() if each.name == "windrow-learner" and each.is_alive()]
    with learning_lake(tmp_path, 0) as other:
        for summary in learnt(other, path, ["n", "few", "many", "long"]).values():
            assert summary.known_rows == summary.layout.row_counts[summary.covered].sum()


def test_closing_waits_for_work_that_is_paid_for_when_it_should(tmp_path, path):
    with learning_lake(tmp_path, LearningSettings(1e6, seconds_at_close=60)) as lake:
        lake.sql(f"select sum(n) from '{path}'")
    with learning_lake(tmp_path, 0) as other:
        assert covered(other, path, ["n"]) == {"n": 5}


def test_a_lake_that_is_dropped_ends_its_thread(tmp_path, path):
    lake = windrow.connect(tmp_path / "dropped")
    lake.sql(f"select sum(n) from '{path}'")
    thread = lake.context.learner._work._thread
    lake._queries.close()
    del lake
    gc.collect()
    thread.join(30)
    assert not thread.is_alive()


def test_with_a_share_of_zero_nothing_is_collected(tmp_path, path):
    with learning_lake(tmp_path, 0) as lake:
        lake.sql(f"select sum(n) from '{path}'")
        assert lake.context.learner is None
        assert covered(lake, path, ["n"]) == {}


def test_with_a_share_that_pays_for_nothing_all_is_left_for_later(tmp_path, path):
    with learning_lake(tmp_path, 1e-9) as lake:
        assert lake.sql(f"select sum(n) as s from '{path}'").to_dict() == [{"s": ROWS * (ROWS - 1) // 2}]
        settle(lake)
        assert covered(lake, path, ["n"]) == {}


def test_what_could_not_be_paid_for_is_learnt_when_it_can(tmp_path, path):
    with learning_lake(tmp_path, 1e-9) as lake:
        lake.sql(f"select sum(n) from '{path}'")
        settle(lake)
        lake.context.learner._work._earnings._earned += 60.0
        settle(lake)
        assert covered(lake, path, ["n"]) == {"n": 5}


@pytest.mark.parametrize("share", [-0.1, float("nan"), float("inf")])
def test_a_share_is_a_number_from_zero_on(tmp_path, share):
    with pytest.raises(InvalidInput, match="share"):
        windrow.connect(tmp_path / "lake", statistics=share)


def test_files_that_are_known_are_not_looked_at_again(lake, tmp_path, monkeypatch):
    for number in range(3):
        pq.write_table(some_rows(ROWS), tmp_path / f"{number}.parquet", row_group_size=GROUP)
    loads, load = [], learner.load_together
    monkeypatch.setattr(learner, "load_together", lambda *given: loads.append(len(given[1])) or load(*given))
    lake.sql(f"select sum(n) from '{tmp_path}/*.parquet'")
    settle(lake)
    assert loads == [3]
    lake.sql(f"select sum(n) from '{tmp_path}/*.parquet'")  # one more report finds that nothing is open
    settle(lake)
    loads.clear()
    for least in (5, 6):
        lake.sql(f"select sum(n) from '{tmp_path}/*.parquet' where n > {least}")
        settle(lake)
    assert not loads


def test_a_report_of_many_files_is_read_as_far_as_it_is_paid_for(tmp_path, monkeypatch):
    for number in range(40):
        pq.write_table(some_rows(100), tmp_path / f"{number}.parquet")
    read, read_on, paid_for = [], learner._Work._read_on, [5]
    monkeypatch.setattr(learner._Work, "_read_on", lambda work: read.append(read_on(work)))
    monkeypatch.setattr(learner.Earnings, "balance", property(lambda _: float(len(read) < paid_for[0])))
    with learning_lake(tmp_path / "poor") as lake:
        lake.sql(f"select sum(n) from '{tmp_path}/*.parquet'")
        settle(lake)
        assert len(read) == 5
        paid_for[0] = 1000
        settle(lake)
        assert len(read) == 41  # and once to find its end
        found = [covered(lake, tmp_path / f"{number}.parquet", ["n"]) for number in range(40)]
        assert found == [{"n": 1}] * 40


def test_files_that_nobody_pays_for_do_not_wait_for_ever(tmp_path, monkeypatch):
    monkeypatch.setattr(learner, "_MOST_WAITING", 5)
    # Reports are read, and nothing is learnt.
    monkeypatch.setattr(learner.Earnings, "balance", property(lambda _: 0.00021))
    paths = [tmp_path / f"{number}.parquet" for number in range(12)]
    with learning_lake(tmp_path / "poor") as lake:
        for number, path in enumerate(paths):
            pq.write_table(some_rows(100, number), path)
            lake.sql(f"select sum(n) from '{path}'")
            settle(lake)
        work = lake.context.learner._work
        files = {str(each.file.uri) for each in work.tasks.files()}
        assert files == {path.as_uri() for path in paths[-5:]}
        assert len(work.files) == 5
        monkeypatch.undo()
        lake.sql(f"select sum(n) from '{paths[0]}'")
        settle(lake)
        assert covered(lake, paths[0], ["n"]) == {"n": 1}


def test_row_groups_share_as_many_synopses_as_there_may_be(tmp_path, path):
    with learning_lake(tmp_path, LearningSettings(1e6, synopses=2)) as lake:
        lake.sql(f"select sum(n) from '{path}'")
        settle(lake)
        synopses = learnt(lake, path, ["n"])["n"].synopses
        assert (len(synopses.facts), synopses.group_size) == (2, 3)
        assert synopses.covered.all()


def test_there_is_a_synopsis_at_least(tmp_path):
    with pytest.raises(InvalidInput, match="0 synopses of a column; give a whole number from 1 on"):
        LearningSettings(synopses=0)


def test_dictionaries_alone_are_learnt_where_nothing_else_may_be(tmp_path, path):
    with learning_lake(tmp_path, LearningSettings(1e6, only_dictionaries=True)) as lake:
        lake.sql(f"select sum(n), sum(few), max(text) from '{path}'")
        settle(lake)
        assert covered(lake, path, ["n", "few", "text"]) == {"few": 5, "text": 5}


def test_what_a_dictionary_told_is_completed_by_the_rows_of_the_sample(tmp_path):
    path = tmp_path / "small_pages.parquet"
    pq.write_table(some_rows(ROWS), path, row_group_size=GROUP, data_page_size=2_000, write_batch_size=500)
    with learning_lake(tmp_path, LearningSettings(1e6, only_dictionaries=True)) as lake:
        lake.sql(f"select sum(few), max(text) from '{path}'")
        settle(lake)
        assert not learnt(lake, path, ["few"])["few"].sample.known.any()
    with learning_lake(tmp_path) as lake:
        lake.sql(f"select sum(few), max(text) from '{path}'")
        settle(lake)
        found = learnt(lake, path, ["few", "text"])
        oracle = expected(path, found["few"].layout.file, ["few", "text"])
        for name, summary in found.items():
            assert_alike(summary, oracle[name])


class TestTables:
    @pytest.fixture
    def table(self, lake):
        made = lake.create_table("t", sort="host|timestamp/V2", window="15m", mirror=False)
        times = pa.array([START + timedelta(milliseconds=40 * n) for n in range(40_000)], pa.timestamp("us", "UTC"))
        hosts = [f"h{n % 7}" for n in range(40_000)]
        made.ingest(pa.table({"host": hosts, "timestamp": times, "value": np.arange(40_000) % 1000}))
        return made

    def known(self, lake, table, columns):
        record = lake.context.metastore.table("t")
        [page] = lake.context.metastore.splits(record.table_id, record.version)
        return lake.context.statistics_of(record.table_id).load([split_id_of(each) for each in page], columns)

    def test_a_query_leaves_statistics_of_splits(self, lake, table):
        lake.sql("select host, sum(value) from t group by all")
        settle(lake)
        found = self.known(lake, table, ["host", "value", "timestamp"])
        table.upkeep.analyze()
        oracle = self.known(lake, table, ["host", "value"])
        assert found.keys() == oracle.keys()
        for key, columns in found.items():
            assert sorted(columns) == ["host", "value"]
            for name, summary in columns.items():
                assert_alike(summary, oracle[key][name])

    def test_a_scan_does_too(self, lake, table):
        table.scan(columns=["value"]).to_arrow()
        settle(lake)
        assert all(sorted(columns) == ["value"] for columns in self.known(lake, table, ["host", "value"]).values())

    def test_a_small_scan_that_reads_granules_leaves_row_groups_open(self, lake, table):
        plan = lake.plan("select value from t where host = 'h0' and value < 5")["t"]
        assert (plan.virtual[0].placed.places[:, 3] >= 0).any()
        lake.sql("select value from t where host = 'h0' and value < 5")
        settle(lake)
        assert self.known(lake, table, ["value"]) == {}

    def test_a_metastore_that_takes_no_writes_costs_statistics_alone(self, lake, table, caplog):
        caplog.set_level(logging.DEBUG, "windrow")
        with closing(sqlite3.connect(lake.context.store.root / "windrow.db")) as connection:
            refusal = "begin select raise(fail, 'nothing may be written'); end"
            connection.execute(f"create trigger refuses before insert on windrow_statistics {refusal}")
        for _ in range(2):
            assert lake.sql("select sum(value) as n from t").to_dict() == [{"n": 19_980_000}]
            settle(lake)
        assert self.known(lake, table, ["value"]) == {}
        assert any("statistics of" in record.message for record in caplog.records)


class TestTrouble:
    def test_a_folder_that_cannot_be_written_costs_statistics_alone(self, tmp_path, path, caplog):
        caplog.set_level(logging.DEBUG, "windrow")
        (tmp_path / "cache").mkdir()
        (tmp_path / "cache" / "statistics").write_bytes(b"this is no folder")
        with learning_lake(tmp_path) as lake:
            assert lake.sql(f"select count(n) as n from '{path}'").to_dict() == [{"n": ROWS}]
            settle(lake)
            assert covered(lake, path, ["n"]) == {}
        assert any("are not stored" in record.message for record in caplog.records)

    def test_a_file_that_is_replaced_leaves_nothing_of_what_it_was(self, lake, path):
        lake.context.learner.log.running.append(None)  # it waits for a query to end
        lake.sql(f"select sum(n) from '{path}'")
        pq.write_table(some_rows(ROWS // 2, seed=1), path, row_group_size=GROUP)
        lake.context.learner.log.running.pop()
        settle(lake)
        assert covered(lake, path, ["n"]) == {}
        lake.sql(f"select sum(n) from '{path}'")
        settle(lake)
        found = learnt(lake, path, ["n"])
        assert_alike(found["n"], expected(path, found["n"].layout.file, ["n"])["n"])

    def test_a_damaged_column_is_passed_over(self, lake, path, caplog):
        caplog.set_level(logging.DEBUG, "windrow")
        chunk = pq.read_metadata(path).row_group(2).column(2)
        data = bytearray(path.read_bytes())
        start = chunk.dictionary_page_offset or chunk.data_page_offset
        data[start + 4 : start + 400] = bytes(396)
        path.write_bytes(data)
        lake.sql(f"select sum(n) from '{path}'")
        relation = lake._queries._foreign(str(path))
        question = Question(("n", "many"), None)
        relation.scanned.log.scans.append(ReportedScan(relation.scanned, relation.plan(question), question))
        settle(lake)
        found = learnt(lake, path, ["n", "many"])
        assert found["n"].is_complete
        assert found["many"].covered.tolist() == [True, True, False, True, True]
        assert lake.context.learner.drain()


class TestRemote:
    def test_no_request_is_made_to_learn(self, tmp_path, lake, range_server):
        pq.write_table(some_rows(200_000), tmp_path / "x.parquet", row_group_size=50_000)
        range_server.objects["/raw/x.parquet"] = (tmp_path / "x.parquet").read_bytes()
        url = f"{range_server.url}/raw/x.parquet"
        lake.sql(f"select sum(few), max(many), min(long) from '{url}' where n <> 5")
        made = len(range_server.requests)
        settle(lake)
        assert len(range_server.requests) == made
        names = ["n", "few", "many", "long"]
        found = learnt(lake, url, names)
        oracle = expected(tmp_path / "x.parquet", found["n"].layout.file, names)
        assert sorted(found) == sorted(names)
        for name in names:
            assert_alike(found[name], oracle[name])

    def test_what_no_cache_has_any_more_is_not_requested_again(self, tmp_path, lake, range_server):
        pq.write_table(some_rows(200_000), tmp_path / "x.parquet", row_group_size=50_000)
        range_server.objects["/raw/x.parquet"] = (tmp_path / "x.parquet").read_bytes()
        url = f"{range_server.url}/raw/x.parquet"
        log = lake.context.learner.log
        log.running.append(None)
        lake.sql(f"select max(many) from '{url}'")
        lake.context.cache.invalidate_all()
        made = len(range_server.requests)
        log.running.pop()
        settle(lake)
        assert learnt(lake, url, ["many"]) == {}
        assert len(range_server.requests) <= made + 1  # the look into the catalog describes the file anew


def test_answers_are_those_of_duckdb_while_statistics_grow(lake, path):
    queries = [
        f"select few, count(*), sum(n), max(text) from '{path}' where many % 3 = {number} group by few order by few"
        for number in range(3)
    ] * 2
    for query in queries:
        assert lake.sql(query).to_dict() == duckdb.sql(query).to_arrow_table().to_pylist()


def test_statistics_are_learnt_beside_queries_that_never_end(lake, path):
    log = lake.context.learner.log
    log.running.append(None)
    lake.sql(f"select sum(n) from '{path}'")
    settle(lake)
    log.running.pop()
    assert covered(lake, path, ["n"]) == {"n": 5}


def test_settings_travel_with_a_lake(tmp_path):
    import pickle

    with learning_lake(tmp_path, PLENTY) as lake:
        with pickle.loads(pickle.dumps(lake)) as other:
            assert other.context.statistics == PLENTY
        assert pickle.loads(pickle.dumps(lake.context)).statistics == PLENTY
