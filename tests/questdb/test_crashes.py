"""A crash at any point of any change leaves the old state of a table or the new one, and the next writer goes on."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pytest
from tests.questdb.crash_states import Op, Recorder, Tree, crash_states, read_tree, write_tree
from tests.questdb.tables import DAY, NEVER, SCHEMA, content, plain, rows

from windrow.errors import NotFound, WindrowError
from windrow.questdb.store import PartitionStore, create_table
from windrow.storage.file_changes import Files

FEW, MANY = 64, 4096
"""Choices at one point of a crash: in every run, and in the long one."""


class Lazy(Files):
    """Forces nothing to the disk, which would only be slow."""

    def sync(self, path: Path) -> None:
        pass

    def sync_folder(self, path: Path) -> None:
        pass


COMMITTED = [*plain(rows(range(0, 40, 4))), *plain(rows([50, 54], "b"))]


def small(table: Path) -> None:
    create_table(table, SCHEMA, timestamp="ts", files=Lazy())
    with PartitionStore(table, NEVER, Lazy()) as store:
        store.append(rows(range(0, 40, 4)))
        store.append(rows([50, 54], "b"))


def died(table: Path) -> None:
    """A writer died between `_pm` and `_txn`."""
    small(table)
    before = (table / "_txn").read_bytes()
    with PartitionStore(table, NEVER, Lazy()) as store:
        store.append(rows(range(60, 90), "dead"))
    (table / "_txn").write_bytes(before)


def without_sidecar(table: Path) -> None:
    small(table)
    (table / "2024-01-01/_pm").unlink()


def repeated(times: list[int], tag: str, scale: int) -> pa.Table:
    """Rows of these times, each so many times, with texts that do not compress."""
    found, rng = rows([time for time in times for _ in range(scale)], tag), random.Random(scale)
    hosts = [f"{tag}{rng.randbytes(6 * (scale > 1)).hex()}" for _ in range(found.num_rows)]
    return found.set_column(1, "host", pa.array(hosts))


Change = Callable[[PartitionStore, int], object]
CHANGES: dict[str, tuple[Callable[[Path], None] | None, Change | None]] = {
    "append a row group": (small, lambda store, scale: store.append(repeated([60, 64, 68], "new", scale))),
    "replace a row group": (small, lambda store, scale: store.append(repeated([5, 6], "late", scale))),
    "replace and append": (small, lambda store, scale: store.append(repeated([1, 33, 51, 70], "late", scale))),
    "add a partition": (small, lambda store, scale: store.append(repeated([DAY, DAY + 1], "new", scale))),
    "change two partitions": (small, lambda store, scale: store.append(repeated([7, DAY], "new", scale))),
    "rewrite": (small, lambda store, _: store.rewrite()),
    "append after a writer died": (died, lambda store, scale: store.append(repeated([60], "new", scale))),
    "append without a sidecar": (without_sidecar, lambda store, scale: store.append(repeated([60], "new", scale))),
    "create a table": (None, None),
}


class Recorded(NamedTuple):
    """A change: what was before, its calls, and what readers see before and after it."""

    start: Tree
    ops: list[Op]
    old: object
    new: object

    def is_old(self, found: object) -> bool:
        """Whether readers see what was before. A table that could not be read fails in any way, or is repaired."""
        if not self.start:
            return isinstance(found, NotFound)
        return found == COMMITTED or (isinstance(self.old, WindrowError) and isinstance(found, WindrowError))


def seen(root: Path) -> object:
    """What readers see: all rows, or that there is no table that they can read."""
    try:
        return content(root / "t")
    except WindrowError as error:
        return error


def record(name: str, root: Path, scale: int = 1) -> Recorded:
    prepare, change = CHANGES[name]
    root.mkdir()
    if prepare is not None:
        prepare(root / "t")
    start, old = read_tree(root), seen(root)
    recorder = Recorder(root)
    if change is None:
        create_table(root / "t", SCHEMA, timestamp="ts", files=recorder)
    else:
        with PartitionStore(root / "t", NEVER, recorder) as store:
            change(store, scale)
    return Recorded(start, recorder.ops, old, seen(root))


def problem(root: Path, recorded: Recorded, made: int, tree: Tree) -> str | None:
    """What is wrong with a state after a crash, if anything: for readers, or for the next writer."""
    shutil.rmtree(root, ignore_errors=True)
    write_tree(root, tree)
    found = seen(root)
    is_good = found == recorded.new or (recorded.is_old(found) and made < len(recorded.ops))
    return later_problem(root, recorded) if is_good else f"{found!r} after {made} calls"


def later_problem(root: Path, recorded: Recorded) -> str | None:
    """What is wrong with that state for the next writer."""
    found = seen(root)
    try:
        if not recorded.start and isinstance(found, NotFound):
            create_table(root / "t", SCHEMA, timestamp="ts", files=Lazy())
        with PartitionStore(root / "t", NEVER, Lazy()) as store:
            before = store.txn.fixed_rows + store.txn.transient_rows
            store.append(rows([90], "next"))
    except WindrowError as error:
        return f"the next writer fails: {error}"
    after = seen(root)
    expected = [*found, *plain(rows([90], "next"))] if isinstance(found, list) else after
    if not isinstance(after, list) or sorted(after) != sorted(expected) or len(after) != before + 1:
        return f"{after!r} after one more append"
    return None if after == sorted(after, key=itemgetter(0)) else "rows that are not in order of time"


def check(name: str, tmp_path: Path, limit: int, scale: int = 1) -> None:
    recorded, count = record(name, tmp_path / "recorded", scale), 0
    for made, tree in crash_states(recorded.start, recorded.ops, limit):
        assert problem(tmp_path / "state", recorded, made, tree) is None
        count += 1
    print(f"{name}: {len(recorded.ops)} calls, {count} states")
    assert count > len(recorded.ops)


@pytest.mark.parametrize("name", CHANGES)
def test_a_crash_leaves_the_old_state_or_the_new_one(name: str, tmp_path: Path) -> None:
    check(name, tmp_path, FEW)


@pytest.mark.long
@pytest.mark.parametrize("name", CHANGES)
def test_any_crash_leaves_the_old_state_or_the_new_one(name: str, tmp_path: Path) -> None:
    check(name, tmp_path, MANY, scale=25)


@pytest.mark.parametrize("name", CHANGES)
def test_every_sync_is_needed(name: str, tmp_path: Path) -> None:
    """Without any one of them, some crash leaves a table that is neither old nor new, or loses a commit."""
    recorded = record(name, tmp_path / "recorded")
    # A table that cannot be read has only the name of its new sidecar to lose.
    kinds = (
        ("sync", "sync_folder")
        if not isinstance(recorded.old, WindrowError) or not recorded.start
        else ("sync_folder",)
    )
    syncs = [place for place, op in enumerate(recorded.ops) if op.kind in kinds]
    needless = []
    for place in syncs:
        without = recorded._replace(ops=recorded.ops[:place] + recorded.ops[place + 1 :])
        # What is missing shows late: the last states come first.
        states = reversed(list(crash_states(without.start, without.ops, FEW)))
        if all(problem(tmp_path / "state", without, made, tree) is None for made, tree in states):
            needless.append((place, recorded.ops[place]))
    print(f"{name}: {len(syncs)} syncs")
    assert not needless


def test_the_changes_are_what_they_are_called(tmp_path: Path) -> None:
    """The calls of each change: in place, or in a new folder and then without the old one."""
    grown = record("append a row group", tmp_path / "append")
    kinds = [(op.kind, Path(op.path).name) for op in grown.ops]
    assert kinds == [
        ("write", "data.parquet"),
        ("sync", "data.parquet"),
        ("write", "_pm"),
        ("sync", "_pm"),
        ("write", "_pm"),
        ("sync", "_pm"),
        ("write", "_txn"),
        ("write", "_txn"),
        ("sync", "_txn"),
        ("write", "_txn"),
        ("sync", "_txn"),
    ]
    rewritten = record("rewrite", tmp_path / "rewrite")
    assert {op.path for op in rewritten.ops if op.kind == "make_folder"} == {"t/2024-01-01.3"}
    assert [op.path for op in rewritten.ops if op.kind == "remove_folder"] == ["t/2024-01-01"]
    assert rewritten.ops[-1].kind == "remove_folder"
    repaired = record("append without a sidecar", tmp_path / "repair")
    assert [op.path for op in repaired.ops if op.kind == "rename"] == ["t/2024-01-01/_pm.partial"]
    dead = record("append after a writer died", tmp_path / "dead")
    assert [op.kind for op in dead.ops][:2] == ["truncate", "write"]
