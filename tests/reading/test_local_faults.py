"""Faults under a query of files on this machine, for every way to read them: the right rows, or an error with a name.

The store is a folder behind a wrapper, with everything that a folder can do. Each fault strikes the first call that it
can, then the second, and so on, until a query got by without one.
"""

from __future__ import annotations

import os
import shutil
from collections import Counter
from dataclasses import replace
from itertools import count
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from tests.reading.samples import parquet, put_file

from windrow.engines.duckdb.engine import DuckDBEngine, Relation
from windrow.errors import WindrowError
from windrow.model.sources import SourceKind
from windrow.planning.data_files import DataFile
from windrow.planning.scan_context import ScanContext
from windrow.planning.scan_plan import plan_files
from windrow.reading.cells import Cells
from windrow.reading.forcing import Forcing
from windrow.reading.read_context import ReadContext
from windrow.storage import FILE_VERBS, LocalStore
from windrow.storage.wrapping import StoreWrapper
from windrow.testing import Fault, FaultKind, FaultyStore

FILES, ROWS = 3, 1200
QUERY = "select sum(number), count(*), max(text) from t where number >= 100 and number < 900"
FOLDER = "partition_id=0/window_start=60"


def table_of(number, seed=0):
    numbers = np.arange(ROWS) * (1 + seed)
    return pa.table({"number": numbers, "text": [f"{number} {seed} {n:05d}" for n in range(ROWS)]})


def answer_over(tables):
    chosen = [table.slice(100, 800) if table["number"][1].as_py() == 1 else None for table in tables]
    assert None not in chosen
    total = sum(sum(table["number"].to_pylist()) for table in chosen)
    return total, sum(len(table) for table in chosen), max(max(table["text"].to_pylist()) for table in chosen)


WAYS = {
    "opened files": {"mutable": True},
    "read at once": {"mutable": False},
    "decoded": {"mutable": False, "decoded": True},
    "plain paths": {"mutable": True, "plain": True},
    "made sidecars": {"mutable": True, "sidecar": False},
    "sidecars put beside": {"mutable": True, "sidecar": False, "beside": True},
}
"""What brings a query to a way of reading, and what it is of the verbs of files that this way then uses."""
USED = {
    "opened files": {"path", "open", "read_at", "check"},
    "read at once": {"path", "read_each"},
    "decoded": {"path", "read_each"},
    "plain paths": {"path"},
    "made sidecars": {"open", "read_at", "check"},
    "sidecars put beside": {"open", "read_at", "check"},
}


class Lake:
    """Some files in a folder, and the same ones read through a wrapper in one of the ways."""

    def __init__(self, folder, way, *, mutable, sidecar=True, plain=False, decoded=False, beside=False):
        self.way, self.store = way, LocalStore(folder)
        self.plain, self.decoded, self.beside = plain, decoded, beside
        self.tables = [table_of(number) for number in range(FILES)]
        options = {"row_group_size": 300, "max_rows_per_page": 50, "write_page_index": True, "compression": "none"}
        self.files = [
            put_file(self.store, f"{FOLDER}/{n}.parquet", parquet(each, **options), sidecar=sidecar, mutable=mutable)
            for n, each in enumerate(self.tables)
        ]
        self.expected = answer_over(self.tables)

    def ask(self, store):
        """Answer the query through a store; twice, where the second time goes another way."""
        files = [
            DataFile(store, each.key, each.identity, each.sidecar, describes_beside=self.beside) for each in self.files
        ]
        context = ScanContext("lake", store, threads=1)

        def plan(question):
            return plan_files(context, files, predicate=question.predicate, columns=question.columns)

        relation = Relation(self.tables[0].schema, plan)
        cells = Cells(2**24) if self.decoded else None
        forcing = Forcing(SourceKind.PATHS) if self.plain else None
        engine = DuckDBEngine(ReadContext("lake", store, decoded=cells, forcing=forcing))
        try:
            for _ in range(1 + self.decoded):
                [row] = engine.sql(QUERY, {"t": lambda: relation}).to_dict()
            return tuple(row.values())
        finally:
            engine.close()


