"""The least and the greatest of many texts: by their first eight bytes, and by the rest where these are the same."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from windrow.kernels.compiled import kernel
from windrow.kernels.sketches import word_at

__all__ = ["extent_of_texts"]

Bytes = npt.NDArray[np.uint8]
Words = npt.NDArray[np.uint64]
Longs = npt.NDArray[np.int64]


@kernel
def _ordered(word: np.uint64) -> np.uint64:
    """The bytes of a word turned round, so that words compare as the bytes do."""
    word = (word << np.uint64(32)) | (word >> np.uint64(32))
    halves = np.uint64(0x0000FFFF0000FFFF)
    word = ((word & halves) << np.uint64(16)) | ((word >> np.uint64(16)) & halves)
    singles = np.uint64(0x00FF00FF00FF00FF)
    return ((word & singles) << np.uint64(8)) | ((word >> np.uint64(8)) & singles)


@kernel
def _after(data: Bytes, words: Words, room: int, one: tuple[int, int], other: tuple[int, int]) -> int:
    """Which of two texts is greater, behind their first eight bytes, which are the same: 1, or -1, or 0 for neither."""
    one_size, other_size = one[1] - one[0], other[1] - other[0]
    common = min(one_size, other_size)
    for at in range(8, common, 8):
        left = word_at(data, words, one[0] + at, common - at, room)
        right = word_at(data, words, other[0] + at, common - at, room)
        if left != right:
            return 1 if _ordered(left) > _ordered(right) else -1
    return 1 if one_size > other_size else -1 if one_size < other_size else 0


@kernel
def extent_of_texts(data: Bytes, words: Words, bounds: Longs) -> tuple[int, int]:
    """The places of the least and of the greatest of some texts: the bytes from bounds[i] to bounds[i + 1].

    `words` are the same bytes, as many as there are whole words of.
    """
    room = 8 * words.size - 15
    least, greatest = 0, 0
    first = _ordered(word_at(data, words, bounds[0], bounds[1] - bounds[0], room))
    low, high = first, first
    for place in range(1, bounds.size - 1):
        here = (bounds[place], bounds[place + 1])
        head = _ordered(word_at(data, words, here[0], here[1] - here[0], room))
        if head < low or (head == low and _after(data, words, room, here, (bounds[least], bounds[least + 1])) < 0):
            least, low = place, head
        if head > high or (
            head == high and _after(data, words, room, here, (bounds[greatest], bounds[greatest + 1])) > 0
        ):
            greatest, high = place, head
    return least, greatest
