"""Writing `_txn`: what is committed reads back, in the places that QuestDB's protocol gives it."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow.errors import InvalidInput, NotFound
from windrow.questdb.txn import Partition, Txn, parse_txn, place_of, read_txn
from windrow.questdb.txn_writer import TxnWriter, create_txn, empty_txn
from windrow.storage.file_changes import Files

GOLDEN = Path(__file__).parents[1] / "data/golden/questdb-tables"
CASES = sorted(path.parent.name for path in GOLDEN.glob("*/_txn"))
PARQUET = 1 << 61


class Recorder(Files):
    def __init__(self) -> None:
        self.calls: list[tuple[str, int, int]] = []

    def write_at(self, path: Path, offset: int, data: bytes) -> None:
        self.calls.append(("write", offset, len(data)))
        super().write_at(path, offset, data)

    def sync(self, path: Path) -> None:
        self.calls.append(("sync", 0, 0))
        super().sync(path)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    create_txn(tmp_path / "_txn", empty_txn(symbol_columns=1))
    return tmp_path / "_txn"


def state(txn: Txn, rows: int, partitions: int = 1) -> Txn:
    table = tuple(Partition(at, 5 if at < partitions - 1 else rows, -1, 100, PARQUET) for at in range(partitions))
    return replace(txn, transient_rows=rows, fixed_rows=5 * (partitions - 1), max_timestamp=rows, partitions=table)


def test_a_new_file_is_record_a_of_version_0(path: Path) -> None:
    txn = read_txn(path)
    assert (txn.version, txn.partitions, txn.symbols) == (0, (), ((0, 0),))
    assert place_of(path.read_bytes()[:64], "_txn") == (0, (64, 8, 0))
    assert not list(path.parent.glob("*.partial"))


def test_a_commit_reads_back(path: Path) -> None:
    writer = TxnWriter(path)
    committed = writer.commit(state(writer.current, 7, 3))
    assert committed.version == committed.txn == 1
    assert read_txn(path) == replace(committed, checksum=read_txn(path).checksum)
    assert TxnWriter(path).current == read_txn(path)


def test_a_commit_writes_its_record_then_its_place_then_the_version(path: Path) -> None:
    recorder = Recorder()
    writer = TxnWriter(path, recorder)
    writer.commit(state(writer.current, 7))
    size = 132 + 8 + 4 + 32
    assert recorder.calls == [("write", 208, size), ("write", 32, 12), ("sync", 0, 0), ("write", 0, 8), ("sync", 0, 0)]


def test_records_take_turns_and_never_overlap(path: Path) -> None:
    writer, before = TxnWriter(path), (0, 0)
    for number in range(1, 40):
        writer.commit(state(writer.current, number, 1 + number % 7))
        _, place = place_of(path.read_bytes()[:64], "_txn")
        assert place.end <= before[0] or place.offset >= before[1]
        before = place.offset, place.end
    assert path.stat().st_size < 1500


def test_a_fast_commit_patches_the_record_before_last(path: Path) -> None:
    recorder = Recorder()
    writer = TxnWriter(path, recorder)
    for rows in (1, 2):
        writer.commit(state(writer.current, rows))
    places = path.read_bytes()[8:64]
    recorder.calls.clear()
    committed = writer.commit_fast(replace(state(writer.current, 9), seq_txn=4, symbols=((6, 7),)))
    assert [call for call, _, _ in recorder.calls] == ["write", "sync", "write", "sync"]
    assert path.read_bytes()[8:64] == places
    read = read_txn(path)
    assert (read.version, read.transient_rows, read.max_timestamp, read.seq_txn) == (3, 9, 9, 4)
    assert read.symbols == ((6, 7),)
    assert read.partitions == committed.partitions


@pytest.mark.parametrize("change", ["first", "partition", "word", "structure"])
def test_a_fast_commit_of_more_writes_a_whole_record(path: Path, change: str) -> None:
    writer = TxnWriter(path)
    if change != "first":
        writer.commit(state(writer.current, 1))
        writer.commit(state(writer.current, 2))
    new = state(writer.current, 9, 2 if change == "partition" else 1)
    if change == "word":
        new = replace(new, partitions=(replace(new.partitions[0], word=101),))
    if change == "structure":
        new = replace(new, structure_version=1)
    committed = writer.commit_fast(new)
    assert read_txn(path).partitions == committed.partitions
    assert read_txn(path).structure_version == new.structure_version


@pytest.mark.parametrize("case", CASES)
def test_a_golden_table_takes_further_commits(case: str, tmp_path: Path) -> None:
    path = tmp_path / "_txn"
    path.write_bytes((GOLDEN / case / "_txn").read_bytes())
    old = read_txn(path)
    writer = TxnWriter(path)
    for commit in (writer.commit, writer.commit_fast, writer.commit_fast):
        commit(replace(writer.current, seq_txn=writer.current.seq_txn + 1))
    new = read_txn(path)
    assert (new.version, new.seq_txn) == (old.version + 3, old.seq_txn + 3)
    assert (new.partitions, new.symbols) == (old.partitions, old.symbols)


@pytest.mark.parametrize("case", CASES)
def test_a_golden_record_is_written_as_questdb_wrote_it(case: str, tmp_path: Path) -> None:
    data, path = (GOLDEN / case / "_txn").read_bytes(), tmp_path / "_txn"
    create_txn(path, parse_txn(data, case))
    _, theirs = place_of(data[:64], case)
    ours = bytearray(path.read_bytes()[64:])
    record = bytearray(data[theirs.offset : theirs.end])
    for part in (ours, record):
        part[116:128] = bytes(12)
    # The row count of the last partition may be old in QuestDB's table; readers do not use it.
    ours[-24:-18] = record[-24:-18]
    assert ours == record


@given(st.lists(st.tuples(st.integers(1, 6), st.integers(0, 2**44 - 1), st.booleans()), max_size=12))
def test_any_sequence_of_commits_reads_back(tmp_path_factory: pytest.TempPathFactory, steps: list) -> None:
    path = tmp_path_factory.mktemp("txn") / "_txn"
    create_txn(path, empty_txn())
    writer = TxnWriter(path)
    for partitions, rows, fast in steps:
        new = (writer.commit_fast if fast else writer.commit)(state(writer.current, rows, partitions))
        read = read_txn(path)
        assert replace(read, checksum=0) == replace(new, checksum=0)


def test_other_rows_than_the_last_partitions_are_refused(path: Path) -> None:
    writer = TxnWriter(path)
    with pytest.raises(InvalidInput, match="3 transient rows, the last partition has 7"):
        writer.commit(replace(state(writer.current, 7), transient_rows=3))
    with pytest.raises(InvalidInput, match="out of range"):
        writer.commit(replace(writer.current, seq_txn=2**63))
    assert read_txn(path).version == 0


def test_a_missing_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="create the table first"):
        TxnWriter(tmp_path / "_txn")
