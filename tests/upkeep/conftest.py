"""A table in a world whose clock is set by hand."""

import tempfile
from pathlib import Path

import pytest
from tests.proofs.worlds import World


@pytest.fixture
def folder():
    """A folder in memory where there is one: in these proofs processes die, disks do not."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(prefix="windrow-", dir=memory if memory.is_dir() else None) as made:
        yield Path(made)


@pytest.fixture
def world(tmp_path):
    return World(tmp_path)


@pytest.fixture
def lake(world):
    with world.open() as opened:
        yield opened


@pytest.fixture
def table(lake):
    return lake.create_table("events", sort="host|timestamp/V2", window="15m", mirror=False)
