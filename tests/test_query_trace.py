"""The way of a small query through the rooms is short and goes down."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MOST_MODULES = 45


@pytest.fixture(scope="module")
def trace():
    sys.path.insert(0, str(ROOT / "scripts"))
    try:
        import trace_query
    finally:
        sys.path.remove(str(ROOT / "scripts"))
    return trace_query, trace_query.traced()


def test_a_warm_query_passes_few_modules(trace):
    assert len(trace[1].modules) <= MOST_MODULES


def test_no_call_goes_up(trace):
    assert not trace[1].up


def test_the_page_shows_the_modules_of_today(trace):
    script, tracer = trace
    shown = script.PAGE.read_text(encoding="utf-8").partition(script.BEGIN)[2].partition(script.END)[0]
    assert shown.strip() == script.text(tracer).strip()
