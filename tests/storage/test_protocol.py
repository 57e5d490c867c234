"""The values that the verbs of a store speak in."""

import inspect

import pytest

from windrow.errors import InvalidInput
from windrow.storage import VERBS, ByteRange, Store


def test_the_verbs_are_the_methods_of_the_protocol():
    methods = {name for name, _ in inspect.getmembers(Store, inspect.isfunction) if not name.startswith("_")}
    assert methods == set(VERBS)


def test_a_range_knows_its_end():
    assert ByteRange(10, 5).end == 15


@pytest.mark.parametrize(("start", "length"), [(-1, 1), (0, -1), (2**63, 1), (2**62, 2**62)])
def test_a_range_that_no_object_has_is_refused(start, length):
    with pytest.raises(InvalidInput, match=f"start {start} with length {length}"):
        ByteRange(start, length)
