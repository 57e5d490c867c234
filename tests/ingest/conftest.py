"""The lake that tests of ingest fill."""

import pytest

import windrow


@pytest.fixture
def lake(tmp_path):
    """An empty lake in a folder of its own, on the clock of this machine."""
    with windrow.connect(tmp_path / "lake") as opened:
        yield opened
