"""Grammars: the wanted fields of thrift structs, and the place of each in a record.

A grammar is written down as plain data and compiled into the arrays that `windrow.kernels.thrift` walks by. Records
are numpy structured dtypes with a `flags` field; a rule names the field of the record that takes the value:

    Struct("KeyValue", "key_values", {1: bytes_("key"), 2: bytes_("value", flag=1)}, required=(1,))

`bytes_("key")` fills `key_offset` and `key_length`; `rows("pages", "PageLocation")` fills `pages_offset`,
`pages_length` (where the list is, its header included), `pages_first` and `pages_count` (which records of the table
are its elements).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from windrow.errors import Damaged, InvalidInput
from windrow.kernels import rules as r

__all__ = [
    "Grammar",
    "Records",
    "Rule",
    "Struct",
    "Table",
    "Walked",
    "bytes_",
    "integer",
    "list_fields",
    "mark",
    "mask",
    "negated",
    "rows",
    "span_fields",
    "struct",
    "truth",
]

Records = npt.NDArray[np.void]

# The fewest bytes of a field: its header, and what its value needs at least. A boolean is in its header.
_SMALLEST_FIELD = {r.BOOL: 1, r.NEGATED: 1}

# Which thrift types an action can take: numbers of any width are written alike.
_NUMBER = 1 << r.I8 | 1 << r.I16 | 1 << r.I32 | 1 << r.I64
_TRUTH = 1 << r.TRUE | 1 << r.FALSE
_FITTING = {
    r.SKIP: (1 << 16) - 1,
    r.INT64: _NUMBER,
    r.BOOL: _TRUTH,
    r.NEGATED: _TRUTH,
    r.BYTES: 1 << r.BINARY,
    r.MASK: 1 << r.LIST,
    r.STRUCT: 1 << r.RECORD,
    r.ROWS: 1 << r.LIST,
}

_PROBLEMS = {
    r.TRUNCATED: "the bytes end inside the value",
    r.OVERLONG: "a number has more than 64 bits",
    r.RANGE: "a number does not fit in 32 bits",
    r.KIND: "the value has a thrift type that does not belong there",
    r.LENGTH: "the announced length is more than the bytes that are left",
    r.DEEP: "the values are nested too deeply",
    r.MISSING: "required fields are missing",
    r.REPEATED: "the list stands there twice",
}


class Rule(NamedTuple):
    """What happens to the value of one field."""

    name: str
    action: int
    target: str | None = None
    flag: int = 0
    next: str | None = None


def integer(name: str, *, flag: int = 0) -> Rule:
    """A number; the width of the record's field says how large it may be."""
    return Rule(name, r.INT64, name, flag)


def truth(name: str) -> Rule:
    """A boolean, stored as 0 or 1."""
    return Rule(name, r.BOOL, name)


def negated(name: str, *, flag: int) -> Rule:
    """A boolean whose explicit `false` alone is noted, in the flag."""
    return Rule(name, r.NEGATED, None, flag)


def bytes_(name: str, *, flag: int = 0) -> Rule:
    """A string or binary; its position and length are stored."""
    return Rule(name, r.BYTES, f"{name}_offset", flag)


def mask(name: str) -> Rule:
    """A list of small numbers, stored as a bit for each."""
    return Rule(name, r.MASK, name)


def mark(name: str, *, flag: int = 0) -> Rule:
    """A value that is passed over; the flag says that it is there."""
    return Rule(name, r.SKIP, None, flag)


def struct(name: str, of: str, *, flag: int = 0, tag: str | None = None) -> Rule:
    """A struct whose fields go to the same record; `tag` takes the field id: which member of a union is set."""
    return Rule(name, r.STRUCT, tag, flag, of)


def rows(name: str, of: str, *, flag: int = 0) -> Rule:
    """A list whose elements are records of their own."""
    return Rule(name, r.ROWS, f"{name}_offset", flag, of)


def span_fields(name: str) -> list[tuple[str, str]]:
    """The fields of a record that `bytes_(name)` fills."""
    return [(f"{name}_offset", "<i8"), (f"{name}_length", "<i8")]


