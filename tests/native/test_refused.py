"""What kernels may not say is refused before anything is built, with file, line and reason."""

from __future__ import annotations

import inspect
import re

import numpy as np
import pytest
from native.program import Program
from native.source import kernels_source, source_of
from native.types import Bad
from tests.native import accepted, refused

CALLED = {"called", "inner"}
PUBLIC = [each for each in refused.FUNCTIONS if each.__name__ not in CALLED]


def expected(function):
    """The line of a function with the reason, and the reason."""
    if function is refused.through_another:
        function = refused.inner  # the line is that of the function which cannot be translated
    lines, first = inspect.getsourcelines(function)
    ((number, reason),) = (
        (number, line.partition("# why: ")[2].strip()) for number, line in enumerate(lines, first) if "# why: " in line
    )
    return number, reason


@pytest.mark.parametrize("function", PUBLIC, ids=lambda each: each.__name__)
def test_a_refusal_names_file_line_and_reason(function):
    number, reason = expected(function)
    with pytest.raises(Bad, match=rf"^{re.escape(refused.__file__)}:{number}: .*{re.escape(reason)}"):
        source_of(Program(set(refused.FUNCTIONS), set()), [function])


def test_an_array_is_not_returned_to_python():
    def fresh(count: int) -> accepted.Integers:
        return np.zeros(count, np.int64)

    fresh.__annotations__ = {"count": int, "return": accepted.Integers}
    with pytest.raises(Bad, match="writes into arrays that it is given, and returns none"):
        source_of(Program({fresh}, set()), [fresh])


def test_an_annotation_without_a_type_is_refused():
    def of_text(value: str) -> int:
        return len(value)

    of_text.__annotations__ = {"value": str, "return": int}
    with pytest.raises(Bad, match="no type for the annotation <class 'str'>"):
        source_of(Program({of_text}, set()), [of_text])


def test_the_same_sources_give_the_same_program():
    once, twice = (source_of(Program(set(accepted.FUNCTIONS), set()), accepted.FUNCTIONS) for _ in range(2))
    assert once == twice
    assert callable(kernels_source)