@pytest.fixture(params=WAYS)
def lake(request, tmp_path):
    return Lake(tmp_path / "lake", request.param, **WAYS[request.param])


def outcome(lake, store, outcomes):
    """The right rows or an error that names a file; anything else fails at once."""
    try:
        found = lake.ask(store)
    except WindrowError as error:
        found = error
    if isinstance(found, WindrowError):
        assert FOLDER in str(found), f"{lake.way}: no file is named by {found!r}"
        outcomes[type(found).__name__] += 1
    else:
        assert found == lake.expected, lake.way
        outcomes["answer"] += 1


def test_a_wrapped_folder_is_read_as_a_folder_is(lake):
    counted = FaultyStore(lake.store, paths=True)
    assert lake.ask(lake.store) == lake.ask(counted) == lake.expected
    assert {verb for verb in FILE_VERBS if counted.calls[verb]} == USED[lake.way]


def test_without_paths_the_rows_are_the_same(lake):
    counted = FaultyStore(lake.store)
    assert lake.ask(counted) == lake.expected
    assert not counted.calls["path"]


@pytest.mark.parametrize("kind", [FaultKind.ERROR, FaultKind.LOST, FaultKind.MISSING, FaultKind.SHORT])
@pytest.mark.parametrize("paths", [True, False], ids=["paths", "no paths"])
def test_any_read_may_fail(lake, kind, paths, capsys):
    outcomes, struck = Counter(), Counter()
    for nth in count(1):
        store = FaultyStore(lake.store, Fault(kind, nth), paths=paths)
        outcome(lake, store, outcomes)
        struck += store.struck
        if not store.fired:
            break
    with capsys.disabled():
        print(f"\n  {lake.way}, {kind}: {dict(outcomes)}; struck {dict(struck)}")
    can = {verb for verb in USED[lake.way] if Fault(kind).can_strike(SimpleNamespace(verb=verb))}
    assert all(struck[verb] for verb in can - (set() if paths else {"path"}))
    assert outcomes["answer"] >= 1


@pytest.mark.parametrize("kind", [FaultKind.ERROR, FaultKind.MISSING, FaultKind.SHORT])
def test_all_reads_of_a_kind_may_fail(lake, kind):
    """A file that is gone, or a disk that is broken, fails every read of it and not only one."""
    for verb in (*FILE_VERBS, "get_ranges", "head"):
        outcome(lake, FaultyStore(lake.store, Fault(kind, verb=verb, onwards=True), paths=True), Counter())
    outcomes, store = Counter(), FaultyStore(lake.store, Fault(kind, onwards=True), paths=True)
    outcome(lake, store, outcomes)
    # What is read by a plain path alone can be short without the wrapper.
    assert bool(outcomes["answer"]) == (not store.fired)


class Harmed(StoreWrapper):
    """Harms a file on the disk itself when the calls have come so far."""

    def __init__(self, store, nth, harm):
        super().__init__(store, paths=True)
        self.calls, self.nth, self.harm, self.struck = 0, nth, harm, ""
        self.struck_calls = []

    def around(self, call, run):
        self.calls += 1
        if self.calls == self.nth:
            self.struck = call.verb
            self.struck_calls.append(call)
            self.harm()
        return run()

    def around_list(self, call, listing):
        return listing


def replaced(path):
    """Another file takes the name, with other rows that the query would count."""
    other = path.with_name("other")
    other.write_bytes(parquet(table_of(7, seed=1), row_group_size=300, compression="none"))
    other.replace(path)


