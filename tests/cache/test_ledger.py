"""Counters of many processes add up in the cache folder."""

from __future__ import annotations

from windrow.cache import CacheRow
from windrow.cache.ledger import Ledger

ROW = CacheRow("memory", "sidecar", hits=2, misses=1)


def test_what_is_added_is_summed_by_cache_and_kind(tmp_path):
    for _ in range(2):
        Ledger(tmp_path / "new").add([ROW, CacheRow("disk", "sidecar", evictions=3), CacheRow("disk", "default")])
    assert Ledger(tmp_path / "new").rows() == [
        CacheRow("disk", "sidecar", evictions=6),
        CacheRow("memory", "sidecar", hits=4, misses=2),
    ]


def test_a_file_that_grows_is_replaced_by_its_sums(tmp_path):
    ledger = Ledger(tmp_path)
    for _ in range(3000):
        ledger.add([ROW])
    assert ledger.rows() == [CacheRow("memory", "sidecar", hits=6000, misses=3000)]
    [path] = tmp_path.iterdir()
    assert path.stat().st_size < 2**17


def test_damaged_lines_count_nothing(tmp_path):
    Ledger(tmp_path).add([ROW])
    [path] = tmp_path.iterdir()
    path.write_bytes(path.read_bytes() + b'{"cache": "mem\n[]\n7\n\xff\n{"hits": 1}\n')
    Ledger(tmp_path).add([ROW])
    assert Ledger(tmp_path).rows() == [CacheRow("memory", "sidecar", hits=4, misses=2)]


def test_a_folder_that_cannot_be_written_to_has_no_counters(tmp_path):
    (tmp_path / "file").write_text("in the way")
    ledger = Ledger(tmp_path / "file")
    ledger.add([ROW])
    assert ledger.rows() == []
    ledger.clear()
