"""`windrow cache`: what is kept on disk is shown and removed."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import windrow
from windrow.cache import CacheKey, CacheKind, DiskCache
from windrow.cli.main import run


@pytest.fixture
def folder(tmp_path):
    kept = DiskCache(tmp_path / "cache", 10**6)
    kept.put(CacheKey("s3://b/a", 0, 5, CacheKind.DATA_RANGE), b"12345")
    kept.put(CacheKey("s3://b/a", -1, -1, CacheKind.SIDECAR), b"sidecar")
    return tmp_path / "cache"


def test_stats_are_counted_by_kind(folder, capsys):
    assert run(["cache", "stats", "--folder", str(folder), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [(row["kind"], row["values"]) for row in found["kinds"]] == [("data_range", 1), ("sidecar", 1)]
    assert found["bytes"] == sum(row["bytes"] for row in found["kinds"])
    assert run(["cache", "stats", "--folder", str(folder)]) == 0
    assert "data_range" in capsys.readouterr().out


def test_a_folder_that_is_not_there_is_empty(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert run(["cache", "stats", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["kinds"] == []


def test_clear_removes_everything_unless_it_is_a_dry_run(folder, capsys):
    assert run(["cache", "clear", "--folder", str(folder), "--dry-run"]) == 0
    assert "would remove 2 values" in capsys.readouterr().out
    assert len(list(folder.iterdir())) == 2
    assert run(["cache", "clear", "--folder", str(folder), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["values"] == 2
    assert list(folder.iterdir()) == []


def test_counters_of_commands_that_ran_are_shown(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    pq.write_table(pa.table({"a": range(10)}), tmp_path / "a.parquet")
    monkeypatch.chdir(tmp_path)
    windrow.connect(tmp_path / "lake", cache=None).close()
    for _ in range(2):
        assert run(["sql", "select sum(a + 0) from 'a.parquet'", "--lake", str(tmp_path / "lake")]) == 0
    capsys.readouterr()
    assert run(["cache", "stats", "--json"]) == 0
    counters = {(row["cache"], row["kind"]): row for row in json.loads(capsys.readouterr().out)["counters"]}
    assert counters["memory", "data_file_footer"]["misses"] == 1
    assert counters["disk", "sidecar"]["hits"] == 1
    assert run(["cache", "stats"]) == 0
    assert "bypasses" in capsys.readouterr().out
    assert run(["cache", "stats", "--prometheus"]) == 0
    text = capsys.readouterr().out
    assert 'windrow_cache_hits_total{cache="disk",kind="sidecar"} 1\n' in text
    assert 'windrow_cache_values{cache="disk",kind="sidecar"} 1\n' in text
    assert run(["cache", "clear"]) == 0
    capsys.readouterr()
    assert run(["cache", "stats", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["counters"] == []
