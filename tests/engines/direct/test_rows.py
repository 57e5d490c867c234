"""Rows of an answer as Arrow."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow.engines.direct.rows import DirectRows

INTEGERS = {f"{sign}int{bits}": (sign, bits) for sign in ("", "u") for bits in (8, 16, 32, 64)}
OTHERS = {
    "float32": st.floats(width=32),
    "float64": st.floats(),
    "string": st.text(st.characters(exclude_categories=["Cs"])),
    "bool_": st.booleans(),
}


def values(kind):
    if kind not in INTEGERS:
        return OTHERS[kind]
    sign, bits = INTEGERS[kind]
    return st.integers(0, 2**bits - 1) if sign else st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


@pytest.mark.parametrize("kind", [*INTEGERS, *OTHERS])
@given(st.data())
def test_a_column_is_the_one_that_arrow_makes_of_its_values(kind, data):
    column = data.draw(st.lists(st.none() | values(kind), max_size=20))
    table = DirectRows(["a"], [kind], [(value,) for value in column]).to_arrow()
    table.validate(full=True)
    plain = pa.array(column, getattr(pa, kind)())
    assert table.schema == pa.schema([("a", plain.type)])
    assert repr(table["a"].to_pylist()) == repr(plain.to_pylist())
