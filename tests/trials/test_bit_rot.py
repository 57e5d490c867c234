"""A trial from outside: one bit of a lake is flipped. What changes an answer is found, and can be put right.

Answers are those of Windrow and of the deltalake package, before and after the flip. A flip may be harmless, may be an
error, or may change an answer: then a check by data finds it. After a repair the Delta table is equal to the table, or
the repair says what it could not do.
"""

from __future__ import annotations

import random
import shutil
import tempfile
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import deltalake
import pyarrow as pa
import pytest

import windrow
from windrow.errors import WindrowError

QUERIES = (
    "select * from metrics order by id",
    "select count(*), min(timestamp), max(timestamp), min(id), max(id) from metrics",
    "select service, count(*), sum(value), sum(size) from metrics group by service order by service",
    "select id, note from metrics where service = 's1' and timestamp >= '2026-01-01 00:20:00+00' order by id",
    "select id, value from metrics where id in (7, 77, 140) order by id",
    "describe metrics",
)
KINDS = ("split", "sidecar", "delta", "database")
START = datetime(2026, 1, 1, tzinfo=UTC)


def batch(number):
    ids = range(number * 60, number * 60 + 60)
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "service": [f"s{each % 3}" for each in ids],
            "timestamp": pa.array([START + timedelta(seconds=37 * each) for each in ids], pa.timestamp("us", "UTC")),
            # Sums are exact in any order.
            "value": [each / 8 for each in ids],
            "size": pa.array([None if each % 11 == 0 else each % 5 for each in ids], pa.int32()),
            "note": [None if each % 4 else f"note {each}" for each in ids],
        }
    )


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    """A lake with merged and unmerged splits and a Delta log with a checkpoint."""
    folder = tmp_path_factory.mktemp("rot") / "lake"
    with windrow.connect(folder, cache=None) as lake:
        table = lake.create_table("metrics", sort="service|timestamp/V2", window="1h", policy={"merge_factor": 2})
        for number in range(12):
            table.ingest(batch(number))
            if number in (5, 8):
                table.compact.run(threads=1)
        table.upkeep.gc.run(grace=0)
    return folder


def kind_of(path):
    if "_delta_log" in path.parts:
        return "delta"
    return {".parquet": "split", ".pm": "sidecar", ".db": "database"}.get(path.suffix)


def files_by_kind(folder):
    found = {kind: [] for kind in KINDS}
    for path in sorted(each for each in folder.rglob("*") if each.is_file() and each.stat().st_size):
        if kind_of(path) is not None:
            found[kind_of(path)].append(path.relative_to(folder))
    return found


def flip(path, draw):
    data = bytearray(path.read_bytes())
    place, bit = draw.randrange(len(data)), draw.randrange(8)
    data[place] ^= 1 << bit
    path.write_bytes(data)
    return f"{path.name} byte {place} of {len(data)}, bit {bit}"


def answer(ask):
    """An answer, or what kind of error there was: 'error' if it is one of Windrow's, its name if it is not."""
    try:
        return ask()
    except WindrowError:
        return "error"
    except Exception as error:
        return f"bare {type(error).__name__}"


def values_of(rows):
    """The rows as values of Python; times as numbers, since damaged ones may lie in years that Python does not have."""
    for place, column in enumerate(rows.schema):
        if pa.types.is_timestamp(column.type):
            rows = rows.set_column(place, column.name, rows[place].cast(pa.int64()))
    return rows.to_pylist()


def as_text(rows):
    return repr(sorted(repr(sorted(row.items())) for row in values_of(rows)))


def own_answers(folder):
    def all_answers():
        with windrow.connect(folder, cache=None, create=False) as lake:
            return [answer(lambda query=query: repr(values_of(lake.sql(query).to_arrow()))) for query in QUERIES]

    found = answer(all_answers)
    return found if isinstance(found, list) else [found] * len(QUERIES)


def delta_rows(folder, columns=None):
    """The rows that deltalake shows, with the columns that it takes from folder names, unless columns are named."""
    try:
        return as_text(deltalake.DeltaTable(str(folder / "metrics")).to_pyarrow_table(columns=columns))
    except BaseException as error:  # deltalake panics with errors of its own
        if isinstance(error, KeyboardInterrupt | SystemExit):
            raise
        return "delta error"


def table_rows(folder):
    with windrow.connect(folder, cache=None, create=False) as lake:
        return as_text(lake.sql("select * from metrics").to_arrow())


def check(folder, *, repair=False):
    """What a check by data reports: the findings, or 'refused' with the error of a lake that cannot be opened."""
    with windrow.connect(folder, cache=None, create=False) as lake:
        return lake.table("metrics").upkeep.check(data=True, repair=repair)


def is_changed(before, after):
    """Whether an answer is given, and is another one."""
    return after not in (before, "error", "delta error") and not after.startswith("bare")


def judge(folder, own_before, delta_before):
    """Return the class of a flip and what breaks a promise."""
    own, delta = own_answers(folder), delta_rows(folder)
    wrong = [f"bare error of a query: {each}" for each in own if each.startswith("bare")]
    changed = any(is_changed(*pair) for pair in zip(own_before, own, strict=True)) or is_changed(delta_before, delta)
    try:
        after = check(folder, repair=True)
        found, said = bool(after.findings or after.repaired), not after.sound
    except WindrowError as error:
        found = said = True
        if "windrow " not in str(error):
            wrong.append(f"refused without naming a command: {error}")
    except Exception as error:
        found = said = True
        wrong.append(f"check raised {type(error).__name__}: {error}")
    if changed and not found:
        wrong.append("an answer changed, and the check found nothing")
    if not said and delta_rows(folder) != delta_before:
        wrong.append("the repair was content, and the Delta table differs from the table")
    failed = own != own_before or delta != delta_before
    return "changed" if changed else "error" if failed else "harmless", found, wrong


SHARDS = [(16, 0), *(pytest.param(500, seed, marks=pytest.mark.long) for seed in range(1, 5))]


@pytest.mark.parametrize(("flips", "seed"), SHARDS)
def test_a_flipped_bit_that_changes_an_answer_is_found(original, flips, seed):
    draw, seen, wrong = random.Random(seed), Counter(), []
    own, delta, files = own_answers(original), delta_rows(original), files_by_kind(original)
    assert all(files[kind] for kind in KINDS)
    assert delta_rows(original, batch(0).column_names) == table_rows(original)
    assert check(original).sound
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as space:
        for number in range(flips):
            kind = KINDS[number % len(KINDS)]
            folder = Path(space) / f"lake{number}"
            shutil.copytree(original, folder)
            where = flip(folder / draw.choice(files[kind]), draw)
            effect, found, broken = judge(folder, own, delta)
            seen[kind, effect, "found" if found else "not found"] += 1
            wrong += [f"{kind}: {where}: {each}" for each in broken]
            shutil.rmtree(folder)
    print("\n" + "\n".join(f"{count:5} {' / '.join(each)}" for each, count in sorted(seen.items())))
    assert wrong == []
