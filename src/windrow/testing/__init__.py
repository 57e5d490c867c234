"""Tools to test what is built on Windrow, and other implementations of its parts.

`StoreTests` is a suite for pytest that every store has to pass. `FaultyStore` fails on plan, `RecordingStore` writes
down every call; both wrap any store. `RangeServer` is a web server that answers range requests and fails on plan.
"""

from windrow.testing.faulty import Fault, FaultKind, FaultyStore
from windrow.testing.metastores import MetastoreTests
from windrow.testing.recording import Recorded, RecordingStore
from windrow.testing.servers import Misbehaviour, RangeServer, Request
from windrow.testing.stores import StoreTests

__all__ = [
    "Fault",
    "FaultKind",
    "FaultyStore",
    "MetastoreTests",
    "Misbehaviour",
    "RangeServer",
    "Recorded",
    "RecordingStore",
    "Request",
    "StoreTests",
]
