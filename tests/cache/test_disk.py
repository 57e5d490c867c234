"""The cache on disk: shared, bounded, and whatever happens to its folder, the right bytes."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from windrow.cache import CacheKey, CacheKind, DiskCache
from windrow.errors import InvalidInput


def never(key):
    pytest.fail(f"{key} is loaded again")


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "not" / "there yet"


def test_what_one_cache_loads_another_one_on_the_folder_serves(folder, key):
    first, second = DiskCache(folder, 10_000), DiskCache(folder, 10_000)
    assert first.get(key(), lambda asked: b"value") == b"value"
    assert second.get(key(), never) == b"value"
    assert second.metrics.counts(CacheKind.DEFAULT).hits == 1
    assert first.size() == 1


def test_identities_are_told_apart(folder, key):
    cache = DiskCache(folder, 10_000)
    cache.put(key(identity="old"), b"old")
    assert cache.get(key(identity="new"), lambda asked: b"new") == b"new"


def test_what_is_forgotten_is_loaded_again(folder, key):
    cache = DiskCache(folder, 10_000)
    cache.put(key(), b"old")
    cache.invalidate(key())
    assert cache.get(key(), lambda asked: b"new") == b"new"
    cache.invalidate_all()
    assert cache.size() == 0


def test_a_load_under_way_is_not_kept_when_its_key_is_invalidated(folder, key):
    cache = DiskCache(folder, 10_000)

    def supply(asked):
        cache.invalidate(asked)
        return b"old"

    assert cache.get(key(), supply) == b"old"
    assert cache.size() == 0


DAMAGES = {
    "a bit flipped": lambda data: data[:-1] + bytes([data[-1] ^ 1]),
    "cut short": lambda data: data[:-3],
    "emptied": lambda data: b"",
    "another file": lambda data: b"something else entirely",
    "its head flipped": lambda data: bytes([data[0] ^ 1]) + data[1:],
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_bytes_are_never_served(folder, key, damage):
    cache = DiskCache(folder, 10_000)
    cache.put(key(), b"value")
    [file] = folder.iterdir()
    file.write_bytes(DAMAGES[damage](file.read_bytes()))
    assert cache.get(key(), lambda asked: b"loaded") == b"loaded"
    assert cache.metrics.counts(CacheKind.DEFAULT).failures == 1
    assert cache.get(key(), never) == b"loaded"


def test_a_flipped_bit_in_any_byte_is_noticed(folder, key):
    cache = DiskCache(folder, 10_000)
    cache.put(key(), b"value")
    [file] = folder.iterdir()
    whole = file.read_bytes()
    for place in range(len(whole)):
        flipped = bytearray(whole)
        flipped[place] ^= 1 << place % 8
        file.write_bytes(flipped)
        assert cache.get(key(), lambda asked: b"loaded") == b"loaded", f"byte {place}"
        file.write_bytes(whole)


def test_the_file_of_another_key_is_not_served(folder, key):
    cache = DiskCache(folder, 10_000)
    cache.put(key(1), b"one")
    [file] = folder.iterdir()
    shutil.copy(file, cache._path(key(2)))
    assert cache.get(key(2), lambda asked: b"two") == b"two"


def test_a_folder_that_is_taken_away_is_made_again(folder, key):
    cache = DiskCache(folder, 10_000)
    cache.put(key(), b"value")
    shutil.rmtree(folder)
    assert cache.get(key(), lambda asked: b"loaded") == b"loaded"
    assert cache.get(key(), never) == b"loaded"


def test_a_folder_that_cannot_be_is_as_if_there_was_no_cache(tmp_path, key):
    (tmp_path / "file").write_bytes(b"")
    cache = DiskCache(tmp_path / "file" / "folder", 10_000)
    assert cache.get(key(), lambda asked: b"value") == b"value"
    assert cache.get(key(), lambda asked: b"again") == b"again"
    assert cache.metrics.total().failures >= 2
    assert cache.size() == 0


def test_a_full_disk_is_as_if_there_was_no_cache(folder):
    # The size that a process may write is a real limit of the kernel, unlike a disk, which no test should fill.
    program = (
        "import resource, signal, sys; from windrow.cache import CacheKey, DiskCache;"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN); resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000));"
        f"cache = DiskCache({str(folder)!r}, 10**6); key = CacheKey('file:///x', 0, 1);"
        "assert cache.get(key, lambda asked: bytes(5000)) == bytes(5000);"
        "assert cache.metrics.total().failures == 1, cache.metrics.total(); assert cache.weight == 0"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_the_folder_stays_in_its_budget_and_keeps_what_was_used_last(folder, key):
    now = [1_000_000.0]
    cache = DiskCache(folder, 20_000, clock=lambda: now[0])
    for number in range(100):
        now[0] += 100
        cache.put(key(number), bytes(1000))
        os.utime(cache._path(key(number)), (now[0], now[0]))
        cache.get(key(0), lambda asked: bytes(1000))
        assert cache.weight <= 20_000 * 17 // 16 + 1200
    assert cache.get(key(99), never)
    assert Path(cache._path(key(0))).exists(), "it was used all the time"
    assert not Path(cache._path(key(1))).exists()
    assert cache.metrics.total().evictions > 70
    assert cache.get(key(1), lambda asked: b"fetched again") == b"fetched again"


def test_what_crashes_leave_behind_is_swept(folder, key):
    cache = DiskCache(folder, 10_000)
    cache.put(key(), b"value")
    old, fresh = folder / "a.cache-1-1.tmp", folder / "b.cache-1-2.tmp"
    old.write_bytes(bytes(100))
    fresh.write_bytes(bytes(100))
    os.utime(old, (0, 0))
    cache.sweep()
    assert not old.exists()
    assert fresh.exists(), "somebody may still be writing it"


def test_a_negative_budget_is_refused(folder):
    with pytest.raises(InvalidInput, match="budget of -5"):
        DiskCache(folder, -5)


WORKER = """
import random, sys
from windrow.cache import CacheKey, DiskCache
folder, seed, turns = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
draw, cache = random.Random(seed), DiskCache(folder, 200_000)
for turn in range(turns):
    number = draw.randrange(60)
    expected = bytes([number]) * (1000 + 200 * number)
    found = cache.get(CacheKey(f"file:///{number}", 0, 1), lambda asked: expected)
    assert found == expected, f"wrong bytes of {number}"
    if turn % 50 == 49:
        cache.invalidate(CacheKey(f"file:///{number}", 0, 1))
    print(turn, flush=True)
"""


def worker(folder, seed, turns):
    command = [sys.executable, "-c", WORKER, str(folder), str(seed), str(turns)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


@pytest.mark.parametrize("kills", [6, pytest.param(100, marks=pytest.mark.long)])
def test_four_processes_share_a_folder_while_one_is_killed_at_random(folder, kills):
    draw = random.Random(8)
    survivors = [worker(folder, seed, 60 * kills) for seed in range(3)]
    for kill in range(kills):
        victim = worker(folder, 100 + kill, 10**6)
        victim.stdout.readline()  # it is at work
        time.sleep(draw.random() / 20)
        victim.send_signal(signal.SIGKILL)
        victim.communicate()
    for process in survivors:
        _, problem = process.communicate()
        assert process.returncode == 0, problem.decode()
    cache = DiskCache(folder, 200_000)
    for number in range(60):
        expected = bytes([number]) * (1000 + 200 * number)
        assert cache.get(CacheKey(f"file:///{number}", 0, 1), lambda asked, it=expected: it) == expected
    assert cache.metrics.total().failures == 0, "a crash leaves no half of a value under a name"
