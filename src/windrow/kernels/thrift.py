"""One walk over thrift compact bytes, straight into tables of fixed-width records.

The walk follows a grammar given as an array (see `windrow.kernels.rules`): for each struct and field id, what to do
with the value. Nothing is trusted: every read is checked against the end of the bytes, every count against the bytes
that are left, every record against the room in its table, every nesting against a limit. Each step takes at least one
byte, so the walk ends.

A reader takes a position and returns the position after what it read. Trouble is never raised: a negative position is
the negated code of what is wrong, and a reader that is given one hands it on.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from windrow.kernels import rules as r
from windrow.kernels.compiled import kernel

__all__ = ["walk", "walk_each"]

Bytes = npt.NDArray[np.uint8]
Longs = npt.NDArray[np.int64]
Grid = np.ndarray[tuple[int, int], np.dtype[np.int64]]

# A frame of the stack: a struct (LEFT is -1, FIELD is the last id) or a list (LEFT elements to come of the kind
# ELEMENT; SPAN is where in the arena its owner keeps its position). ROW is where the record begins that takes the
# values.
OF, FIELD, ROW, LEFT, ELEMENT, SPAN = range(6)
FRAME_SIZE = 6
MAX_DEPTH = 24
LAST_FRAME = (MAX_DEPTH - 1) * FRAME_SIZE

SIZES = np.array([-1, 0, 0, 1, -1, -1, -1, 8, -1, -1, -1, -1, -1, 16, -1, -1])
"""How many bytes a value of each kind has that has always as many."""


@kernel
def _signed(value: np.uint64 | np.uint8 | np.int8) -> int:
    """The number that kernels calculate with; signed and unsigned together would become floating point."""
    return np.int64(value)  # type: ignore[return-value]


@kernel
def _jump(end: int, at: int, count: int) -> int:
    """The position `count` bytes further on."""
    if at < 0:
        return at
    return at + count if count <= end - at else -r.TRUNCATED


@kernel
def _byte(data: Bytes, end: int, at: int) -> tuple[int, int]:
    if at < 0:
        return 0, at
    if at >= end:
        return 0, -r.TRUNCATED
    return _signed(data[at]), at + 1


@kernel
def _varint(data: Bytes, end: int, at: int) -> tuple[np.uint64, int]:
    """An unsigned number of at most 64 bits."""
    value, shift = np.uint64(0), np.uint64(0)
    while at >= 0:
        if at >= end:
            return value, -r.TRUNCATED
        byte = np.uint64(data[at])
        if shift == np.uint64(63) and byte > np.uint64(1):
            return value, -r.OVERLONG
        value |= (byte & np.uint64(0x7F)) << shift
        shift += np.uint64(7)
        at += 1
        if byte < np.uint64(0x80):
            break
    return value, at


@kernel
def _zigzag(data: Bytes, end: int, at: int) -> tuple[int, int]:
    value, at = _varint(data, end, at)
    return _signed(value >> np.uint64(1)) ^ -_signed(value & np.uint64(1)), at


@kernel
def _integer(data: Bytes, end: int, at: int, kind: int) -> tuple[int, int]:
    if kind == r.I8:
        value, at = _byte(data, end, at)
        return _signed(np.int8(value)), at
    return _zigzag(data, end, at)


@kernel
def _count(data: Bytes, end: int, at: int, smallest: int) -> tuple[int, int]:
    """A number of things of at least `smallest` bytes each; refused when the bytes that are left cannot hold them."""
    value, at = _varint(data, end, at)
    if at < 0:
        return 0, at
    if value > np.uint64(end - at) // np.uint64(smallest):
        return 0, -r.LENGTH
    return _signed(value), at


@kernel
def _list_header(data: Bytes, end: int, at: int, smallest: int) -> tuple[int, int, int]:
    """The element kind and the number of elements of a list."""
    header, at = _byte(data, end, at)
    count = header >> 4
    if count == 15:
        count, at = _count(data, end, at, smallest)
    elif at >= 0 and count * smallest > end - at:
        at = -r.LENGTH
    return header & 15, count, at


@kernel
def _field_header(data: Bytes, end: int, at: int, previous: int) -> tuple[int, int, int]:
    """The kind of the next field (0 at the end of the struct) and its id."""
    header, at = _byte(data, end, at)
    if header >> 4:
        return header & 15, previous + (header >> 4), at
    if header == 0:
        return 0, previous, at
    field, at = _zigzag(data, end, at)
    return header & 15, field, at


@kernel
def _skip_plain(data: Bytes, end: int, at: int, kind: int) -> int:
    """Pass over a field that holds no other value; a boolean is in its field's header and has no bytes of its own."""
    if r.I16 <= kind <= r.I64:
        return _varint(data, end, at)[1]
    if kind == r.BINARY:
        count, at = _count(data, end, at, 1)
        return _jump(end, at, count)
    return _jump(end, at, SIZES[kind]) if SIZES[kind] >= 0 else -r.KIND


