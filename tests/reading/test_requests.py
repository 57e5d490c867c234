"""What a scan of remote files costs: requests and bytes, counted by the servers."""

from __future__ import annotations

import threading

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.reading.samples import parquet

from windrow.cache import CacheKind, CacheSettings, MemoryCache, default_cache
from windrow.engines.duckdb.engine import DuckDBEngine
from windrow.engines.duckdb.foreign_relations import ForeignRelations
from windrow.planning.data_files import weight_of
from windrow.planning.foreign_files import ForeignFiles
from windrow.planning.scan_context import ScanContext
from windrow.reading.read_context import ReadContext
from windrow.storage import open_store

ROWS = 40_000
BUCKET = "windrow-scans"


def file_of(seed=0, **options):
    random = np.random.default_rng(seed)
    table = pa.table({"key": np.arange(ROWS), "value": random.normal(size=ROWS), "other": random.normal(size=ROWS)})
    given = {"row_group_size": 10_000, "max_rows_per_page": None, "write_page_index": False, **options}
    return table, parquet(table, **given)


def chunk(data, group, column):
    """Where a chunk is, as a server is asked for it."""
    found = pq.read_metadata(pa.BufferReader(data)).row_group(group).column(column)
    start = found.dictionary_page_offset or found.data_page_offset
    return f"bytes={start}-{start + found.total_compressed_size - 1}", found.total_compressed_size


class Reader:
    """Queries over addresses, by one process with a cache of its own."""

    def __init__(self, folder, options=None, cache=None):
        self.cache = default_cache(CacheSettings(folder=folder)) if cache is None else cache
        self.parsed = MemoryCache(10**7, weigh=weight_of)
        store = open_store("memory://")
        self.files = ForeignFiles(ScanContext("x", store, self.cache, self.parsed), options)
        self.relations = ForeignRelations(self.files)
        self.engine = DuckDBEngine(ReadContext("x", store, self.cache))

    def ask(self, query):
        answer = self.engine.sql(query, {}, self.relations)
        return [tuple(row.values()) for row in answer.to_dict()]


@pytest.fixture
def reader(tmp_path):
    made = Reader(tmp_path)
    yield made
    made.engine.close()


@pytest.fixture
def served(range_server):
    table, data = file_of()
    range_server.objects["/raw/a.parquet"] = data
    return table, data, f"{range_server.url}/raw/a.parquet"


def test_a_cold_file_takes_two_requests_and_a_warm_one_takes_the_chunk(reader, served, range_server):
    table, data, url = served
    query = "select sum(value) from '{}'"
    # One row group is chosen by its number of rows alone, so that one column is all that is read.
    one = file_of(row_group_size=ROWS)[1]
    range_server.objects["/raw/one.parquet"] = one
    expected = table["value"].to_numpy().sum()
    assert reader.ask(query.format(url.replace("a.parquet", "one.parquet")))[0][0] == pytest.approx(expected)
    place, size = chunk(one, 0, 1)
    assert [request.range for request in range_server.requests] == ["bytes=-65536", place]
    range_server.requests.clear()
    range_server.sent = 0
    assert reader.ask("select sum(other) from '{}'".format(url.replace("a.parquet", "one.parquet")))
    place, size = chunk(one, 0, 2)
    assert [request.range for request in range_server.requests] == [place]
    assert range_server.sent == size
    assert data


def test_only_row_groups_that_can_match_are_fetched(reader, served, range_server):
    table, data, url = served
    reader.ask(f"select count(*) from '{url}' where key < 0")
    assert [request.range for request in range_server.requests] == ["bytes=-65536"], "nothing can match"
    range_server.requests.clear()
    range_server.sent = 0
    found = reader.ask(f"select max(key), count(*) from '{url}' where key between 12000 and 12100")
    assert found == [(12100, 101)]
    place, size = chunk(data, 1, 0)
    assert [request.range for request in range_server.requests] == [place]
    assert range_server.sent == size
    assert len(table) == ROWS


