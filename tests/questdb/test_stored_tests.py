"""Tests of text that become tests of stored values: no row is lost, and where texts have an order none is won."""

from __future__ import annotations

from ipaddress import IPv4Address
from uuid import UUID

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from windrow.model.predicate import (
    Between,
    Comparison,
    In,
    IsNotNull,
    IsNull,
    Not,
    Op,
    Or,
    Predicate,
    StartsWith,
    matches,
    negation_normal_form,
)
from windrow.questdb.stored_tests import stored_test
from windrow.sidecar.types import Tag

ONE, OTHER = "108f2ca7-dfec-46cf-a33d-80f878ee3e64", "f6a2a014-771c-4357-a158-7b424a4aa4dc"


def uuid_text(value: bytes | None) -> str | None:
    return None if value is None else str(UUID(bytes=value))


def address_text(value: int | None) -> str | None:
    return str(IPv4Address(value)) if value else None


def character_text(value: int | None) -> str:
    if not value:
        return ""
    return "\ufffd" if 0xD800 <= value <= 0xDFFF else chr(value)


SHOWN = {Tag.UUID: uuid_text, Tag.IPV4: address_text, Tag.CHAR: character_text}
EDGES = [0, 1, 0x41, 0xD7FF, 0xD800, 0xDFFF, 0xE000, 0xFFFD, 0xFFFF]
STORED = {
    Tag.UUID: st.binary(min_size=16, max_size=16) | st.sampled_from([bytes(16), b"\xff" * 16, UUID(ONE).bytes]),
    Tag.IPV4: st.integers(0, 2**32 - 1) | st.sampled_from([0, 1, 2**31, 2**32 - 1]),
    Tag.CHAR: st.integers(0, 2**16 - 1) | st.sampled_from(EDGES),
}
ANY_TEXT = st.text(st.sampled_from("0159afgAF.-x\0 é\ud7ff\ue000\ufffd\uffff\U0001f600"), max_size=40)


def texts_of(tag: Tag) -> st.SearchStrategy[str]:
    """Texts of values, texts near them, and any others."""
    shown = STORED[tag].map(SHOWN[tag]).filter(lambda text: text is not None)
    near = st.one_of(
        shown.map(str.upper),
        st.builds(lambda text, cut: text[:cut], shown, st.integers(0, 36)),
        st.builds(lambda text, more: text + more, shown, ANY_TEXT),
    )
    return shown | near | ANY_TEXT


@st.composite
def some_test(draw: st.DrawFn, tag: Tag) -> Predicate:
    texts = texts_of(tag)
    return draw(
        st.one_of(
            st.builds(Comparison, st.just("c"), st.sampled_from(Op), texts),
            st.builds(In, st.just("c"), st.lists(texts, max_size=4).map(tuple)),
            st.builds(Between, st.just("c"), texts, texts),
            st.builds(StartsWith, st.just("c"), texts),
            st.builds(StartsWith, st.just("c"), texts).map(Not),
            st.sampled_from([IsNull("c"), IsNotNull("c")]),
        )
    )


@pytest.mark.parametrize("tag", SHOWN)
@given(st.data())
def test_a_row_that_is_selected_by_its_text_is_selected_by_what_is_stored(tag, data):
    test, value = data.draw(some_test(tag)), data.draw(st.none() | STORED[tag])
    if matches(test, {"c": SHOWN[tag](value)}):
        found = stored_test(tag, test)
        assert found is None or matches(found, {"c": value}), found


@given(st.data())
def test_tests_of_uuids_select_no_other_rows(data):
    test, value = data.draw(some_test(Tag.UUID)), data.draw(st.none() | STORED[Tag.UUID])
    found = stored_test(Tag.UUID, test)
    assert matches(found, {"c": value}) == matches(test, {"c": uuid_text(value)})


@given(st.data())
def test_tests_of_characters_select_no_other_rows_but_halves(data):
    test, value = data.draw(some_test(Tag.CHAR)), data.draw(st.none() | STORED[Tag.CHAR])
    assume(value is None or not 0xD800 <= value <= 0xDFFF)
    found = stored_test(Tag.CHAR, test)
    assert found is None or matches(found, {"c": value}) == matches(test, {"c": character_text(value)})


@pytest.mark.parametrize("tag", [Tag.UUID, Tag.IPV4])
@pytest.mark.parametrize(
    "text",
    ["", "zz", ONE.upper(), f"{{{ONE}}}", f"{ONE} ", ONE[:-1], "0.0.0.0", "010.0.0.1", "1.2.3.256", "1.2.3", "é"],
)
def test_a_text_that_no_value_has_selects_nothing(tag, text):
    """A UUID in capitals is another text."""
    for test in (Comparison("c", Op.EQUAL, text), In("c", (text, text))):
        found = stored_test(tag, test)
        assert found in (Or(()), In("c", ()))


def test_what_is_asked_of_bounds_and_filters():
    one, other = UUID(ONE).bytes, UUID(OTHER).bytes
    assert stored_test(Tag.UUID, In("c", (OTHER, ONE, "x"))) == Or((In("c", (one, other)),))
    assert stored_test(Tag.UUID, Between("c", ONE, OTHER)) == Or((Between("c", one, other),))
    assert stored_test(Tag.UUID, StartsWith("c", "f6a2")) == Or(
        (Between("c", b"\xf6\xa2" + bytes(14), b"\xf6\xa2" + b"\xff" * 14),)
    )
    assert stored_test(Tag.IPV4, Comparison("c", Op.EQUAL, "10.0.0.1")) == In("c", (0x0A000001,))
    assert stored_test(Tag.IPV4, Comparison("c", Op.LESS, "10.0.0.1")) == Comparison("c", Op.GREATER, 0)
    assert stored_test(Tag.CHAR, Comparison("c", Op.EQUAL, "A")) == Or((Or((In("c", (65,)),)),))
    assert stored_test(Tag.CHAR, Comparison("c", Op.EQUAL, "")) == Or((Or((In("c", (0,)),)), IsNull("c")))


@pytest.mark.parametrize("tag", [Tag.LONG256, Tag.INT])
def test_nothing_is_known_of_other_types_or_of_values_that_are_no_text(tag):
    assert stored_test(tag, Comparison("c", Op.EQUAL, "x")) is None
    assert stored_test(Tag.UUID, Comparison("c", Op.EQUAL, 5)) is None
    assert stored_test(Tag.CHAR, In("c", ("a", 5))) is None


@given(st.lists(some_test(Tag.CHAR), max_size=3), STORED[Tag.CHAR])
def test_a_normal_form_has_no_other_tests_than_these(tests, value):
    form = negation_normal_form(Not(Or(tuple(tests))))
    for part in form.parts:
        for each in getattr(part, "parts", (part,)):
            if not matches(each, {"c": character_text(value)}):
                continue
            found = stored_test(Tag.CHAR, each)
            assert found is None or matches(found, {"c": value})