@kernel
def _skip_elements(data: Bytes, end: int, at: int, kind: int, count: int) -> int:
    """Pass over elements that hold no other values; as an element, a boolean is a byte."""
    if kind in (r.TRUE, r.FALSE):
        return _jump(end, at, count)
    for _ in range(count):
        at = _skip_plain(data, end, at, kind)
        if at < 0:
            break
    return at


@kernel
def _mask(data: Bytes, end: int, at: int) -> tuple[int, int]:
    """A list of small numbers as one bit each; what is too large for that, or negative, sets bit 31."""
    element, count, at = _list_header(data, end, at, 1)
    mask = 0
    for _ in range(count):
        value, at = _integer(data, end, at, element)
        if at < 0:
            break
        mask |= 1 << (value if 0 <= value < 31 else 31)
    return mask, at


@kernel
def _put(arena: Longs, word: int, value: int) -> None:
    """Set a 32-bit word of the arena."""
    shift = (word & 1) * 32
    kept = arena[word >> 1] & ~(0xFFFFFFFF << shift)
    arena[word >> 1] = kept | ((value & 0xFFFFFFFF) << shift)


@kernel
def _store(data: Bytes, end: int, arena: Longs, at: int, action: int, kind: int, row: int, slot: int) -> int:
    """Store the value of a field that opens no further level."""
    if action == r.INT64:
        arena[row + slot], at = _integer(data, end, at, kind)
    elif action == r.INT32:
        value, at = _integer(data, end, at, kind)
        if not -(1 << 31) <= value < 1 << 31:
            return -r.RANGE
        _put(arena, 2 * row + slot, value)
    elif action == r.BYTES:
        length, at = _count(data, end, at, 1)
        arena[row + slot] = at
        arena[row + slot + 1] = length
        at = _jump(end, at, length)
    elif action == r.MASK:
        mask, at = _mask(data, end, at)
        _put(arena, 2 * row + slot, mask)
    elif action == r.BOOL:
        _put(arena, 2 * row + slot, 1 if kind == r.TRUE else 0)
    elif action == r.SKIP:
        at = _skip_plain(data, end, at, kind)
    return at


@kernel
def _rule(grammar: Longs, struct: int, field: int, kind: int) -> int:
    """The rule that a field goes by; if it has none of its own, the last of the struct, which passes over everything.

    That goes for a value of another kind than expected too, as thrift wants it: files of old drafts of the format
    have such.
    """
    if 0 < field < r.FIELDS and grammar[struct + field * r.RULE_SIZE + r.FITS] >> kind & 1:
        return struct + field * r.RULE_SIZE
    return struct + r.FIELDS * r.RULE_SIZE


@kernel
def _fields(
    data: Bytes, end: int, grammar: Longs, arena: Longs, at: int, struct: int, field: int, row: int
) -> tuple[int, int, int]:
    """Store fields up to one that opens a further level, or to the end of the struct: then the kind is 0."""
    flags = 2 * row + grammar[struct + r.FLAGS_SLOT]
    kind, field, at = _field_header(data, end, at, field)
    while kind and at >= 0:
        rule = _rule(grammar, struct, field, kind)
        action = grammar[rule + r.ACTION]
        if action != r.NEGATED or kind == r.FALSE:
            arena[flags >> 1] |= grammar[rule + r.FLAG] << ((flags & 1) * 32)
        if r.LIST <= kind <= r.RECORD and action != r.MASK:
            break
        at = _store(data, end, arena, at, action, kind, row, grammar[rule + r.SLOT])
        if at >= 0:
            kind, field, at = _field_header(data, end, at, field)
    return kind, field, at


@kernel
def _push(stack: Longs, top: int, struct: int, row: int, left: int) -> int:
    """Open a level; the new top."""
    top += FRAME_SIZE
    stack[top + OF] = struct
    stack[top + FIELD] = 0
    stack[top + ROW] = row
    stack[top + LEFT] = left
    return top


