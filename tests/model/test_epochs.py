"""What is demanded of columns that did not change, and how values go through changes of types."""

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from windrow.model.epochs import OldColumn, OldValues, SchemaHistory, TypeChange, stored_predicate
from windrow.model.predicate import And, Between, Comparison, In, IsNotNull, IsNull, Not, Op, Or, columns_of, matches

NAMES, NUMBERS = st.sampled_from("abc"), st.integers(0, 3)
LEAVES = st.one_of(
    st.builds(Comparison, NAMES, st.sampled_from(Op), NUMBERS),
    st.builds(In, NAMES, st.lists(NUMBERS, max_size=2).map(tuple)),
    st.builds(Between, NAMES, NUMBERS, NUMBERS),
    st.builds(IsNull, NAMES),
    st.builds(IsNotNull, NAMES),
)
PREDICATES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.builds(Not, inner),
        *(st.builds(kind, st.lists(inner, max_size=3).map(tuple)) for kind in (And, Or)),
    ),
    max_leaves=6,
)
CHANGED = OldColumn(pa.string(), ())
ROWS = st.fixed_dictionaries(dict.fromkeys("abc", st.none() | NUMBERS))


@given(PREDICATES, st.frozensets(NAMES), ROWS)
def test_no_row_is_lost_when_columns_are_left_out_of_a_predicate(predicate, columns, row):
    left = stored_predicate(predicate, dict.fromkeys(columns, CHANGED))
    assert left is None or columns_of(left).isdisjoint(columns)
    if matches(predicate, row):
        assert left is None or matches(left, row)


def test_what_is_demanded_of_other_columns_stays():
    wanted = Comparison("a", Op.EQUAL, 1)
    other = Comparison("b", Op.GREATER, 2)
    assert stored_predicate(And((wanted, other)), {"b": CHANGED}) == wanted
    assert stored_predicate(Or((wanted, other)), {"b": CHANGED}) is None
    assert stored_predicate(Not(Or((wanted, other))), {"a": CHANGED}) == Comparison("b", Op.LESS_OR_EQUAL, 2)
    assert stored_predicate(wanted, {"c": CHANGED}) is wanted


@given(PREDICATES, ROWS)
def test_no_row_is_lost_when_tests_become_those_of_stored_values(predicate, row):
    """The column `a` is stored as another number, and not all of its tests can be asked of that."""

    def stored(test):
        match test:
            case Comparison(column, Op.LESS, value):
                return Comparison(column, Op.LESS, value + 10)
            case IsNull():
                return test

    left = stored_predicate(predicate, {"a": OldColumn(pa.string(), (), stored_test=stored)})
    if matches(predicate, row):
        value = row["a"]
        assert left is None or matches(left, row | {"a": None if value is None else value + 10})


def test_a_column_goes_through_the_changes_after_its_epoch():
    types = {
        0: {"a": pa.string()},
        1: {"a": pa.float64(), "b": pa.int64()},
        2: {"a": pa.float64(), "b": pa.string()},
        3: {"a": pa.int64(), "b": pa.string()},
    }
    changes = (
        TypeChange(1, 4, "a", OldValues.CAST_OR_NULL),
        TypeChange(2, 6, "b", OldValues.NULL),
        TypeChange(3, 7, "a", OldValues.CAST),
    )
    first, second = (OldValues.CAST_OR_NULL, pa.float64()), (OldValues.CAST, pa.int64())
    assert SchemaHistory(3, types, changes).old_columns() == {
        0: {"a": OldColumn(pa.string(), (first, second))},
        1: {"a": OldColumn(pa.float64(), (second,)), "b": OldColumn(pa.int64(), ((OldValues.NULL, pa.string()),))},
        2: {"a": OldColumn(pa.float64(), (second,))},
    }
    assert SchemaHistory().old_columns() == {}
