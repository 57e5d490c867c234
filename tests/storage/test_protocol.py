"""The values that the verbs of a store speak in."""

import inspect

import pytest

from windrow.errors import InvalidInput
from windrow.storage import FILE_VERBS, VERBS, ByteRange, LocalFiles, OpenFile, Store


def methods(protocol):
    return {name for name, _ in inspect.getmembers(protocol, inspect.isfunction) if not name.startswith("_")}


def test_the_verbs_are_the_methods_of_the_protocol():
    assert methods(Store) == set(VERBS)


def test_the_verbs_of_local_files_are_their_methods_and_those_of_an_open_one():
    hints = {"is_at_hand", "announce"}
    assert methods(LocalFiles) | methods(OpenFile) - hints == set(FILE_VERBS)


def test_a_range_knows_its_end():
    assert ByteRange(10, 5).end == 15


@pytest.mark.parametrize(("start", "length"), [(-1, 1), (0, -1), (2**63, 1), (2**62, 2**62)])
def test_a_range_that_no_object_has_is_refused(start, length):
    with pytest.raises(InvalidInput, match=f"start {start} with length {length}"):
        ByteRange(start, length)
