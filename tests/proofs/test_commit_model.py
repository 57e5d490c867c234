"""The protocol loses nothing in any state it can reach, and needs every one of its guards."""

import pytest
from tests.proofs.commit_model import GUARDS, explore


def test_nothing_is_lost_in_any_state():
    found = explore()
    print(f"{found.states} states")
    assert found.lost is None, found.path
    assert found.states > 1000


@pytest.mark.parametrize("guard", GUARDS)
def test_without_any_one_guard_something_is_lost(guard):
    found = explore(without=[guard])
    print(f"without {guard!r}: {found.lost}, after {' -> '.join(found.path)}")
    assert found.lost is not None
    assert found.path
