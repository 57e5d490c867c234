"""`windrow cache`: what is kept on disk is shown and removed."""

from __future__ import annotations

import json

import pytest

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
