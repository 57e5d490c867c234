from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from windrow.kernels.frames import inflate
from windrow.parquet.zstd import zstd_decompressor
from windrow.tricks import Trick, without

ZSTD = pa.Codec("zstd")


@pytest.fixture(params=[False, True], ids=["by pointers", "by Arrow"], autouse=True)
def plain(request):
    with without(*[Trick.ZSTD_POINTERS] * request.param):
        yield


def pages_of(bodies, levels, stored):
    """The bytes of pages behind each other, and what `inflate` is told of them."""
    parts = [
        body[:level] + (body[level:] if plain else ZSTD.compress(body[level:], asbytes=True) if body[level:] else b"")
        for body, level, plain in zip(bodies, levels, stored, strict=True)
    ]
    sizes = np.array([len(part) for part in parts])
    places = np.cumsum(sizes) - sizes, np.array(levels), sizes, np.array([len(body) for body in bodies])
    return np.frombuffer(b"".join(parts), np.uint8), (*places, np.array(stored))


def inflated(source, pages):
    out = np.zeros(int(pages[3].sum()), np.uint8)
    return inflate(zstd_decompressor(), source, pages, out), out.tobytes()


@pytest.mark.parametrize("seed", range(20))
def test_pages_come_back_as_they_were(seed):
    rng = np.random.default_rng(seed)
    bodies = [rng.integers(0, rng.choice([2, 256]), rng.integers(0, 5000)).astype(np.uint8).tobytes() for _ in range(9)]
    levels = [int(rng.integers(0, len(body) + 1)) for body in bodies]
    wrong, found = inflated(*pages_of(bodies, levels, rng.random(9) < 0.3))
    assert wrong == -1
    assert found == b"".join(bodies)


def test_what_cannot_be_decompressed_is_named():
    source, pages = pages_of([b"a" * 500, b"b" * 500, b"c" * 500], [0, 3, 0], [False] * 3)
    broken = source.copy()
    broken[int(pages[0][1]) + 3] ^= 0xFF
    broken.flags.writeable = False
    assert inflated(broken, pages)[0] == 1


@pytest.mark.parametrize("claimed", [499, 501])
@pytest.mark.parametrize("stored", [False, True])
def test_a_page_must_have_as_many_bytes_as_it_claims(claimed, stored):
    source, pages = pages_of([b"a" * 500], [0], [stored])
    assert inflated(source, (*pages[:3], np.array([claimed]), pages[4]))[0] == 0
