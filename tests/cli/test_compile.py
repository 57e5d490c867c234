"""Kernels are compiled ahead of time, by a command and by `make setup`."""

from __future__ import annotations

from pathlib import Path

from windrow.kernels.loading import compiled_count, seconds_to_compile

ROOT = Path(__file__).parents[2]


def test_after_it_neither_ingest_nor_a_merge_has_to_wait(call, here):
    found = call("compile", "--json")
    assert found.code == 0
    assert found.json["compiled"] + found.json["compiled_before"] == compiled_count() >= 200
    assert [seconds_to_compile(module) for module in ("merge", "encode", "pages", "thrift")] == [0.0] * 4
    assert list(here.iterdir()) == []


def test_setup_does_it():
    assert "windrow compile" in (ROOT / "scripts" / "setup").read_text()