def test_what_was_read_before_is_asked_for_whether_it_changed_and_not_read_again(reader, served, range_server):
    _, _, url = served
    first = reader.ask(f"select max(value) from '{url}'")
    range_server.requests.clear()
    range_server.sent = 0
    assert reader.ask(f"select max(value) from '{url}'") == first
    assert [request.method for request in range_server.requests] == ["HEAD"]
    assert range_server.sent == 0


def test_another_process_on_the_same_folder_is_warm_too(served, range_server, tmp_path):
    _, _, url = served
    first, second = Reader(tmp_path), Reader(tmp_path)
    expected = first.ask(f"select max(value) from '{url}'")
    range_server.requests.clear()
    assert second.ask(f"select max(value) from '{url}'") == expected
    assert [request.method for request in range_server.requests] == ["HEAD"]


def test_a_replaced_file_is_read_anew(reader, served, range_server):
    _, _, url = served
    reader.ask(f"select sum(value) from '{url}'")
    table, data = file_of(seed=1)
    range_server.objects["/raw/a.parquet"] = data
    for column in ("value", "other", "value"):
        [(found,)] = reader.ask(f"select sum({column}) from '{url}'")
        assert found == pytest.approx(table[column].to_numpy().sum())


def test_a_small_file_is_fetched_whole_by_the_first_request(reader, range_server):
    range_server.objects["/raw/small.parquet"] = parquet(pa.table({"a": [1, 2, 3], "b": [4, 5, 6]}))
    url = f"{range_server.url}/raw/small.parquet"
    assert reader.ask(f"select sum(a), sum(b) from '{url}'") == [(6, 15)]
    assert [request.method for request in range_server.requests] == ["GET", "HEAD"]


def test_64_cold_readers_of_one_file_are_one_load(served, range_server, tmp_path):
    _, data, url = served
    range_server.behave = lambda request: 0.3  # so that all of them come before the first answer
    cache = MemoryCache(10**8)
    files = ForeignFiles(ScanContext("x", open_store("memory://"), cache))
    barrier, found = threading.Barrier(64), []

    def work():
        barrier.wait()
        found.append(files.find(url)[0].identity.size)

    threads = [threading.Thread(target=work) for _ in range(64)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [len(data)] * 64
    counts = cache.metrics.counts(CacheKind.SIDECAR)
    assert (len(range_server.requests), counts.misses, counts.coalesced, counts.hits) == (1, 1, 63, 0)


@pytest.mark.s3
class TestS3:
    @pytest.fixture
    def bucket(self):
        from urllib.request import Request, urlopen

        from moto.server import ThreadedMotoServer

        server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
        server.start()
        host, port = server.get_host_and_port()
        with urlopen(Request(f"http://{host}:{port}/{BUCKET}", method="PUT")):
            pass
        self.requests = []
        app = server._server.app

        def counted(environ, start_response):
            self.requests.append((environ["REQUEST_METHOD"], environ.get("HTTP_RANGE")))
            return app(environ, start_response)

        server._server.app = counted
        options = {
            "endpoint": f"http://{host}:{port}",
            "allow_http": "true",
            "access_key_id": "somebody",
            "secret_access_key": "something",
            "region": "us-east-1",
        }
        yield options
        server.stop()

    def test_a_bucket_is_asked_as_a_web_server_is(self, bucket, tmp_path):
        store = open_store(f"s3://{BUCKET}", options=bucket)
        table, data = file_of(row_group_size=ROWS)
        store.put("raw/a.parquet", data)
        store.put("raw/b.parquet", file_of(1)[1])
        self.requests.clear()
        reader = Reader(tmp_path, bucket)
        url = f"s3://{BUCKET}/raw/a.parquet"
        [(found,)] = reader.ask(f"select sum(value) from '{url}'")
        assert found == pytest.approx(table["value"].to_numpy().sum())
        assert self.requests == [("GET", "bytes=-65536"), ("GET", chunk(data, 0, 1)[0])]
        self.requests.clear()
        reader.ask(f"select sum(other) from '{url}'")
        assert self.requests == [("GET", chunk(data, 0, 2)[0])]
        [(count,)] = reader.ask(f"select count(*) from 's3://{BUCKET}/raw/*.parquet' where key < 5")
        assert count == 10
        reader.engine.close()
