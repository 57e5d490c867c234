"""What kernels take from the machine: words from any byte, single instructions, blocks of memory, foreign functions.

Each function is written twice: here, and in `native/native.h`, which compiled kernels use.
"""

from __future__ import annotations

import ctypes

import numpy as np
import numpy.typing as npt

from windrow.kernels.compiled import native

__all__ = ["BLOCK", "bits_set", "call", "can_fold", "copy", "fold", "leading_zeros", "load"]

Bytes = npt.NDArray[np.uint8]
Words = npt.NDArray[np.uint64]

BLOCK = 64
"""The bytes that are folded at once."""
_POLYNOMIAL = 0x1DB710641
"""That of CRC-32, reflected, the highest power of x in the lowest bit."""


@native
def load(words: Words, at: int) -> np.uint64:
    """The eight bytes of some words that begin at a byte, as one word."""
    word, shift = at >> 3, np.uint64((at & 7) * 8)
    if not at & 7:
        return words[word]  # type: ignore[no-any-return]
    return words[word] >> shift | words[word + 1] << (np.uint64(64) - shift)  # type: ignore[no-any-return]


@native
def leading_zeros(value: np.uint64) -> int:
    """How many bits are not set above the highest that is; 64 when none is."""
    return 64 - int(value).bit_length()


@native
def bits_set(value: np.uint64) -> int:
    """How many bits are set."""
    return int(value).bit_count()


@native
def can_fold() -> bool:
    """Whether this processor multiplies without carries."""
    return False


@native
def fold(data: Bytes, at: int, blocks: int, state: np.uint64) -> tuple[np.uint64, np.uint64]:
    """Some blocks, at least one, and the CRC-32 before them, as 16 bytes that have the same remainder: two words."""
    bits = int.from_bytes(data[at : at + blocks * BLOCK].tobytes(), "little") ^ int(state)
    # the first byte has the highest powers, the lowest bit of each byte its highest
    for place in range(blocks * BLOCK * 8 - 128):
        if bits >> place & 1:
            bits ^= _POLYNOMIAL << place
    bits >>= blocks * BLOCK * 8 - 128
    return np.uint64(bits & 0xFFFFFFFFFFFFFFFF), np.uint64(bits >> 64)


@native
def call(out: Bytes, at: int, room: int, function: int, state: int, source: Bytes, first: int, size: int) -> int:
    """Call a function of a compression library: from `size` bytes of a source to at most `room` bytes of a target."""
    word, address = ctypes.c_int64, ctypes.c_void_p
    foreign = ctypes.CFUNCTYPE(word, address, address, word, address, word)(int(function))
    target, origin = out.ctypes.data + int(at), source.ctypes.data + int(first)
    return int(foreign(int(state), target, int(room), origin, int(size)))


@native
def copy(out: Bytes, at: int, source: Bytes, first: int, size: int) -> int:
    """Copy `size` bytes of a source to a place of a target, at once; the byte after them."""
    out[at : at + size] = source[first : first + size]
    return at + size
