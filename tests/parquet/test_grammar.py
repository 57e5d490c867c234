from __future__ import annotations

import contextlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windrow.errors import Damaged, InvalidInput
from windrow.parquet import thrift as t
from windrow.parquet.grammar import (
    Grammar,
    Struct,
    Table,
    bytes_,
    integer,
    list_fields,
    mark,
    mask,
    negated,
    rows,
    span_fields,
    struct,
    truth,
)

HAS_NUMBER, SAID_NO, HAS_EXTRA = 1, 2, 4
BOX = np.dtype(
    [
        ("flags", "<u4"),
        ("number", "<i4"),
        ("long", "<i8"),
        ("truth", "<i4"),
        ("kinds", "<u4"),
        ("choice", "<i4"),
        ("inner", "<i4"),
        *span_fields("text"),
        *list_fields("items"),
        *list_fields("names"),
    ]
)
ITEM = np.dtype([("place", "<i8"), ("flags", "<u4"), ("value", "<i4")])
NAME = np.dtype([("flags", "<u8"), *span_fields("value")])
BOXES = Grammar(
    "box",
    (
        Struct(
            "Box",
            "box",
            {
                1: integer("number", flag=HAS_NUMBER),
                2: integer("long"),
                3: truth("truth"),
                4: negated("sure", flag=SAID_NO),
                5: bytes_("text"),
                6: mask("kinds"),
                7: struct("choice", "Choice"),
                8: rows("items", "Item"),
                9: rows("names", "name"),
                10: mark("extra", flag=HAS_EXTRA),
            },
        ),
        Struct("Choice", "box", {n: struct("choice", "Inner", tag="choice") for n in (1, 2)}),
        Struct("Inner", "box", {1: integer("inner")}),
        Struct("Item", "items", {1: integer("value")}, required=(1,)),
        Struct("name", "names", {1: bytes_("value")}, bare=True),
    ),
    {"box": Table(BOX, 1), "items": Table(ITEM, 1000), "names": Table(NAME, 1000)},
)


def walk(data: bytes, **more):
    return BOXES.walk(data, name="file", **more)


def box(*fields: t.Field) -> np.void:
    return walk(t.struct(*fields)).tables["box"][0]


def test_values_go_to_the_fields_that_the_rules_name():
    found = box(t.i32(1, -5), t.i64(2, 1 << 62), t.boolean(3, value=True), t.binary(5, b"text"))
    assert (found["number"], found["long"], found["truth"]) == (-5, 1 << 62, 1)
    assert (found["text_offset"], found["text_length"]) == (16, 4)
    assert found["flags"] == HAS_NUMBER


def test_a_denial_and_a_mark_set_nothing_but_their_flag():
    assert box(t.boolean(4, value=False), t.nested(10, t.struct(t.i32(1, 1))))["flags"] == SAID_NO | HAS_EXTRA
    assert box(t.boolean(4, value=True))["flags"] == 0


def test_a_list_of_small_numbers_becomes_bits():
    assert box(t.list_of(6, 5, [t.zigzag(n) for n in (0, 3, 30)]))["kinds"] == 1 | 8 | 1 << 30
    assert box(t.list_of(6, 5, [t.zigzag(n) for n in (-1, 31, 4711)]))["kinds"] == 1 << 31


def test_the_member_of_a_union_is_kept_with_its_parameters():
    found = box(t.nested(7, t.struct(t.nested(2, t.struct(t.i32(1, 9))))))
    assert (found["choice"], found["inner"]) == (2, 9)


def test_lists_become_records_of_their_own():
    items = [t.struct(t.i32(1, n)) for n in range(3)]
    data = t.struct(t.list_of(8, 12, items), t.list_of(9, 8, [t.prefixed(b"a"), t.prefixed(b"bc")]))
    walked = walk(data)
    found = walked.tables["box"][0]
    assert (found["items_offset"], found["items_length"], found["items_first"], found["items_count"]) == (1, 10, 0, 3)
    assert walked.tables["items"]["value"].tolist() == [0, 1, 2]
    assert walked.tables["items"]["place"].tolist() == [2, 5, 8]
    names = [data[at : at + length] for _, at, length in walked.tables["names"].tolist()]
    assert names == [b"a", b"bc"]
    assert walked.end == len(data)