@kernel
def _new_row(grammar: Longs, tables: Longs, arena: Longs, struct: int, at: int) -> int:
    """The next record of a struct's table; the list header made sure that there is room."""
    table = grammar[struct + r.TABLE]
    row: int = tables[table + r.START] + tables[table + r.USED] * tables[table + r.WIDTH]
    tables[table + r.USED] += 1
    place = grammar[struct + r.PLACE_SLOT]
    if place >= 0:
        arena[row + place] = at
    return row


@kernel
def _check_elements(grammar: Longs, tables: Longs, struct: int, element: int, count: int) -> int:
    """What is wrong with the elements of a list, 0 if they are of the right kind and have room in their table."""
    fitting = grammar[struct + r.RULE_SIZE + r.FITS] if grammar[struct + r.BARE] else 1 << r.RECORD
    if count and not fitting >> element & 1:
        return -r.KIND
    table = grammar[struct + r.TABLE]
    full = tables[table + r.USED] + count > tables[table + r.CAPACITY]
    return -r.FULL if full else 0


@kernel
def _open_rows(
    data: Bytes, end: int, grammar: Longs, tables: Longs, stack: Longs, arena: Longs, at: int, top: int
) -> int:
    """Open the list that the last field of the frame below is; its owner keeps offset, length, first record, count."""
    owner = top - FRAME_SIZE
    rule = stack[owner + OF] + stack[owner + FIELD] * r.RULE_SIZE
    struct, span = grammar[rule + r.NEXT], stack[owner + ROW] + grammar[rule + r.SLOT]
    repeated = arena[span] != 0
    arena[span] = at
    element, count, at = _list_header(data, end, at, grammar[struct + r.SMALLEST])
    arena[span + 2] = tables[grammar[struct + r.TABLE] + r.USED]
    arena[span + 3] = count
    _push(stack, owner, struct, 0, count)
    stack[top + ELEMENT] = element
    stack[top + SPAN] = span
    wrong = -r.REPEATED if repeated else _check_elements(grammar, tables, struct, element, count)
    return wrong if at >= 0 and wrong else at


@kernel
def _open_skipped(data: Bytes, end: int, stack: Longs, at: int, top: int, nothing: int, kind: int) -> int:
    """Open a struct, list, set or map that is passed over; plain elements of a list are passed over at once."""
    count, kinds = -1, 0
    if kind == r.MAP:
        pairs, at = _count(data, end, at, 2)
        count = 2 * pairs
        if pairs:
            kinds, at = _byte(data, end, at)
    elif kind != r.RECORD:
        element, count, at = _list_header(data, end, at, 1)
        kinds = element << 4 | element
        if not r.LIST <= element <= r.RECORD:
            at = _skip_elements(data, end, at, element, count)
            count = 0
    _push(stack, top - FRAME_SIZE, nothing, 0, count)
    stack[top + ELEMENT] = kinds
    return at


@kernel
def _close_struct(grammar: Longs, stack: Longs, arena: Longs, at: int, top: int) -> int:
    """The position again if all required fields were there."""
    struct = stack[top + OF]
    required = grammar[struct + r.REQUIRED]
    word = 2 * stack[top + ROW] + grammar[struct + r.FLAGS_SLOT]
    seen = arena[word >> 1] >> ((word & 1) * 32)
    return at if seen & required == required else -r.MISSING


@kernel
def _struct_step(
    data: Bytes, end: int, grammar: Longs, tables: Longs, stack: Longs, arena: Longs, at: int, top: int
) -> tuple[int, int]:
    """Go on with a struct until it ends or a further level begins; the position and the new top."""
    struct, row = stack[top + OF], stack[top + ROW]
    kind, field, at = _fields(data, end, grammar, arena, at, struct, stack[top + FIELD], row)
    stack[top + FIELD] = field
    if at >= 0 and kind == 0:
        at = _close_struct(grammar, stack, arena, at, top)
        return at, top - FRAME_SIZE if at >= 0 else top
    if at < 0 or top >= LAST_FRAME:
        return at if at < 0 else -r.DEEP, top
    rule = _rule(grammar, struct, field, kind)
    if grammar[rule + r.ACTION] == r.ROWS:
        at = _open_rows(data, end, grammar, tables, stack, arena, at, top + FRAME_SIZE)
    elif grammar[rule + r.ACTION] == r.SKIP:
        at = _open_skipped(data, end, stack, at, top + FRAME_SIZE, grammar[rule + r.NEXT], kind)
    else:
        _push(stack, top, grammar[rule + r.NEXT], row, -1)
        if grammar[rule + r.SLOT] >= 0:
            _put(arena, 2 * row + grammar[rule + r.SLOT], field)
    return at, top + FRAME_SIZE