def list_fields(name: str) -> list[tuple[str, str]]:
    """The fields of a record that `rows(name, ...)` fills."""
    return [*span_fields(name), (f"{name}_first", "<i8"), (f"{name}_count", "<i8")]


class Struct(NamedTuple):
    """A thrift struct: the table of its records, the rules of its fields; `bare`: a list element that is no struct."""

    name: str
    table: str
    fields: Mapping[int, Rule] = {}
    required: Sequence[int] = ()
    bare: bool = False


class Table(NamedTuple):
    """The records of a table, and how many bytes of input one takes in ordinary files: a guess at the room needed."""

    dtype: np.dtype[np.void]
    bytes_per_row: int


class Walked(NamedTuple):
    """The filled tables and the position after the last byte that was walked."""

    tables: dict[str, Records]
    end: int


class Grammar:
    """A set of structs; a walk begins with the first."""

    def __init__(self, subject: str, structs: Sequence[Struct], tables: Mapping[str, Table]) -> None:
        self.subject = subject
        self.structs = {one.name: one for one in structs}
        self.tables = dict(tables)
        self._numbers = {name: number for number, name in enumerate(self.structs)}

    def walk(self, data: bytes, *, start: int = 0, name: str) -> Walked:
        """Walk the bytes from `start`; `Damaged` names the field and the byte where they do not follow the grammar."""
        from windrow.kernels.thrift import walk

        if not 0 <= start <= len(data):
            raise InvalidInput(f"{name}: {self.subject} at byte {start} lies outside of the {len(data)} bytes given")
        room = [1, *(len(data) // table.bytes_per_row + 16 for table in list(self.tables.values())[1:])]
        source = np.frombuffer(data, np.uint8)
        while True:
            layout, arena = self._lay_out(room)
            end, struct, field, last = walk(source, start, self.compiled, layout, arena)
            if end != -r.FULL:
                break
            room[int(self.compiled[struct + r.TABLE]) // r.TABLE_SIZE] *= 4
        if end < 0:
            raise Damaged(self._complaint(name, -end, struct // r.STRUCT_SIZE, field, last))
        return Walked(self._cut(layout, arena), end)

    def walk_each(
        self, data: bytes, starts: npt.NDArray[np.int64], ends: npt.NDArray[np.int64], names: Sequence[str]
    ) -> tuple[dict[str, Records], dict[str, npt.NDArray[np.int64]]]:
        """Walk several structs, each within its own bytes, by one call: all tables, and where those of each begin.

        Positions in the records count from the first byte of all.
        """
        from windrow.kernels.thrift import walk_each

        source, count = np.frombuffer(data, np.uint8), len(starts)
        room = self._room_like_first(data, starts, ends, names)
        counts = np.zeros((count + 1, len(self.tables)), np.int64)
        while True:
            layout, arena = self._lay_out(room)
            trouble, number, struct = walk_each(source, starts, ends, self.compiled, layout, arena, counts)
            if trouble != r.FULL:
                break
            room[int(self.compiled[struct + r.TABLE]) // r.TABLE_SIZE] *= 4
        if trouble:
            # it fails again, with a word on where
            self.walk(data[starts[number] : ends[number]], name=names[number])
        return self._cut(layout, arena), dict(zip(self.tables, counts.T, strict=True))

    def _room_like_first(
        self, data: bytes, starts: npt.NDArray[np.int64], ends: npt.NDArray[np.int64], names: Sequence[str]
    ) -> list[int]:
        """Room for the records of several structs that have about as many for their bytes as the first has."""
        if not len(starts):
            return [0] * len(self.tables)
        first = data[starts[0] : ends[0]]
        tables = self.walk(first, name=names[0]).tables
        sizes = [tables[name].size for name in list(self.tables)[1:]]
        return [len(starts), *((size + 1) * len(data) * 9 // (8 * len(first)) + 16 for size in sizes)]

    def _lay_out(self, room: Sequence[int]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        layout = np.zeros((len(room), r.TABLE_SIZE), np.int64)
        layout[:, r.WIDTH] = [table.dtype.itemsize // 8 for table in self.tables.values()]
        layout[:, r.CAPACITY] = room
        sizes = layout[:, r.WIDTH] * layout[:, r.CAPACITY]
        layout[1:, r.START] = np.cumsum(sizes)[:-1]
        return layout.reshape(-1), np.zeros(int(sizes.sum()), np.int64)

    def _cut(self, layout: npt.NDArray[np.int64], arena: npt.NDArray[np.int64]) -> dict[str, Records]:
        cut = {}
        for (name, table), (start, width, _, used) in zip(
            self.tables.items(), layout.reshape(-1, r.TABLE_SIZE).tolist(), strict=True
        ):
            cut[name] = arena[start : start + width * used].view(table.dtype)
        return cut

    def _complaint(self, name: str, code: int, number: int, field: int, last: int) -> str:
        one = [*self.structs.values(), Struct("a value that is passed over", "")][number]
        is_named = field in one.fields and code != r.MISSING
        where = f"{one.name}.{one.fields[field].name}" if is_named else one.name
        return (
            f"{name}: {self.subject}, {where} after byte {last}: {_PROBLEMS[code]}; the file is damaged, write it again"
        )

    @cached_property
    def compiled(self) -> npt.NDArray[np.int64]:
        """The rules as the kernel reads them."""
        compiled = np.zeros((len(self.structs) + 1, r.RULES, r.RULE_SIZE), np.int64)
        compiled[:, 1:, r.NEXT] = len(self.structs) * r.STRUCT_SIZE
        compiled[-1, 0, r.TABLE] = -1
        spare = dict.fromkeys(self.tables, 1 << 30)
        for number, one in enumerate(self.structs.values()):
            dtype, required = self.tables[one.table].dtype, 0
            for field, rule in one.fields.items():
                flag = rule.flag
                if field in one.required:
                    if not flag:
                        # A required field that nobody asks about gets a bit of its own, counted down from the top.
                        flag, spare[one.table] = spare[one.table], spare[one.table] >> 1
                    required |= flag
                compiled[number, field, :5] = self._compile(rule, dtype, flag)
            place = _offset(dtype, "place") // 8 if "place" in (dtype.names or ()) else -1
            table = list(self.tables).index(one.table) * r.TABLE_SIZE
            compiled[number, 0] = required, _offset(dtype, "flags") // 4, table, place, self._smallest(one), one.bare
        return compiled.reshape(-1)

    def _compile(self, rule: Rule, dtype: np.dtype[np.void], flag: int) -> tuple[int, int, int, int, int]:
        struct = (len(self.structs) if rule.next is None else self._numbers[rule.next]) * r.STRUCT_SIZE
        fitting = _FITTING[rule.action]
        if rule.target is None:
            return rule.action, -1, flag, struct, fitting
        wide = _field(dtype, rule.target)[0].itemsize == 8
        action = r.INT32 if rule.action == r.INT64 and not wide else rule.action
        return action, _offset(dtype, rule.target) // (8 if wide else 4), flag, struct, fitting

    def _smallest(self, one: Struct) -> int:
        """The fewest bytes that a valid value has: what bounds a length before anything is allocated for it."""
        if one.bare:
            return 1
        sizes = (self._smallest_field(one.fields[field]) for field in one.required)
        return 1 + sum(sizes)

    def _smallest_field(self, rule: Rule) -> int:
        if rule.action == r.STRUCT and rule.next is not None:
            return 1 + self._smallest(self.structs[rule.next])
        return _SMALLEST_FIELD.get(rule.action, 2)


def _field(dtype: np.dtype[np.void], name: str) -> tuple[Any, ...]:
    fields: Mapping[str, Any] = dtype.fields or {}
    return tuple(fields[name])


def _offset(dtype: np.dtype[np.void], name: str) -> int:
    return int(_field(dtype, name)[1])