def test_more_records_than_were_guessed_find_room():
    many = t.struct(t.list_of(8, 12, [t.struct(t.i32(1, n)) for n in range(5000)]))
    assert walk(many).tables["items"]["value"].tolist() == list(range(5000))


def test_a_walk_can_begin_anywhere_and_tells_where_it_ended():
    data = b"before" + t.struct(t.i32(1, 7)) + b"after"
    walked = walk(data, start=6)
    assert walked.tables["box"][0]["number"] == 7
    assert walked.end == 9


@pytest.mark.parametrize("start", [-1, 4])
def test_a_start_outside_of_the_bytes_is_refused(start):
    with pytest.raises(InvalidInput, match=f"file: box at byte {start} lies outside of the 3 bytes"):
        walk(b"123", start=start)


ANYTHING = {
    "booleans": t.Field(30, 1, b""),
    "a byte": t.Field(30, 3, b"\xff"),
    "a short": t.Field(30, 4, b"\x7e"),
    "a double": t.Field(30, 7, b"12345678"),
    "a binary": t.Field(30, 8, b"\x03abc"),
    "an identifier": t.Field(30, 13, bytes(16)),
    "a list of booleans": t.Field(30, 9, b"\x31\x01\x02\x01"),
    "a set of numbers": t.Field(30, 10, b"\x25\x02\x80\x01"),
    "a list of lists": t.Field(30, 9, b"\x29\x25\x02\x02\x15\x02"),
    "a list of structs": t.Field(30, 9, b"\x2c\x15\x02\x00\x11\x00"),
    "an empty map": t.Field(30, 11, b"\x00"),
    "a map": t.Field(30, 11, b"\x02\x8c\x01a\x15\x02\x00\x01b\x00"),
    "a map of booleans": t.Field(30, 11, b"\x02\x15\x01\x08\x02\x0a"),
    "a struct of all sorts": t.Field(
        30, 12, t.struct(t.i32(1, 1), t.binary(2, b"x"), t.list_of(3, 1, [b"\1"]), t.nested(4, b"\0"))
    ),
    "an id far away": t.Field(4000, 5, b"\x02"),
    "a negative id": t.Field(-3, 5, b"\x02"),
    "a number where a text is expected": t.i32(5, 3),
    "a text where a number is expected": t.binary(1, b"text"),
    "a struct where a list is expected": t.nested(8, t.struct()),
}


@pytest.mark.parametrize("name", ANYTHING)
def test_what_no_rule_wants_is_passed_over(name):
    found = box(t.i64(2, 4), ANYTHING[name], t.boolean(3, value=True))
    assert (found["long"], found["truth"], found["flags"]) == (4, 1, 0)


WRONG = {
    "end inside the value": [b"", b"\x15", b"\x15\x80", b"\x07\x3c1234567", b"\x0d\x3c1"],
    "more than 64 bits": [b"\x26" + b"\xff" * 9 + b"\x02", b"\x26" + b"\xff" * 20],
    "does not fit in 32 bits": [b"\x15" + b"\xff" * 5 + b"\x00"],
    "thrift type that does not belong": [
        b"\x0e\x3c",
        b"\x1f\x3c",
        b"\x09\x3c\x10\x00",
        b"\x89\x15\x02\x02\x02",
        b"\x99\x1c\x00",
        b"\x0b\x3c\x01\x0f\x00\x00",
    ],
    "more than the bytes that are left": [
        b"\x28\x03",
        b"\x58\x09abc",
        b"\x89\xfc\xff\xff\xff\xff\x0f",
        b"\x89\x9c\x00",
        b"\x0b\x3c\x7f\x55",
    ],
    "nested too deeply": [b"\x0c\x3c" + b"\x1c" * 100, b"\x09\x3c" + b"\x19" * 100],
    "required fields are missing": [b"\x89\x1c\x00\x00\x00"],
    "stands there twice": [b"\x89\x1c\x15\x02\x00\x09\x10\x0c\x00"],
}


@pytest.mark.parametrize(("problem", "data"), [(problem, data) for problem in WRONG for data in WRONG[problem]])
def test_what_does_not_follow_the_grammar_is_refused(problem, data):
    with pytest.raises(Damaged, match=f"^file: box, .* after byte .*: .*{problem}"):
        walk(data)


@given(st.binary(max_size=200))
@settings(deadline=None)  # the first call compiles
def test_any_bytes_are_walked_or_refused(data):
    with contextlib.suppress(Damaged):
        assert 0 < walk(data).end <= len(data)
