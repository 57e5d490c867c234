"""A reader that is closed gives no bytes, zeros least of all."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest

import windrow
from windrow.errors import Closed
from windrow.reading.read_context import ReadContext
from windrow.reading.virtual_reader import VirtualReader
from windrow.storage.handles import Handle

START = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def virtual(tmp_path):
    with windrow.connect(tmp_path / "lake", cache=None) as lake:
        table = lake.create_table("t", sort="host|timestamp/V2", mirror=False)
        times = pa.array([START + timedelta(seconds=n) for n in range(100)], pa.timestamp("us", "UTC"))
        table.ingest(pa.table({"host": ["h"] * 100, "timestamp": times, "n": range(100)}))
        yield table.plan().virtual[0], ReadContext(lake.url, lake.context.store)


@pytest.mark.parametrize("length", [4, 500, 10**6])
def test_a_closed_reader_raises_wherever_it_is_read(virtual, length):
    file, context = virtual
    reader = VirtualReader(file, context)
    assert reader.read_at(0, 4) == b"PAR1"
    reader.close()
    reader.close()
    with pytest.raises(Closed, match="closed"):
        reader.read_at(0, length)
    with pytest.raises(Closed, match="closed"):
        reader.finish()


def test_a_read_under_which_the_reader_is_closed_gives_its_bytes_or_raises(virtual):
    """Bytes that span several segments are put together piece by piece; the reader is closed between two of them."""
    file, context = virtual
    whole = VirtualReader(file, context)
    expected = whole.read_at(0, file.size)
    closed = VirtualReader(file, context)
    place = next(n for n, (_, _, source, _) in enumerate(closed._placed) if hasattr(source, "_rest") or n)
    start, size, source, offset = closed._placed[place]

    class Closing:
        def read_at(self, at, length):
            closed.close()
            return source.read_at(at, length)

    closed._placed[place] = start, size, Closing(), offset
    try:
        found = closed.read_at(0, file.size)
    except Closed:
        return
    assert found == expected


def test_a_handle_on_a_closed_reader_raises(virtual):
    file, context = virtual
    with VirtualReader(file, context) as reader:
        handle = Handle(reader)
        assert handle.read(4) == b"PAR1"
    with pytest.raises(Closed, match="closed"):
        handle.read(4)
