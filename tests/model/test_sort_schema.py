"""Sort schemas: what parses, what does not and why, and that what is printed parses to the same."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windrow.errors import InvalidInput, SortSchemaError
from windrow.model.sort_schema import Direction, SortColumn, SortSchema

CASES = json.loads((Path(__file__).parent / "cases" / "sort_schema.json").read_text(encoding="utf-8"))

ASCENDING, DESCENDING = Direction.ASCENDING, Direction.DESCENDING


def by_text(case):
    return ascii(case["text"])


@pytest.mark.parametrize("case", CASES["good"], ids=by_text)
def test_a_good_schema_is_read_and_printed(case):
    schema = SortSchema.parse(case["text"])
    assert [column.name + column.direction for column in schema.columns] == case["columns"]
    assert list(schema.metadata_columns) == case["metadata"]
    assert schema.name == case["name"]
    assert str(schema) == case["prints"]
    assert SortSchema.parse(str(schema)) == schema


@pytest.mark.parametrize("case", CASES["bad"], ids=by_text)
def test_a_bad_schema_is_refused_with_the_place_and_the_problem(case):
    with pytest.raises(SortSchemaError) as caught:
        SortSchema.parse(case["text"])
    assert caught.value.position == case["position"]
    assert case["problem"] in caught.value.problem
    assert caught.value.text == case["text"]


@pytest.mark.parametrize("value", [None, 7, b"a/V2", ["a"]])
def test_only_text_is_parsed(value):
    with pytest.raises(InvalidInput, match="expected a schema such as"):
        SortSchema.parse(value)


@pytest.mark.parametrize("name", ["", "a|b", "a&b", "a=b", "a/b", "a+", "a-", " a", "a\t", "a\nb", None, 7])
def test_a_column_built_by_hand_has_a_name_that_can_be_written(name):
    with pytest.raises(SortSchemaError):
        SortColumn(name, ASCENDING)
    with pytest.raises(SortSchemaError):
        SortSchema((SortColumn("x", ASCENDING),), (name,))


def test_a_column_built_by_hand_has_a_direction():
    with pytest.raises(SortSchemaError, match="expected one of Direction"):
        SortColumn("a", "+")


A, B = SortColumn("a", ASCENDING), SortColumn("b", ASCENDING)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (((),), "one or more SortColumn"),
        ((None,), "one or more SortColumn"),
        (([A],), "a tuple of one or more SortColumn"),
        ((("a",),), "one or more SortColumn"),
        (((A,), ["b"]), "a tuple of names"),
        (((A,), "region"), "a tuple of names"),
        (((A, A),), "'a' a second time"),
        (((A, B), ("b",)), "'b' a second time"),
        (((A,), ("c", "c")), "'c' a second time"),
        (((A,), (), ""), "schema name"),
        (((A,), (), "x=y"), "schema name"),
        (((A,), (), " x"), "schema name"),
    ],
)
def test_a_schema_built_by_hand_is_checked(arguments, problem):
    with pytest.raises(SortSchemaError) as caught:
        SortSchema(*arguments)
    assert problem in caught.value.problem


def test_the_error_points_at_the_character():
    with pytest.raises(SortSchemaError) as caught:
        SortSchema.parse("host|host/V2")
    assert str(caught.value).splitlines()[1:] == ["  host|host/V2", "       ^"]


def test_column_names_are_sort_columns_then_metadata_columns():
    assert SortSchema.parse("b|a-&d|c/V2").column_names == ("b", "a", "d", "c")


def test_the_canonical_text_has_no_name_and_no_default_directions():
    assert SortSchema.parse("mine=a+|timestamp-&r/V2").canonical() == "a|timestamp&r/V2"


@pytest.mark.parametrize(
    ("left", "right", "compatible"),
    [
        ("a|b/V2", "x=a+|b/V2", True),
        ("a|timestamp/V2", "a|timestamp-/V2", True),
        ("a|b/V2", "a|b&c/V2", False),
        ("a|b/V2", "b|a/V2", False),
        ("a|b/V2", "a|b-/V2", False),
        ("a|b/V2", "a/V2", False),
    ],
)
def test_canonical_texts_are_equal_when_all_but_the_name_is(left, right, compatible):
    assert (SortSchema.parse(left).canonical() == SortSchema.parse(right).canonical()) is compatible


def is_edge_clean(name):
    return name == name.strip() and name[-1] not in "+-"


names = (
    st.text(st.characters(exclude_categories=("Cc", "Cs"), exclude_characters="|&=/"), min_size=1, max_size=8)
    | st.sampled_from(["timestamp", "k8s.pod-name", "a+b"])
).filter(is_edge_clean)


@st.composite
def schemas(draw):
    columns = draw(st.lists(names, min_size=1, max_size=6, unique=True))
    cut = draw(st.integers(1, len(columns)))
    sorting = tuple(SortColumn(name, draw(st.sampled_from(Direction))) for name in columns[:cut])
    return SortSchema(sorting, tuple(columns[cut:]), draw(st.none() | names))


@settings(deadline=None)
@given(schemas())
def test_what_is_printed_parses_to_the_same_schema(schema):
    assert SortSchema.parse(str(schema)) == schema
    assert SortSchema.parse(schema.canonical()).canonical() == schema.canonical()


marks = st.lists(st.sampled_from(["a", "b", "timestamp", "|", "&", "=", "/", "+", "-", " ", "/V2"]), max_size=10)


def parsed(text):
    try:
        return SortSchema.parse(text)
    except SortSchemaError as error:
        return error


@settings(deadline=None, max_examples=300)
@given(st.text() | marks.map("".join) | marks.map(lambda parts: "".join(parts) + "/V2"))
def test_any_text_parses_or_is_refused_at_a_position_inside_it(text):
    result = parsed(text)
    if isinstance(result, SortSchema):
        assert parsed(str(result)) == result
    else:
        assert 0 <= result.position <= len(text)
        assert result.problem
