"""zstd for kernels: by the functions of a library, and by Arrow's codec where these cannot be had."""

from __future__ import annotations

import sys

import numpy as np
import pyarrow as pa
import pytest

from windrow.kernels.native import call
from windrow.parquet import zstd
from windrow.tricks import Trick, without

DATA = np.frombuffer(b"the same again and again " * 400, np.uint8)


@pytest.fixture(params=["pointers", "trick off", "no such module"])
def way(request, monkeypatch):
    zstd._loaded.cache_clear()
    if request.param == "trick off":
        with without(Trick.ZSTD_POINTERS):
            yield request.param
    else:
        if request.param == "no such module":
            monkeypatch.setitem(sys.modules, "zstandard._cffi", None)
        yield request.param
    zstd._loaded.cache_clear()


def called(out, room, library, source, size):
    return call(out, 0, room, library[0], library[1], source, 0, size)


def run(library, source, room):
    out = np.zeros(max(room, 1), np.uint8)
    size = called(out, room, library, source, source.size)
    return size, out[: max(size, 0)].copy()


def test_each_way_is_what_it_says(way):
    assert (zstd._names() is None) == (way != "pointers")


def test_bytes_come_back_and_other_readers_know_the_frame(way):
    size, frame = run(zstd.zstd_compressor(), DATA, DATA.size)
    assert 0 < size < DATA.size // 10
    assert pa.Codec("zstd").decompress(frame.tobytes(), DATA.size, asbytes=True) == DATA.tobytes()
    assert run(zstd.zstd_decompressor(), frame, DATA.size)[1].tobytes() == DATA.tobytes()


def test_a_frame_that_has_no_room_is_refused(way):
    assert run(zstd.zstd_compressor(), np.random.default_rng(1).integers(0, 256, 5000).astype(np.uint8), 10)[0] < 0


def test_what_is_no_frame_is_refused(way):
    assert run(zstd.zstd_decompressor(), DATA[:100].copy(), 500)[0] < 0
