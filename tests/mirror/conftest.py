"""A table on a local disk, where other programs can read it, and one in a world where anything can fail."""

import pytest
from tests.proofs.worlds import World

import windrow


@pytest.fixture
def lake(tmp_path):
    with windrow.connect(tmp_path / "lake") as opened:
        yield opened


@pytest.fixture
def table(lake):
    return lake.create_table("events", sort="host|timestamp/V2", window="15m")


@pytest.fixture
def world(tmp_path):
    return World(tmp_path)