def cut(path):
    os.truncate(path, path.stat().st_size // 2)


def emptied(path):
    os.truncate(path, 0)


def overwritten(path):
    """The same file gets other bytes, as many as before; its time tells."""
    path.write_bytes(bytes(path.stat().st_size))


def folder_gone(path):
    shutil.rmtree(path.parent)


def folder_replaced(path):
    """A file is where the folder was."""
    shutil.rmtree(path.parent)
    path.parent.write_bytes(b"")


def forbidden(path):
    """A folder stands where the file was, which can be opened and not read."""
    path.unlink()
    path.mkdir()


HARMS = {
    "deleted": lambda path: path.unlink(),
    "replaced": replaced,
    "cut": cut,
    "emptied": emptied,
    "overwritten": overwritten,
    "a folder": forbidden,
    "its folder deleted": folder_gone,
    "its folder a file": folder_replaced,
}


@pytest.mark.parametrize("harm", HARMS)
@pytest.mark.parametrize("which", ["{}.parquet", "_{}.pm"])
def test_a_file_may_be_harmed_at_any_moment(tmp_path, harm, which, capsys):
    outcomes, struck = Counter(), Counter()
    for way, options in WAYS.items():
        if which.endswith(".pm") and not options.get("sidecar", True):
            continue
        if harm == "overwritten" and not options["mutable"] and which.endswith(".parquet"):
            # Of a file that never changes nothing but its size is looked at.
            continue
        for nth in count(1):
            place = tmp_path / way / str(nth)
            lake = Lake(place, way, **options)
            path = place / FOLDER / which.format(1)
            store = Harmed(lake.store, nth, lambda path=path: HARMS[harm](path))
            outcome(lake, store, outcomes)
            shutil.rmtree(place)
            struck[store.struck] += 1
            if not store.struck:
                break
    with capsys.disabled():
        print(f"\n  {which.format('')} {harm}: {dict(outcomes)}; harmed before {dict(struck)}")
    verbs = {"path", "open", "read_at", "check"} | ({"read_each"} if harm != "overwritten" else set())
    assert all(struck[verb] for verb in verbs)
    assert outcomes["answer"]
    assert which.endswith(".pm") or len(outcomes) > 1


FAST_PATHS = {
    "sidecars",
    "sidecars made",
    "local spans",
    "decoded rows",
    "virtual reader",
    "plain paths",
}


def fast_path(way, call):
    """Which way to be fast a call belongs to."""
    if call.key.endswith(".pm") and call.verb != "put":
        return "sidecars"
    if call.verb in ("put", "get_ranges"):
        return "sidecars made"
    if call.verb == "read_each":
        return "decoded rows" if way == "decoded" else "local spans"
    return "plain paths" if call.verb in ("path", "head") else "virtual reader"


KINDS = [Fault(FaultKind.ERROR), Fault(FaultKind.MISSING), Fault(FaultKind.SHORT), Fault(FaultKind.FULL)]


@pytest.mark.parametrize("every", [pytest.param(3, id="a third"), pytest.param(1, marks=pytest.mark.long, id="all")])
def test_faults_of_every_fast_path_give_no_wrong_row(tmp_path, capsys, every):
    """I/O errors, missing and short files, a full disk, a folder that vanishes: all are counted by what they struck."""
    struck, outcomes = {path: Counter() for path in FAST_PATHS}, Counter()

    def ask(lake, store, fault):
        outcome(lake, store, outcomes)
        for call in store.struck_calls:
            struck[fast_path(lake.way, call)][fault] += 1
        return bool(store.struck_calls)

    for way, options in WAYS.items():
        lake = Lake(tmp_path / way, way, **options)
        for fault in KINDS:
            nths = count(1, every)
            while ask(clean(lake), FaultyStore(lake.store, replace(fault, nth=next(nths)), paths=True), fault.kind):
                pass
        for nth in count(1, every):
            gone = Lake(tmp_path / f"{way} {nth}", way, **options)
            path = tmp_path / f"{way} {nth}" / FOLDER / "1.parquet"
            if not ask(gone, Harmed(gone.store, nth, lambda path=path: folder_gone(path)), "folder gone"):
                break
    with capsys.disabled():
        for path, counts in struck.items():
            print(f"\n  {path}: {counts.total()} faults, {dict(counts)}", end="")
        print(f"\n  {dict(outcomes)}")
    assert all(counts["error"] and counts["folder gone"] for counts in struck.values())
    assert struck["sidecars made"]["full"]


def clean(lake):
    """A lake without the sidecars that were put beside its files."""
    if lake.beside:
        for path in (lake.store.root / FOLDER).glob("*.pm"):
            path.unlink()
    return lake
