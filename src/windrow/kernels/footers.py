"""Many thrift structs written in one go: each by a template, of which the gaps are filled with its own values."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from windrow.kernels.compiled import kernel

__all__ = ["render", "room_for", "write_structs"]

Bytes = npt.NDArray[np.uint8]
Longs = npt.NDArray[np.int64]
Grid = np.ndarray[tuple[int, int], np.dtype[np.int64]]

LONGEST_VARINT = 10

# A template: its steps, and where the bytes are that end it. A step: where the bytes are that come before a value, the
# word that holds the value, and whether this is a place in `texts`, whose length is in the word behind it.
FIRST, STOP, END_FROM, END_TO = range(4)
FROM, TO, WORD, IS_TEXT = range(4)


@kernel
def _varint(out: Bytes, at: int, value: np.uint64) -> int:
    while value >= np.uint64(128):
        out[at] = np.uint8(value & np.uint64(127)) | np.uint8(128)
        value >>= np.uint64(7)
        at += 1
    out[at] = np.uint8(value)
    return at + 1


@kernel
def _copied(out: Bytes, at: int, source: Bytes, start: int, stop: int) -> int:
    for place in range(start, stop):
        out[at + place - start] = source[place]
    return at + stop - start


@kernel
def _text(texts: Bytes, start: int, length: int) -> tuple[int, int]:
    """Where a text begins and ends; nothing of it is outside of the texts."""
    size = texts.size
    start = min(max(start, 0), size)
    return start, start + min(max(length, 0), size - start)


@kernel
def room_for(templates: Grid, steps: Grid, words: Grid, kinds: Longs, texts: Bytes) -> int:
    """As many bytes as will be written, or a few more."""
    room = 0
    for row in range(kinds.size):
        template = templates[kinds[row]]
        room += template[END_TO] - template[END_FROM]
        for number in range(template[FIRST], template[STOP]):
            step = steps[number]
            room += step[TO] - step[FROM] + LONGEST_VARINT
            if step[IS_TEXT]:
                start, stop = _text(texts, words[row, step[WORD]], words[row, step[WORD] + 1])
                room += stop - start
    return room


def render(constants: Bytes, templates: Grid, steps: Grid, words: Grid, kinds: Longs, texts: Bytes) -> Bytes:
    """The bytes of one struct after the other; `kinds` names the template of each, a row of `words` has its values."""
    out = np.empty(room_for(templates, steps, words, kinds, texts), np.uint8)
    return out[: write_structs(constants, templates, steps, words, kinds, texts, out)]


@kernel
def write_structs(
    constants: Bytes, templates: Grid, steps: Grid, words: Grid, kinds: Longs, texts: Bytes, out: Bytes
) -> int:
    """The same, into an array; how many bytes."""
    at = 0
    for row in range(kinds.size):
        template = templates[kinds[row]]
        for number in range(template[FIRST], template[STOP]):
            step = steps[number]
            at = _copied(out, at, constants, step[FROM], step[TO])
            value = words[row, step[WORD]]
            if step[IS_TEXT]:
                start, stop = _text(texts, value, words[row, step[WORD] + 1])
                at = _varint(out, at, np.uint64(stop - start))
                at = _copied(out, at, texts, start, stop)
            else:
                at = _varint(out, at, np.uint64((value << 1) ^ (value >> 63)))
        at = _copied(out, at, constants, template[END_FROM], template[END_TO])
    return at
