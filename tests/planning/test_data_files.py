"""Sidecars of the files of a scan: read where they are, made anew where they are lost, wrong or damaged."""

from __future__ import annotations

import pytest
from tests.reading.samples import metrics, parquet, put_file

from windrow.cache import CacheKind, MemoryCache
from windrow.errors import Damaged
from windrow.planning.data_files import DataFile, open_sidecars, weight_of
from windrow.planning.scan_context import ScanContext
from windrow.planning.scan_plan import plan_files
from windrow.sidecar.build import build_sidecar
from windrow.storage import CountingStore, Identity, LocalStore, open_store

HARM = {
    "it is gone": lambda store, key, data: store.delete(key),
    "it is cut": lambda store, key, data: store.put(key, data[: len(data) // 2]),
    "it is empty": lambda store, key, data: store.put(key, b""),
    "a bit is flipped": lambda store, key, data: store.put(key, data[:200] + bytes([data[200] ^ 4]) + data[201:]),
    "it is another file's": lambda store, key, data: store.put(key, other_sidecar()),
    "it lacks our sections": lambda store, key, data: store.put(key, plain_sidecar()),
}


def of(data, **options):
    return build_sidecar(lambda start, length: data[start : start + length], len(data), name="x", **options)


def other_sidecar():
    return of(parquet(metrics(9, 50)))


def plain_sidecar():
    return of(parquet(metrics(1, 3000)), extensions=False)


@pytest.fixture(params=["local", "remote"])
def store(request, tmp_path):
    return LocalStore(tmp_path) if request.param == "local" else open_store("memory://")


@pytest.mark.parametrize("harm", HARM)
@pytest.mark.parametrize("mutable", [True, False], ids=["a file of others", "a split"])
def test_a_sidecar_that_cannot_be_used_is_made_anew_from_the_file(store, harm, mutable, caplog):
    table = metrics(1, 3000)
    file = put_file(store, "a.parquet", parquet(table), sidecar=True, mutable=mutable)
    before = plan_files(ScanContext("x", store), [file])
    HARM[harm](store, file.sidecar.key, store.get(file.sidecar.key))
    after = plan_files(ScanContext("x", store), [file])
    assert after.rows == before.rows == 3000
    assert after.virtual[0].footer == before.virtual[0].footer
    assert "made again" in caplog.text


def test_a_remote_sidecar_is_fetched_once(tmp_path):
    store = CountingStore(open_store("memory://"))
    file = put_file(store, "a.parquet", parquet(metrics(1, 3000)), sidecar=True)
    cache = MemoryCache(10**6)
    before = store.counts
    for _ in range(3):
        open_sidecars(ScanContext("x", store, cache), [file])
    assert (store.counts - before).requests == {"get_ranges": 1}
    assert cache.metrics.counts(CacheKind.SIDECAR).hits == 2


def test_many_sidecars_come_in_the_order_of_their_files(store):
    files = [put_file(store, f"{n}.parquet", parquet(metrics(n, 10 + n)), sidecar=True) for n in range(12)]
    parsed = MemoryCache(10**7, weigh=weight_of)
    found = open_sidecars(ScanContext("x", store, parsed=parsed), files)
    assert [int(sidecar.row_counts.sum()) for sidecar in found] == [10 + n for n in range(12)]
    assert parsed.weight >= sum(sidecar.content.size for sidecar in found)


def test_a_file_that_is_not_what_it_was_is_refused(store):
    store.put("a.parquet", parquet(metrics(1, 100)))
    file = DataFile(store, "a.parquet", Identity(50))
    with pytest.raises(Exception, match=r"a\.parquet"):
        open_sidecars(ScanContext("x", store), [file])


def test_a_file_that_is_no_parquet_is_refused_by_name(store):
    info = store.put("a.parquet", b"something else, and long enough to be read")
    with pytest.raises(Damaged, match=r"a\.parquet"):
        open_sidecars(ScanContext("x", store), [DataFile(store, "a.parquet", info.identity)])
