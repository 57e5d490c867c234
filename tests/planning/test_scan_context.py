"""The cache of footers: off unless an application injects one, whichever class that is of."""

from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from windrow.cache import CacheKey, CacheKind, MemoryCache
from windrow.errors import Damaged, InvalidInput
from windrow.planning.footers import FIRST_CONTACT
from windrow.planning.scan_context import ScanContextBuilder
from windrow.reading.parquet_reader import ParquetReaderBuilder
from windrow.reading.read_context import ReadContextBuilder
from windrow.storage import CountingStore, open_store

TABLE = pa.table({"number": list(range(1000)), "text": [str(n % 7) for n in range(1000)]})


def parquet(table=TABLE, **options):
    sink = io.BytesIO()
    pq.write_table(table, sink, **options)
    return sink.getvalue()


@pytest.fixture
def store():
    counting = CountingStore(open_store("memory://"))
    counting.store.put("a.parquet", parquet())
    return counting


class RoutingCache:
    """A cache that an application wrote itself: footers go one way, everything else another."""

    def __init__(self, default, footers):
        self.default, self.footers, self.keys = default, footers, []

    def _select(self, key):
        self.keys.append(key)
        return self.footers if key.kind == CacheKind.DATA_FILE_FOOTER else self.default

    def get(self, key, supplier):
        return self._select(key).get(key, supplier)

    def put(self, key, value):
        self._select(key).put(key, value)

    def invalidate(self, key):
        self._select(key).invalidate(key)

    def invalidate_all(self):
        self.default.invalidate_all()
        self.footers.invalidate_all()

    def size(self):
        return self.default.size() + self.footers.size()


@pytest.mark.parametrize("builder", [ScanContextBuilder, ReadContextBuilder])
def test_caching_is_off_unless_a_cache_is_given(builder):
    assert builder("memory://").build().cache is None
    assert builder("memory://").with_cache(None).build().cache is None
    cache = MemoryCache(1000)
    assert builder("memory://").with_cache(cache).build().cache is cache


def test_without_a_cache_every_open_reads_the_footer(store):
    reader = ParquetReaderBuilder(ReadContextBuilder("memory://").with_store(store).build())
    for _ in range(3):
        assert reader.open("a.parquet").metadata.num_rows == 1000
    assert store.counts.requests["get_suffix"] == 3


def test_with_one_the_footer_is_read_once_and_parsed_on_each_open(store):
    cache = RoutingCache(MemoryCache(10**6), MemoryCache(10**6))
    reader = ParquetReaderBuilder(ReadContextBuilder("memory://").with_store(store).with_cache(cache).build())
    files = [reader.open("a.parquet") for _ in range(3)]
    assert all(file.metadata.num_rows == 1000 for file in files)
    assert files[0].metadata is not files[1].metadata
    assert store.counts.requests == {"get_suffix": 1}
    assert (cache.footers.size(), cache.default.size()) == (1, 0)
    assert set(cache.keys) == {CacheKey("memory://a.parquet", -1, -1, CacheKind.DATA_FILE_FOOTER)}
    assert files[2].read().equals(TABLE)


def test_the_value_is_the_complete_footer_as_the_file_ends_with_it(store):
    cache = MemoryCache(10**6)
    context = ReadContextBuilder("memory://").with_store(store).with_cache(cache).build()
    ParquetReaderBuilder(context).open("a.parquet")
    footer = cache.get(CacheKey.footer("memory://a.parquet"), None)
    assert parquet().endswith(footer)
    assert footer.endswith(b"PAR1")
    assert len(footer) == int.from_bytes(footer[-8:-4], "little") + 8
    assert pq.read_metadata(pa.BufferReader(footer)).num_rows == 1000


def test_a_file_without_a_uri_bypasses_the_cache(store):
    cache = MemoryCache(10**6)
    reader = ParquetReaderBuilder(ReadContextBuilder("memory://").with_store(store).with_cache(cache).build())
    assert reader.open_file(io.BytesIO(parquet())).read().equals(TABLE)
    assert cache.size() == 0
    assert cache.metrics.counts(CacheKind.DATA_FILE_FOOTER).bypasses == 1


def test_contents_are_told_apart_by_identity(store):
    cache = MemoryCache(10**6)
    reader = ParquetReaderBuilder(ReadContextBuilder("memory://").with_store(store).with_cache(cache).build())
    old = store.head("a.parquet")
    assert reader.open("a.parquet", identity=str(old.identity)).metadata.num_rows == 1000
    store.put("a.parquet", parquet(TABLE.slice(0, 10)))
    new = store.head("a.parquet")
    assert reader.open("a.parquet", identity=str(new.identity)).metadata.num_rows == 10


def test_a_footer_beyond_the_first_contact_takes_a_second_request(store):
    wide = pa.table({f"column_{number}": [1] for number in range(2000)})
    store.store.put("wide.parquet", parquet(wide))
    reader = ParquetReaderBuilder(ReadContextBuilder("memory://").with_store(store).build())
    assert len(parquet(wide)) > FIRST_CONTACT
    assert reader.open("wide.parquet").metadata.num_columns == 2000
    assert store.counts.requests == {"get_suffix": 1, "get_ranges": 1}


@pytest.mark.parametrize("data", [b"", b"PAR1", b"PAR1" + b"\xff\xff\xff\x7f" + b"PAR1", b"not a parquet file at all"])
def test_what_is_no_parquet_file_is_refused_by_name(store, data):
    store.store.put("bad.parquet", data)
    reader = ParquetReaderBuilder(ReadContextBuilder("memory://").with_store(store).build())
    with pytest.raises(Damaged, match="bad.parquet"):
        reader.open("bad.parquet")


def test_limits_that_cannot_be_are_refused():
    with pytest.raises(InvalidInput, match="0 requests at once"):
        ReadContextBuilder("memory://").with_limits(parallel=0, in_flight=5).build()
