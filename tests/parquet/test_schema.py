from __future__ import annotations

import pytest

from windrow.errors import Damaged
from windrow.parquet.schema import (
    LogicalType,
    PhysicalType,
    Repetition,
    SchemaElement,
    leaves_of,
    subtree_end,
)

REQUIRED, OPTIONAL, REPEATED = Repetition


def leaf(name: str, repetition: Repetition | None = OPTIONAL, **more) -> SchemaElement:
    return SchemaElement(name, physical_type=PhysicalType.DOUBLE, repetition=repetition, **more)


def group(name: str, children: int, repetition: Repetition | None = OPTIONAL, **more) -> SchemaElement:
    return SchemaElement(name, num_children=children, repetition=repetition, **more)


def root(children: int) -> SchemaElement:
    return SchemaElement("root", num_children=children)


LIST = LogicalType("LIST")
NESTED = (
    root(4),
    leaf("flat", REQUIRED),
    group("grid", 1, logical_type=LIST),
    group("list", 1, REPEATED),
    group("element", 1, REQUIRED, converted_type=3),
    group("list", 1, REPEATED),
    leaf("element"),
    group("both", 2, REQUIRED),
    leaf("a"),
    group("b", 1, logical_type=LIST),
    group("list", 1, REPEATED),
    leaf("element", REQUIRED),
    leaf("old", REPEATED),
)


def test_leaves_carry_their_path_and_root():
    leaves = leaves_of(NESTED, name="file")
    assert [".".join(one.path) for one in leaves] == [
        "flat",
        "grid.list.element.list.element",
        "both.a",
        "both.b.list.element",
        "old",
    ]
    assert [one.root.name for one in leaves] == ["flat", "grid", "both", "both", "old"]
    assert [one.index for one in leaves] == [0, 1, 2, 3, 4]


def test_levels_count_what_may_be_absent_and_what_may_repeat():
    leaves = leaves_of(NESTED, name="file")
    assert [(one.max_repetition, one.max_definition) for one in leaves] == [(0, 0), (2, 4), (0, 1), (1, 2), (1, 1)]


def test_only_a_field_of_nothing_but_lists_has_dimensions():
    leaves = leaves_of(NESTED, name="file")
    assert [one.list_dimensions for one in leaves] == [0, 2, 0, 0, 0]
    assert [one.repeated_groups for one in leaves] == [0, 2, 0, 1, 0]
    assert [one.single_child for one in leaves] == [True, True, False, False, True]


def test_a_group_without_children_has_no_leaves():
    assert leaves_of((root(2), group("empty", 0), leaf("a")), name="file")[0].path == ("a",)
    assert leaves_of((root(0),), name="file") == ()


def test_the_elements_of_a_field_end_where_the_next_begins():
    assert [subtree_end(NESTED, start) for start in (0, 1, 2, 3, 7, 9, 12)] == [13, 2, 7, 7, 12, 12, 13]


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        ((), "file: the schema is empty"),
        ((root(0), leaf("a")), "file: schema element 'a' belongs to no group"),
        ((root(1), leaf("a"), leaf("b")), "file: schema element 'b' belongs to no group"),
        ((root(2), leaf("a")), "file: the schema ends before all children"),
        ((root(1), group("a", 2), leaf("b")), "file: the schema ends before all children"),
        ((root(1), leaf("a", None)), "file: schema element 'a' says nothing about its repetition"),
        ((root(1), *[group("a", 1)] * 200, leaf("b")), "file: schema element 'a' is nested more than 128 groups deep"),
    ],
)
def test_a_schema_that_is_no_tree_is_refused(schema, text):
    with pytest.raises(Damaged, match=text):
        leaves_of(schema, name="file")


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ({"converted_type": 0}, LogicalType("STRING")),
        ({"converted_type": 5, "precision": 9, "scale": 2}, LogicalType("DECIMAL", precision=9, scale=2)),
        ({"converted_type": 5, "precision": 9}, LogicalType("DECIMAL", precision=9, scale=0)),
        ({"converted_type": 10}, LogicalType("TIMESTAMP", unit="MICROS", is_adjusted_to_utc=True)),
        ({"converted_type": 11}, LogicalType("INTEGER", bit_width=8, is_signed=False)),
        ({"converted_type": 14}, LogicalType("INTEGER", bit_width=64, is_signed=False)),
        ({"converted_type": 16}, LogicalType("INTEGER", bit_width=16, is_signed=True)),
        ({"converted_type": 18}, None),
        ({"converted_type": 99}, None),
        ({"converted_type": 0, "logical_type": LogicalType("JSON")}, LogicalType("JSON")),
        ({"logical_type": LogicalType("INTEGER", bit_width=64, is_signed=True)}, None),
        ({}, None),
    ],
)
def test_both_ways_of_saying_what_values_mean_are_understood(said, meant):
    assert SchemaElement("a", physical_type=PhysicalType.INT64, **said).meaning == meant