@kernel
def _bare_element(
    data: Bytes, end: int, grammar: Longs, arena: Longs, at: int, struct: int, row: int, kind: int
) -> int:
    """Store a list element that is no struct; as an element, a boolean is a byte."""
    if kind in (r.TRUE, r.FALSE):
        value, at = _byte(data, end, at)
        kind = r.TRUE if value == r.TRUE else r.FALSE
    rule = struct + r.RULE_SIZE
    return _store(data, end, arena, at, grammar[rule + r.ACTION], kind, row, grammar[rule + r.SLOT])


@kernel
def _skipped_element(data: Bytes, end: int, stack: Longs, at: int, top: int) -> tuple[int, int]:
    """Pass over the next element of a list, or key or value of a map; the position and the new top."""
    kinds = stack[top + ELEMENT]
    kind = kinds >> 4 if stack[top + LEFT] & 1 else kinds & 15
    if not r.LIST <= kind <= r.RECORD:
        return _skip_elements(data, end, at, kind, 1), top
    if top >= LAST_FRAME:
        return -r.DEEP, top
    return _open_skipped(data, end, stack, at, top + FRAME_SIZE, stack[top + OF], kind), top + FRAME_SIZE


@kernel
def _list_step(
    data: Bytes, end: int, grammar: Longs, tables: Longs, stack: Longs, arena: Longs, at: int, top: int
) -> tuple[int, int]:
    """Go on with a list: its next element, or its end; the position and the new top."""
    struct, span = stack[top + OF], stack[top + SPAN]
    wanted = grammar[struct + r.TABLE] >= 0
    if stack[top + LEFT] == 0:
        if wanted:
            arena[span + 1] = at - arena[span]
        return at, top - FRAME_SIZE
    stack[top + LEFT] -= 1
    if not wanted:
        return _skipped_element(data, end, stack, at, top)
    row = _new_row(grammar, tables, arena, struct, at)
    if grammar[struct + r.BARE]:
        return _bare_element(data, end, grammar, arena, at, struct, row, stack[top + ELEMENT]), top
    if top >= LAST_FRAME:
        return -r.DEEP, top
    return at, _push(stack, top, struct, row, -1)


@kernel
def _walk(
    source: Bytes, start: int, end: int, rules: Longs, layout: Longs, records: Longs
) -> tuple[int, int, int, int]:
    """Walk the struct at `start`, no further than to `end`."""
    frames = np.zeros(MAX_DEPTH * FRAME_SIZE, np.int64)
    data, stack = source, frames
    grammar, tables, arena = rules, layout, records
    top = _push(stack, -FRAME_SIZE, 0, _new_row(grammar, tables, arena, 0, start), -1)
    at = last = start
    while top >= 0 and at >= 0:
        last = at
        if stack[top + LEFT] < 0:
            at, top = _struct_step(data, end, grammar, tables, stack, arena, at, top)
        else:
            at, top = _list_step(data, end, grammar, tables, stack, arena, at, top)
    innermost = max(top, 0)
    if at != -r.FULL and frames[innermost + LEFT] >= 0:
        innermost -= FRAME_SIZE  # people know a list by the field that it is
    return at, frames[innermost + OF], frames[innermost + FIELD], last


@kernel
def walk(source: Bytes, start: int, rules: Longs, layout: Longs, records: Longs) -> tuple[int, int, int, int]:
    """Walk the struct at `start` (the first of the grammar) and fill the tables in the arena of records.

    The arena must be zero, and the first table must have room for the one record of the first struct. USED of each
    table is counted up. Returned are the position after the struct or the negated code of what is wrong, and with which
    struct, which of its fields, and after which byte.
    """
    return _walk(source, start, source.size, rules, layout, records)


@kernel
def walk_each(
    source: Bytes, starts: Longs, ends: Longs, rules: Longs, layout: Longs, records: Longs, counts: Grid
) -> tuple[int, int, int]:
    """Walk several structs of one kind, each within its own bytes, into the same tables.

    `counts` is how many records each table has before a struct, one row for each struct, and last how many it has in
    all. Returned are 0 or the code of what is wrong, with which of the structs, and in which struct of the grammar.
    """
    tables = layout.size // r.TABLE_SIZE
    for number in range(starts.size):
        for table in range(tables):
            counts[number, table] = layout[table * r.TABLE_SIZE + r.USED]
        at, struct, _, _ = _walk(source, starts[number], ends[number], rules, layout, records)
        if at < 0:
            return -at, number, struct
    for table in range(tables):
        counts[starts.size, table] = layout[table * r.TABLE_SIZE + r.USED]
    return 0, 0, 0
