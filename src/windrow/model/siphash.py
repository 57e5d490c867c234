"""SipHash-2-4 with the key (0, 0), over many messages at once.

All messages advance together, one 8-byte word per step; those that have no word left wait at the end of the arrays.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

__all__ = ["siphash24"]

Words = npt.NDArray[np.uint64]

_INITIAL = b"somepseudorandomlygeneratedbytes"
"""The constants of SipHash: four words, big-endian."""
_LAST_BYTE = tuple(bytes([count]) for count in range(256))
_PADDING = tuple(bytes(7 - count) for count in range(8))


def siphash24(messages: Sequence[bytes]) -> Words:
    """Return the hash of each message."""
    words = np.frombuffer(b"".join(map(_padded, messages)), dtype="<u8")
    counts = np.fromiter((len(message) // 8 + 1 for message in messages), dtype=np.int64, count=len(messages))
    longest_first = np.argsort(-counts, kind="stable")
    starts = (np.cumsum(counts) - counts)[longest_first]
    hashes = np.empty(len(messages), dtype=np.uint64)
    hashes[longest_first] = _hash_words(words, starts, counts[longest_first])
    return hashes


def _padded(message: bytes) -> bytes:
    """Return whole words: the message, zeros, and as the last byte its length modulo 256."""
    return message + _PADDING[len(message) % 8] + _LAST_BYTE[len(message) % 256]


def _hash_words(words: Words, starts: npt.NDArray[np.int64], counts: npt.NDArray[np.int64]) -> Words:
    """Hash messages of descending word counts, each given by where its words start."""
    state = np.repeat(np.frombuffer(_INITIAL, dtype=">u8").astype(np.uint64)[:, np.newaxis], len(starts), axis=1)
    for step in range(int(counts.max(initial=0))):
        active = int(np.searchsorted(-counts, -step))
        _absorb(state[:, :active], words[starts[:active] + step])
    state[2] ^= np.uint64(0xFF)
    for _ in range(4):
        _round(state)
    digest: Words = np.bitwise_xor.reduce(state, axis=0)
    return digest


def _absorb(state: Words, word: Words) -> None:
    state[3] ^= word
    _round(state)
    _round(state)
    state[0] ^= word


def _round(state: Words) -> None:
    """Mix the four words of each state, in place; sums wrap at 64 bits."""
    v0, v1, v2, v3 = state
    v0 += v1
    v2 += v3
    _rotate_into(v1, 13, v0)
    _rotate_into(v3, 16, v2)
    _rotate(v0, 32)
    v2 += v1
    v0 += v3
    _rotate_into(v1, 17, v2)
    _rotate_into(v3, 21, v0)
    _rotate(v2, 32)


def _rotate_into(word: Words, bits: int, other: Words) -> None:
    _rotate(word, bits)
    word ^= other


def _rotate(word: Words, bits: int) -> None:
    word[:] = (word << np.uint64(bits)) | (word >> np.uint64(64 - bits))
