"""Split-block bloom filters as Parquet has them: built, probed, and read from a file."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from windrow.errors import Damaged, InvalidInput
from windrow.parquet import thrift as t
from windrow.parquet.grammar import Grammar, Struct, Table, integer, struct

__all__ = ["BloomFilter", "bloom_size", "find_bits", "hash_binary", "read_bloom", "stored_bloom"]

MIN_BLOOM_BYTES = 32
MAX_BLOOM_BYTES = 4 << 20
_BLOCK_BYTES = 32

_HEADER = np.dtype(
    [
        ("flags", "<u4"),
        ("num_bytes", "<i4"),
        ("algorithm", "<i4"),
        ("hash", "<i4"),
        ("compression", "<i4"),
        ("pad", "<i4"),
    ]
)
_BLOOM_HEADER = Grammar(
    "bloom filter header",
    (
        Struct(
            "BloomFilterHeader",
            "header",
            {
                1: integer("num_bytes"),
                2: struct("algorithm", "Algorithm"),
                3: struct("hash", "Hash"),
                4: struct("compression", "Compression"),
            },
            required=(1, 2, 3, 4),
        ),
        Struct("Algorithm", "header", {1: struct("block", "Empty", tag="algorithm")}),
        Struct("Hash", "header", {1: struct("xxhash", "Empty", tag="hash")}),
        Struct("Compression", "header", {1: struct("uncompressed", "Empty", tag="compression")}),
        Struct("Empty", "header"),
    ),
    {"header": Table(_HEADER, 1)},
)


def bloom_size(distinct: int, *, false_positives: float = 0.01) -> int:
    """How many bytes a filter for so many distinct values needs: a power of two between 32 and 4 Mi."""
    if not 0 < false_positives < 1:
        raise InvalidInput(f"false_positives is {false_positives}; give a share between 0 and 1, both excluded")
    if distinct <= 0:
        return MIN_BLOOM_BYTES
    bits = -8 * distinct / math.log(1 - false_positives ** (1 / 8))
    wanted = min(max(math.ceil(bits / 8), MIN_BLOOM_BYTES), MAX_BLOOM_BYTES)
    return 1 << (wanted - 1).bit_length()


def hash_binary(data: bytes | memoryview, bounds: npt.NDArray[np.int64]) -> npt.NDArray[np.uint64]:
    """The hashes of byte strings that lie one after the other; `bounds` are the n + 1 limits of n strings."""
    from windrow.kernels.bloom import hash_values

    source = np.frombuffer(bytes(data), np.uint8)
    limits = np.ascontiguousarray(bounds, np.int64)
    if not limits.size or limits[0] < 0 or limits[-1] > source.size or (np.diff(limits) < 0).any():
        raise InvalidInput(f"the limits of the values must ascend from 0 to at most {source.size}, the bytes there are")
    return hash_values(source, limits)


class BloomFilter:
    """A set that may say yes to what it does not hold, but never no to what it holds."""

    def __init__(self, bits: bytes | bytearray | memoryview) -> None:
        if not bits or len(bits) % _BLOCK_BYTES:
            raise InvalidInput(f"a bloom filter of {len(bits)} bytes: it has blocks of {_BLOCK_BYTES}, at least one")
        self._blocks = np.frombuffer(bytearray(bits), "<u4").reshape(-1, 8)

    @classmethod
    def for_distinct(cls, distinct: int, *, false_positives: float = 0.01) -> BloomFilter:
        """An empty filter of the size for so many distinct values."""
        return cls(bytes(bloom_size(distinct, false_positives=false_positives)))

    def insert(self, hashes: npt.NDArray[np.uint64]) -> None:
        """Add values by their hashes."""
        from windrow.kernels.bloom import insert

        insert(self._blocks, np.ascontiguousarray(hashes, np.uint64))

    def might_contain(self, hashes: npt.NDArray[np.uint64]) -> npt.NDArray[np.bool_]:
        """For each hash whether its value may have been added; False is certain."""
        from windrow.kernels.bloom import contains

        return contains(self._blocks, np.ascontiguousarray(hashes, np.uint64))

    def folded(self, *, false_positives: float = 0.01) -> BloomFilter:
        """The smallest filter with the same values that says yes to no greater share of others.

        A filter of half the blocks is one in which neighbours are joined: a value is looked for in the joined block.
        """
        blocks = self._blocks
        while len(blocks) % 2 == 0:
            joined = blocks[0::2] | blocks[1::2]
            filled = int(np.bitwise_count(joined).sum()) / (32 * joined.size)
            if filled**8 > false_positives:
                break
            blocks = joined
        return BloomFilter(blocks.tobytes())

    def __bytes__(self) -> bytes:
        return self._blocks.tobytes()


def stored_bloom(bloom: BloomFilter) -> bytes:
    """A filter as a file has it: the header of a split-block filter by xxHash, uncompressed, and the bits."""
    bits = bytes(bloom)
    kinds = [t.nested(field, t.struct(t.nested(1, t.struct()))) for field in (2, 3, 4)]
    return t.struct(t.i32(1, len(bits)), *kinds) + bits


def read_bloom(data: bytes | memoryview, *, name: str) -> bytes | None:
    """The bits of a filter from bytes of a file that begin with its header; None for a kind that is not split-block.

    `data` may go on after the filter; `name` is what an error calls the file.
    """
    source = bytes(data)
    place = find_bits(source, len(source), name=name)
    return None if place is None else source[place.start : place.stop]


def find_bits(data: bytes | memoryview, length: int, *, name: str) -> range | None:
    """Where the bits of a filter are, by its header alone; None for a kind that is not split-block.

    `data` begins with the header; `length` is how many bytes header and bits may have together.
    """
    walked = _BLOOM_HEADER.walk(bytes(data), name=name)
    header = walked.tables["header"][0]
    size = int(header["num_bytes"])
    is_split_block = bool(header["algorithm"] and header["hash"] and header["compression"])
    if not is_split_block or size < MIN_BLOOM_BYTES or size % _BLOCK_BYTES:
        return None
    left = length - walked.end
    if size > left:
        raise Damaged(f"{name}: the bloom filter claims {size} bytes, of which {left} are there; write the file again")
    return range(walked.end, walked.end + size)
