from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow.kernels.snappy import inflate_snappy

SNAPPY = pa.Codec("snappy")


def pages_of(bodies, levels, stored):
    """The bytes of pages behind each other, and where the parts of each are."""
    parts = [
        body[:level] + (body[level:] if plain else SNAPPY.compress(body[level:], asbytes=True) if body[level:] else b"")
        for body, level, plain in zip(bodies, levels, stored, strict=True)
    ]
    sizes = np.array([len(part) for part in parts])
    places = np.cumsum(sizes) - sizes, np.array(levels), sizes, np.array([len(body) for body in bodies])
    return np.frombuffer(b"".join(parts), np.uint8), (*places, np.array(stored))


def inflated(source, pages):
    out = np.zeros(int(pages[3].sum()), np.uint8)
    return inflate_snappy(source, pages, out), out.tobytes()


@pytest.mark.parametrize("seed", range(20))
def test_pages_come_back_as_they_were(seed):
    rng = np.random.default_rng(seed)
    texts = [f"host_{number}".encode() for number in range(300)]
    bodies = [rng.integers(0, rng.choice([1, 3, 256]), rng.integers(0, 90_000)).astype(np.uint8).tobytes()]
    bodies += [b"".join(rng.choice(texts, rng.integers(1, 20_000))) for _ in range(3)]
    bodies += [b"", bytes(70_000), bodies[1] * 3]
    levels = [int(rng.integers(0, min(len(body), 50) + 1)) for body in bodies]
    wrong, found = inflated(*pages_of(bodies, levels, rng.random(len(bodies)) < 0.3))
    assert wrong == -1
    assert found == b"".join(bodies)


@given(st.binary(max_size=80), st.integers(1, 127))
def test_any_bytes_are_read_as_arrow_reads_them_or_refused(elements, size):
    data, one = bytes([size]) + elements, np.array([0])
    pages = one, one, np.array([len(data)]), np.array([size]), np.array([False])
    out = np.zeros(size, np.uint8)
    wrong = inflate_snappy(np.frombuffer(data, np.uint8), pages, out)
    try:
        expected = SNAPPY.decompress(data, size, asbytes=True)
    except OSError:
        expected = None
    assert (out.tobytes() if wrong < 0 else None) == expected


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[:-1],
        lambda data: data + b"\0",
        lambda data: b"\x90\x03" + data[2:],
        lambda data: data[:2],
        lambda data: data[:3] + bytes(len(data) - 3),
    ],
)
def test_what_cannot_be_decompressed_is_named(damage):
    bodies = [b"abc" * 100, bytes(range(256)), b"xyz" * 100]
    parts = [SNAPPY.compress(body, asbytes=True) for body in bodies]
    parts[1] = damage(parts[1])
    sizes = np.array([len(part) for part in parts])
    places = np.cumsum(sizes) - sizes, np.zeros(3, np.int64), sizes, np.array([len(body) for body in bodies])
    assert inflated(np.frombuffer(b"".join(parts), np.uint8), (*places, np.zeros(3, np.bool_)))[0] == 1
