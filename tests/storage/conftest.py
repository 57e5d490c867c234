"""A server on loopback for the tests of remote stores."""

import pytest

from windrow.testing import RangeServer


@pytest.fixture
def range_server():
    """An HTTP server that answers range requests for what is put into its `objects`."""
    with RangeServer() as server:
        yield server
