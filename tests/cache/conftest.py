"""What the suites of caches share."""

from __future__ import annotations

import pytest

from windrow.cache import CacheKey, CacheKind


@pytest.fixture
def key():
    def make(number=0, kind=CacheKind.DEFAULT, identity=None):
        return CacheKey(f"file:///{number}.parquet", 0, 10, kind, identity)

    return make
