from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.parquet.number_hashes import hash_numbers

from windrow.errors import Damaged, InvalidInput
from windrow.parquet import chunk as c
from windrow.parquet import footer as f
from windrow.parquet import thrift as t
from windrow.parquet.bloom import BloomFilter, bloom_size, hash_binary, read_bloom

VECTORS = json.loads((Path(__file__).parent / "bloom_vectors.json").read_text())


def hash_texts(texts: list[str]) -> np.ndarray:
    values = [text.encode() for text in texts]
    return hash_binary(b"".join(values), np.cumsum([0, *map(len, values)]))


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["name"])
def test_the_bits_are_those_of_other_writers(vector):
    values = vector["values"]
    bloom = BloomFilter(bytes(32))
    bloom.insert(hash_texts(values) if isinstance(values[0], str) else hash_numbers(np.array(values)))
    assert list(bytes(bloom)) == vector["bits"]


@pytest.mark.parametrize("bounds", [[], [0, 4], [-1, 2], [2, 1]])
def test_limits_outside_of_the_bytes_are_refused(bounds):
    with pytest.raises(InvalidInput, match="the limits of the values must ascend from 0 to at most 3"):
        hash_binary(b"abc", np.array(bounds, np.int64))


def test_a_filter_holds_what_was_inserted_and_little_else():
    inside, outside = np.arange(0, 20_000, 2), np.arange(1, 20_000, 2)
    bloom = BloomFilter.for_distinct(inside.size)
    bloom.insert(hash_numbers(inside))
    assert bloom.might_contain(hash_numbers(inside)).all()
    assert bloom.might_contain(hash_numbers(outside)).mean() < 0.01
    assert BloomFilter(bytes(bloom)).might_contain(hash_numbers(inside)).all()


@pytest.mark.parametrize(
    ("distinct", "false_positives", "size"),
    [
        (-1, 0.01, 32),
        (0, 0.01, 32),
        (1, 0.01, 32),
        (26, 0.01, 32),
        (27, 0.01, 64),
        (1000, 0.01, 2048),
        (1 << 40, 0.01, 4 << 20),
    ],
)
def test_the_size_is_the_power_of_two_that_holds_the_values(distinct, false_positives, size):
    assert bloom_size(distinct, false_positives=false_positives) == size


@pytest.mark.parametrize("distinct", [100, 1234, 99_999])
@pytest.mark.parametrize("false_positives", [0.5, 0.1, 0.001])
def test_the_size_follows_the_formula(distinct, false_positives):
    wanted = -distinct / math.log(1 - false_positives**0.125)
    assert wanted <= bloom_size(distinct, false_positives=false_positives) < 2 * math.ceil(wanted)


@pytest.mark.parametrize("share", [0, 1, -1, 2])
def test_a_share_that_is_none_is_refused(share):
    with pytest.raises(InvalidInput, match="false_positives is"):
        bloom_size(10, false_positives=share)


@pytest.mark.parametrize("size", [0, 31, 33])
def test_a_filter_is_made_of_blocks(size):
    with pytest.raises(InvalidInput, match=f"a bloom filter of {size} bytes"):
        BloomFilter(bytes(size))


def filters_of(data: bytes):
    footer = f.read_footer(data, name="file")
    for chunk in footer.chunks.reshape(-1):
        if chunk["flags"] & c.HAS_BLOOM_OFFSET:
            yield chunk, read_bloom(data[chunk["bloom_offset"] :], name="file")


def test_filters_that_pyarrow_writes_hold_what_it_wrote(tmp_path):
    options = {name: {"ndv": 1000, "fpp": 0.01} for name in ("i", "s", "d")}
    table = pa.table({"i": range(1000), "s": [f"text {n}" for n in range(1000)], "d": [n / 8 for n in range(1000)]})
    pq.write_table(table, tmp_path / "a.parquet", bloom_filter_options=options)
    found = dict(zip("isd", filters_of((tmp_path / "a.parquet").read_bytes()), strict=True))
    hashes = {
        "i": hash_numbers(np.arange(2000)),
        "s": hash_texts([f"text {n}" for n in range(2000)]),
        "d": hash_numbers(np.arange(2000) / 8),
    }
    for name, (chunk, bits) in found.items():
        hits = BloomFilter(bits).might_contain(hashes[name])
        assert hits[:1000].all()
        assert hits[1000:].mean() < 0.05
        assert len(bits) < chunk["bloom_length"]


def test_filters_of_other_writers_are_read(data_dir):
    data = (data_dir / "parquet-testing/data_index_bloom_encoding_with_length.parquet").read_bytes()
    [(_, bits)] = filters_of(data)
    assert BloomFilter(bits).might_contain(hash_texts(["Hello", "This is", "today", "nothing like that"])).tolist() == [
        True,
        True,
        True,
        False,
    ]


def header(size: int, *, algorithm: int = 1, hashing: int = 1, compression: int = 1) -> bytes:
    kinds = [
        t.nested(n, t.struct(t.nested(kind, t.struct())))
        for n, kind in ((2, algorithm), (3, hashing), (4, compression))
    ]
    return t.struct(t.i32(1, size), *kinds)


def test_the_bits_follow_the_header():
    bits = bytes(range(32))
    assert read_bloom(header(32) + bits + b"more", name="file") == bits


@pytest.mark.parametrize(
    "data",
    [
        header(32, algorithm=2),
        header(32, hashing=2),
        header(32, compression=2),
        header(0),
        header(31),
        header(-32),
        header(40),
    ],
    ids=["algorithm", "hash", "compression", "none", "half a block", "negative", "a block and a half"],
)
def test_a_filter_of_another_kind_is_none(data):
    assert read_bloom(data + bytes(100), name="file") is None


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", "bloom filter header, BloomFilterHeader after byte 0: the bytes end"),
        (t.struct(t.i32(1, 32)), "required fields are missing"),
        (header(64) + bytes(63), "the bloom filter claims 64 bytes, of which 63 are there"),
    ],
)
def test_a_broken_filter_is_refused(data, text):
    with pytest.raises(Damaged, match=f"^x.parquet: .*{text}"):
        read_bloom(data, name="x.parquet")
