"""Footers of plain Parquet files go through the cache that a lake was given, and everybody can see how they did."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.cache.test_counted import Own

import windrow
from windrow.cache import CacheKind, CacheSettings, MemoryCache, RoutingCache
from windrow.storage import LocalStore
from windrow.testing import RangeServer

FOOTER = CacheKind.DATA_FILE_FOOTER


@pytest.fixture
def raw(tmp_path):
    folder = tmp_path / "raw"
    folder.mkdir()
    pq.write_table(pa.table({"a": range(100)}), folder / "0.parquet")
    return folder


def total(lake, path):
    return lake.sql(f"select sum(a + 0) as total from '{path}'").to_dict()[0]["total"]


def row(lake, cache, kind=FOOTER):
    found = {(each.cache, each.kind): each for each in lake.cache.stats()}
    return found.get((cache, str(kind)))


def test_a_query_reads_a_footer_through_the_public_cache(tmp_path, raw):
    own, path = Own(), raw / "0.parquet"
    with windrow.connect(tmp_path / "lake", cache=own) as lake:
        assert total(lake, path) == 4950
    [(key, footer)] = [(key, value) for key, value in own.values.items() if key.kind is FOOTER]
    assert (key.uri, key.position, key.length) == (path.as_uri(), -1, -1)
    assert path.read_bytes().endswith(footer)
    assert pq.read_metadata(pa.BufferReader(footer)).num_rows == 100


def test_a_footer_that_is_cached_is_not_read_again(tmp_path, raw, monkeypatch):
    footers, path = MemoryCache(10**6, name="footers"), raw / "0.parquet"
    with windrow.connect(tmp_path / "lake", cache=RoutingCache(MemoryCache(0), {FOOTER: footers})) as lake:
        assert total(lake, path) == 4950
    end, reads = path.stat().st_size - 8, []
    read = LocalStore.get_ranges
    monkeypatch.setattr(
        LocalStore,
        "get_ranges",
        lambda self, key, ranges, **more: reads.extend(ranges) or read(self, key, ranges, **more),
    )
    with windrow.connect(tmp_path / "lake", cache=RoutingCache(MemoryCache(0), {FOOTER: footers})) as lake:
        assert total(lake, path) == 4950
        assert (row(lake, "footers").hits, row(lake, "footers").misses) == (1, 1)
    assert not [each for each in reads if each.start + each.length > end]


def test_a_file_that_was_replaced_has_another_footer(tmp_path, raw):
    own, path = Own(), raw / "0.parquet"
    with windrow.connect(tmp_path / "lake", cache=own) as lake:
        assert total(lake, path) == 4950
        pq.write_table(pa.table({"a": range(10)}), path)
        assert total(lake, path) == 45
        assert (row(lake, "application").misses, row(lake, "application").hits) == (2, 0)


def test_damaged_bytes_in_a_cache_are_read_again_from_the_file(tmp_path, raw):
    own, path = Own(), raw / "0.parquet"
    with windrow.connect(tmp_path / "lake", cache=own) as lake:
        total(lake, path)
    own.values = {key: value[:-20] + bytes(20) for key, value in own.values.items() if key.kind is FOOTER}
    with windrow.connect(tmp_path / "lake", cache=own) as lake:
        assert total(lake, path) == 4950


def test_footers_of_local_files_are_not_copied_to_the_disk(tmp_path, raw):
    with windrow.connect(tmp_path / "lake", cache=CacheSettings(folder=tmp_path / "cache")) as lake:
        total(lake, raw / "0.parquet")
        assert (row(lake, "memory").misses, row(lake, "disk")) == (1, None)
        assert row(lake, "memory").bytes > 0


def test_without_a_cache_each_read_is_a_bypass(tmp_path, raw):
    with windrow.connect(tmp_path / "lake", cache=None) as lake:
        for _ in range(2):
            total(lake, raw / "0.parquet")
        first = row(lake, "off")
        assert (first.bypasses > 0, first.hits, first.misses, first.bytes) == (True, 0, 0, 0)
        pq.write_table(pa.table({"a": range(10)}), raw / "0.parquet")
        total(lake, raw / "0.parquet")
        assert row(lake, "off").bypasses > first.bypasses


def test_files_that_duckdb_reads_by_itself_are_bypasses(tmp_path, raw):
    folder = raw / "day=1"
    folder.mkdir()
    (raw / "0.parquet").rename(folder / "0.parquet")
    with windrow.connect(tmp_path / "lake", cache=CacheSettings(folder=tmp_path / "cache")) as lake:
        assert total(lake, folder / "*.parquet") == 4950
        assert row(lake, "memory").bypasses == 1


def test_the_footer_of_a_remote_file_is_cached_as_it_was_read(tmp_path, raw):
    own, data = Own(), (raw / "0.parquet").read_bytes()
    with RangeServer() as server, windrow.connect(tmp_path / "lake", cache=own) as lake:
        server.objects["/0.parquet"] = data
        assert total(lake, f"{server.url}/0.parquet") == 4950
        [(key, footer)] = [(key, value) for key, value in own.values.items() if key.kind is FOOTER]
        assert (key.uri, key.position, key.length) == (f"{server.url}/0.parquet", -1, -1)
        assert data.endswith(footer)
        assert row(lake, "application").misses == 1


def test_prometheus_gets_every_counter(tmp_path, raw):
    with windrow.connect(tmp_path / "lake", cache=CacheSettings(folder=tmp_path / "cache")) as lake:
        total(lake, raw / "0.parquet")
        text = lake.cache.prometheus()
    assert 'windrow_cache_misses_total{cache="memory",kind="data_file_footer"} 1\n' in text
    for name in ("hits_total", "bypasses_total", "evictions_total", "bytes"):
        for cache in ("memory", "disk", "parsed"):
            assert f'windrow_cache_{name}{{cache="{cache}",kind="sidecar"}} ' in text


def test_a_lake_that_is_closed_adds_its_counts_to_the_folder_once(tmp_path, raw):
    from windrow.cache.ledger import Ledger

    settings = CacheSettings(folder=tmp_path / "cache")
    for _ in range(2):
        lake = windrow.connect(tmp_path / "lake", cache=settings)
        total(lake, raw / "0.parquet")
        lake.close()
        lake.close()
    found = {(each.cache, each.kind): each for each in Ledger(tmp_path / "cache").rows()}
    assert (found["memory", "sidecar"].misses, found["disk", "sidecar"].hits) == (2, 1)
