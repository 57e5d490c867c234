"""Results print as a table, give plain values and export Arrow."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from windrow.model.rows import Rows, like


@dataclass(frozen=True)
class Fruit:
    name: str
    count: int | None


FRUIT = Rows(Fruit, (Fruit("apple", 1200), Fruit("fig", None)))


def test_it_prints_as_a_table():
    assert str(FRUIT) == "name   count\n-----  -----\napple  1,200\nfig    -"


def test_it_is_a_sequence_of_records():
    assert len(FRUIT) == 2
    assert FRUIT[1].name == "fig"
    assert [each.count for each in FRUIT[:1]] == [1200]


def test_it_gives_plain_values_and_arrow():
    assert FRUIT.to_dict() == [{"name": "apple", "count": 1200}, {"name": "fig", "count": None}]
    assert pa.table(FRUIT).to_pylist() == FRUIT.to_dict()


def test_without_records_the_columns_are_still_there():
    empty = Rows(Fruit, ())
    assert empty.to_arrow().column_names == ["name", "count"]
    assert str(empty) == "name  count\n----  -----"


def test_a_record_like_another_has_its_fields_of_the_same_names_and_those_that_are_given():
    @dataclass(frozen=True)
    class Source:
        name: str
        count: int
        kind: int

    @dataclass(frozen=True)
    class Shown:
        name: str
        kind: str
        count: int

    assert like(Shown, Source("a", 3, 7), kind="seven") == Shown("a", "seven", 3)
