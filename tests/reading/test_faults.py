"""Faults under a running query: the right answer by a slower way, or a clear error. Never a wrong row."""

from __future__ import annotations

import random
import shutil
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from tests.reading.samples import parquet
from tests.reading.test_requests import Reader

from windrow.cache import CacheSettings, default_cache
from windrow.errors import WindrowError
from windrow.testing import Misbehaviour

ROWS = 3000


def file_of(seed):
    random = np.random.default_rng(seed)
    table = pa.table(
        {"key": np.arange(ROWS), "value": random.integers(0, 1000, ROWS), "pad": [f"{n:030d}" for n in range(ROWS)]}
    )
    return table, parquet(table, compression="none", use_dictionary=False, row_group_size=500)


SERVER_FAULTS = {
    "breaks off": Misbehaviour.SHORT,
    "hangs up": Misbehaviour.HANG_UP,
    "has no ranges": Misbehaviour.NO_RANGES,
    "forbids": 403,
    "does not find": 404,
    "is overloaded": 503,
    "is slow": 0.02,
}


class Outcomes:
    """What became of queries, counted; an answer that is wrong fails at once."""

    def __init__(self):
        self.counts = Counter()

    def ask(self, reader, query, allowed):
        try:
            found = reader.ask(query)
        except WindrowError:
            self.counts["error"] += 1
            return
        assert found in allowed, f"{query}: {found} is none of {allowed}"
        self.counts["answer"] += 1


def sums(*tables):
    return [[(int(table["value"].to_numpy()[100:1500].sum()), 1400)] for table in tables]


QUERY = "select sum(value), count(*) from '{}' where key >= 100 and key < 1500"
OPTIONS = {"max_retries": "0", "timeout": "5s"}


@pytest.mark.parametrize("fault", SERVER_FAULTS)
@pytest.mark.parametrize("times", [15, pytest.param(100, marks=pytest.mark.long)])
def test_a_server_that_misbehaves_at_random(range_server, tmp_path, fault, times, capsys):
    draw, outcomes = random.Random(fault), Outcomes()
    table, data = file_of(0)
    range_server.objects["/a.parquet"] = data
    url = f"{range_server.url}/a.parquet"
    reader = Reader(tmp_path, OPTIONS, cache=default_cache(CacheSettings(disk_bytes=0)))
    reader.files._open_remote = impatient
    for _ in range(times):
        reader.cache.invalidate_all()
        reader.parsed.invalidate_all()
        struck = draw.randrange(4)
        seen = iter(range(10**6))

        def strike(_, seen=seen, struck=struck):
            return SERVER_FAULTS[fault] if next(seen) >= struck else None

        range_server.behave = strike
        outcomes.ask(reader, QUERY.format(url), sums(table))
    range_server.behave = lambda _: None
    outcomes.ask(reader, QUERY.format(url), sums(table))
    with capsys.disabled():
        print(f"\n  a server that {fault}: {dict(outcomes.counts)}")
    assert outcomes.counts["answer"] >= 1
    if fault in ("has no ranges", "is slow"):
        assert outcomes.counts["error"] == 0
    reader.engine.close()


def impatient(url, options):
    """A store that asks three times, without waiting."""
    from windrow.storage import PatientStore, open_store

    return PatientStore(open_store(url, options=options), sleep=lambda _: None, hedge_after=None)


@pytest.mark.parametrize("times", [15, pytest.param(100, marks=pytest.mark.long)])
def test_a_file_that_is_replaced_or_truncated_while_it_is_read(range_server, tmp_path, times, capsys):
    draw, outcomes = random.Random(1), Outcomes()
    files = [file_of(seed) for seed in range(3)]
    url = f"{range_server.url}/a.parquet"
    reader = Reader(tmp_path, OPTIONS, cache=default_cache(CacheSettings(disk_bytes=0)))
    reader.files._open_remote = impatient
    for _ in range(times):
        range_server.objects["/a.parquet"] = draw.choice(files)[1]
        replaced = draw.randrange(1, 4)
        seen = iter(range(10**6))
        fresh = draw.choice(files)[1]
        other = fresh if draw.random() < 0.7 else fresh[: draw.randrange(len(fresh))]

        def swap(_, seen=seen, replaced=replaced, other=other):
            if next(seen) == replaced:
                range_server.objects["/a.parquet"] = other

        range_server.behave = swap
        outcomes.ask(reader, QUERY.format(url), sums(*(table for table, _ in files)))
    with capsys.disabled():
        print(f"\n  a file that is replaced: {dict(outcomes.counts)}")
    assert outcomes.counts["answer"] >= times // 4
    reader.engine.close()


FOLDER_FAULTS = {
    "is deleted": lambda folder, draw: shutil.rmtree(folder, ignore_errors=True),
    "has files cut": lambda folder, draw: damage(folder, draw, lambda data: data[: draw.randrange(len(data) + 1)]),
    "has bits flipped": lambda folder, draw: damage(folder, draw, lambda data: flip(data, draw)),
    "becomes a file": lambda folder, draw: (shutil.rmtree(folder, ignore_errors=True), folder.write_bytes(b"")),
}


def damage(folder, draw, change):
    for path in sorted(folder.glob("*")):
        if draw.random() < 0.7:
            path.write_bytes(change(path.read_bytes()))


def flip(data, draw):
    flipped = bytearray(data)
    if flipped:
        flipped[draw.randrange(len(flipped))] ^= 1 << draw.randrange(8)
    return bytes(flipped)


@pytest.mark.parametrize("fault", FOLDER_FAULTS)
@pytest.mark.parametrize("times", [10, pytest.param(100, marks=pytest.mark.long)])
def test_a_cache_folder_that_is_harmed_under_a_query(range_server, tmp_path, fault, times, capsys):
    draw, outcomes = random.Random(fault), Outcomes()
    table, data = file_of(0)
    range_server.objects["/a.parquet"] = data
    url = f"{range_server.url}/a.parquet"
    folder = tmp_path / "cache"
    for _ in range(times):
        if folder.is_file():
            folder.unlink()
        reader = Reader(folder, OPTIONS)
        struck = draw.randrange(3)
        seen = iter(range(10**6))

        def harm(_, seen=seen, struck=struck):
            if next(seen) == struck:
                FOLDER_FAULTS[fault](folder, draw)

        range_server.behave = harm
        for _ in range(2):
            outcomes.ask(reader, QUERY.format(url), sums(table))
        reader.engine.close()
    with capsys.disabled():
        print(f"\n  a cache folder that {fault}: {dict(outcomes.counts)}")
    assert outcomes.counts["error"] == 0
    assert outcomes.counts["answer"] == 2 * times
