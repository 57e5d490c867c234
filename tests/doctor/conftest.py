"""A table in a world whose clock is set by hand."""

import pytest
from tests.proofs.worlds import World


@pytest.fixture
def world(tmp_path):
    return World(tmp_path)


@pytest.fixture
def lake(world):
    with world.open() as opened:
        yield opened


@pytest.fixture
def table(lake):
    return lake.create_table("events", sort="host|timestamp/V2", window="15m")
