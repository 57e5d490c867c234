"""Remote reads verify the pages that they fetch: one bad answer is fetched again, a damaged file is an error."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.proofs.worlds import visible

import windrow
from windrow.errors import Damaged
from windrow.reading.read_context import ReadContext
from windrow.reading.virtual_reader import VirtualReader
from windrow.storage import open_store
from windrow.storage.wrapping import StoreWrapper

ROWS = 40_000


class Flipping(StoreWrapper):
    """A store that changes one byte of an object in its first answers."""

    place, times = 0, 0

    def around(self, call, run):
        found = run()
        if call.verb != "get_ranges":
            return found
        pieces = [bytearray(piece) for piece in found]
        for wanted, piece in zip(call.ranges, pieces, strict=True):
            if wanted.start <= self.place < wanted.end and self.times:
                piece[self.place - wanted.start] ^= 16
                self.times -= 1
        return [bytes(piece) for piece in pieces]

    def around_list(self, call, listing):
        return listing


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A table of one split, and what a plan for some of its rows reads."""
    rng = np.random.default_rng(0)
    with windrow.connect(tmp_path_factory.mktemp("verify") / "lake", cache=None) as lake:
        table = lake.create_table("events", sort="host|timestamp/V2", window="15m", mirror=False)
        times = pa.array(1_700_000_100_000_000 + rng.integers(0, 10**8, ROWS), pa.timestamp("us", tz="UTC"))
        hosts = [f"h{n:03d}" for n in rng.integers(0, 300, ROWS)]
        table.ingest(pa.table({"host": hosts, "timestamp": times, "value": rng.normal(size=ROWS)}))
        (split,) = visible(table)
        data = lake.context.store.get(split.key)
        yield split, data, {"some rows": table.plan("host = 'h007'").virtual[0], "all rows": table.plan().virtual[0]}


@pytest.fixture
def remote(written):
    """The same file in a store that is not local."""
    split, data, plans = written
    store = Flipping(open_store("memory://"))
    store.put(split.key, data)
    return (
        store,
        split,
        {
            name: replace(virtual, files=[replace(file, store=store) for file in virtual.files])
            for name, virtual in plans.items()
        },
    )


def read(virtual, store, **options):
    with VirtualReader(virtual, ReadContext("lake", store, **options)) as reader:
        return [reader.read_at(address, length) for address, length in virtual.chunks.tolist()], reader.counts


def body_of(virtual, number=-1):
    """A byte in the last page of a chunk, by its place in the file."""
    address, length = virtual.chunks.tolist()[number]
    (segment,) = [
        each for each in virtual.segments if each.address <= address + length - 1 < each.address + each.length
    ]
    return segment.offset + address + length - 1 - segment.address


@pytest.mark.parametrize("plan", ["some rows", "all rows"])
class TestAPageThatIsNotWhatWasWritten:
    def test_comes_right_when_it_is_fetched_again(self, remote, plan):
        store, _, plans = remote
        expected, clean = read(plans[plan], store)
        store.place, store.times = body_of(plans[plan]), 1
        found, counts = read(plans[plan], store)
        assert found == expected
        assert (store.times, counts.requests) == (0, clean.requests + 1)

    def test_is_an_error_that_names_the_file_when_it_stays(self, remote, plan):
        store, split, plans = remote
        for number in range(len(plans[plan].chunks)):
            store.place, store.times = body_of(plans[plan], number), 10**6
            with pytest.raises(Damaged, match=rf"{split.split_id}.parquet: a page is not what was written"):
                read(plans[plan], store)


def test_any_changed_byte_of_a_needed_page_body_is_noticed_however_requests_are_cut(remote):
    store, _, plans = remote
    rng = np.random.default_rng(3)
    starts, lengths = plans["all rows"].chunks.T
    for place in rng.integers(0, int(lengths.max()) - 100, 20).tolist():
        store.place = int(starts[np.argmax(lengths)]) - plans["all rows"].segments[0].address + 100 + place
        store.place += plans["all rows"].segments[0].offset
        store.times = 10**6
        with pytest.raises(Damaged):
            read(plans["all rows"], store, in_flight=2**20)


def test_a_file_of_another_writer_is_not_judged(remote):
    store, split, plans = remote
    virtual = plans["all rows"]
    foreign = replace(virtual, files=[replace(file, identity=store.head(split.key).identity) for file in virtual.files])
    store.place, store.times = body_of(foreign), 10**6
    read(foreign, store)


@pytest.mark.s3
def test_a_query_over_a_bucket_with_a_damaged_split_is_an_error(tmp_path, s3_url, s3_options):
    place = {"metastore": f"sqlite:///{tmp_path}/windrow.db", "store_options": s3_options}
    with windrow.connect(f"{s3_url}/lake", **place) as lake:
        table = lake.create_table("events", sort="host|timestamp/V2", window="15m", mirror=False)
        times = pa.array([1_700_000_100_000_000 + n for n in range(100)], pa.timestamp("us", tz="UTC"))
        table.ingest(pa.table({"host": ["h"] * 100, "timestamp": times, "value": np.random.default_rng(0).random(100)}))
        (split,) = visible(table)
        data = bytearray(lake.context.store.get(split.key))
        chunk = pq.read_metadata(pa.BufferReader(bytes(data))).row_group(0).column(2)
        data[(chunk.dictionary_page_offset or chunk.data_page_offset) + chunk.total_compressed_size - 1] ^= 1
        lake.context.store.put(split.key, bytes(data))
        with pytest.raises(Damaged, match=f"{split.split_id}.parquet"):
            lake.sql("select sum(value) from events").to_arrow()
        assert lake.sql("select count(host) as n from events").to_arrow().to_pylist() == [{"n": 100}]
