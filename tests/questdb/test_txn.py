"""Reading `_txn`: every golden table as its manifest has it, safe reads under a writer, and clear errors."""

import json
import struct
import threading
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from windrow.errors import Damaged, Incompatible, NotFound, WindrowError
from windrow.questdb.txn import Partition, lag_checksum, parse_txn, place_of, read_txn
from windrow.questdb.txn_writer import TxnWriter, create_txn, empty_txn

GOLDEN = Path(__file__).parents[1] / "data/golden/questdb-tables"
CASES = {case["case"]: case for case in json.loads((GOLDEN / "manifest.json").read_text())}
FIELDS = {
    "version": "version",
    "txn": "txn",
    "transientRowCount": "transient_rows",
    "fixedRowCount": "fixed_rows",
    "minTimestamp": "min_timestamp",
    "maxTimestamp": "max_timestamp",
    "structureVersion": "structure_version",
    "dataVersion": "data_version",
    "partitionTableVersion": "partition_table_version",
    "columnVersion": "column_version",
    "truncateVersion": "truncate_version",
    "seqTxn": "seq_txn",
    "checksum": "checksum",
    "lagTxnCount": "lag_txn_count",
    "lagRowCount": "lag_rows",
    "lagMinTimestamp": "lag_min_timestamp",
    "lagMaxTimestamp": "lag_max_timestamp",
}


def golden(case: str = "o3-0") -> bytes:
    return (GOLDEN / case / "_txn").read_bytes()


@pytest.mark.parametrize("case", CASES)
def test_a_golden_file_reads_as_its_manifest(case: str) -> None:
    expected, txn = CASES[case]["txn"], read_txn(GOLDEN / case / "_txn")
    assert {theirs: getattr(txn, ours) for theirs, ours in FIELDS.items()} == {key: expected[key] for key in FIELDS}
    assert [list(symbol) for symbol in txn.symbols] == expected["symbols"]
    assert len(txn.partitions) * 32 == expected["partitionBytes"]
    assert txn == parse_txn(golden(case), case)


@pytest.mark.parametrize("case", CASES)
def test_a_golden_partition_reads_as_its_manifest(case: str) -> None:
    partitions = parse_txn(golden(case), case).partitions
    for partition, expected in zip(partitions, CASES[case]["partitions"], strict=False):
        assert partition.timestamp == expected["timestamp"]
        assert partition.rows == expected["rows"]
        assert partition.name_txn == expected["nameTxn"]
        assert partition.word == int(expected["word"], 16)
        assert partition.is_parquet == expected["parquet"]
        assert partition.parquet_generated == expected["parquetGenerated"]
        assert partition.read_only == expected["readOnly"]
        assert partition.squash_count == expected["squash"]
        assert partition.remote == expected["remote"]
        assert partition.parquet_size == (expected["value"] if expected["parquet"] else None)
        assert partition.seq_txn == (expected["value"] if expected["valid"] else None)


@pytest.mark.parametrize("case", CASES)
def test_the_lag_checksum_is_questdbs(case: str) -> None:
    txn = parse_txn(golden(case), case)
    lag = txn.lag_min_timestamp, txn.lag_max_timestamp, txn.txn, txn.seq_txn, txn.lag_rows, abs(txn.lag_txn_count)
    assert lag_checksum(*lag) == txn.checksum


PARQUET, ALL = 1 << 61, (1 << 64) - 1


@pytest.mark.parametrize(
    ("word", "flags", "size", "seq_txn", "remote"),
    [
        (0x1E34, PARQUET, 0x1E34, None, False),
        (0x1E34 | 1 << 63, PARQUET, 0x1E34, None, True),
        (0, PARQUET, None, None, False),
        (ALL, PARQUET, None, None, False),
        (7 | 1 << 62, 0, None, 7, False),
        (7, 0, None, None, False),
        (0, 0, None, None, False),
        (ALL, 0, None, None, False),
    ],
)
def test_a_version_word_has_one_reading(word: int, flags: int, size: int, seq_txn: int, remote: bool) -> None:
    partition = Partition(0, 1, -1, word, flags)
    assert (partition.parquet_size, partition.seq_txn, partition.remote) == (size, seq_txn, remote)


def test_the_last_partition_has_the_transient_rows() -> None:
    """The row count in the partition table may be old."""
    data = bytearray(golden())
    _, place = place_of(bytes(data[:64]), "_txn")
    struct.pack_into("<Q", data, place.end - 24, PARQUET | 1)
    last = parse_txn(bytes(data), "_txn").partitions[-1]
    assert last.rows == CASES["o3-0"]["txn"]["transientRowCount"]
    assert last.is_parquet


def damage(offset: int, code: str, value: int, *, in_record: bool = True) -> bytes:
    data = bytearray(golden())
    start = place_of(bytes(data[:64]), "_txn")[1].offset if in_record else 0
    struct.pack_into(code, data, start + offset, value)
    return bytes(data)


REFUSALS = {
    "an empty file": (b"", Damaged, "0 bytes, the header has 64"),
    "a short header": (golden()[:63], Damaged, "63 bytes, the header has 64"),
    "a cut record": (golden()[: place_of(golden()[:64], "_txn")[1].end - 1], Damaged, "the file is cut short"),
    "a negative version": (damage(0, "<q", -3, in_record=False), Damaged, "version -3 is negative"),
    "another version": (damage(0, "<q", 5, in_record=False), Damaged, "record B is of transaction 3, the version is 5"),
    "a record in the header": (damage(32, "<i", 8, in_record=False), Damaged, "record B at byte 8 overlaps"),
    "a place beyond the file": (damage(32, "<i", 5000, in_record=False), Damaged, "the file is cut short"),
    "a negative size": (damage(36, "<i", -8, in_record=False), Damaged, "-8 bytes of symbols"),
    "half a partition": (damage(40, "<i", 16, in_record=False), Damaged, "16 bytes of partitions"),
    "a huge size": (damage(40, "<i", 2**31 - 32, in_record=False), Damaged, "the file is cut short"),
    "more symbols": (damage(128, "<i", 2), Damaged, "2 symbols in the record, 8 bytes"),
    "more partitions": (damage(140, "<i", 128), Damaged, "128 bytes of partitions in the record, 96 in the header"),
    "unordered partitions": (damage(144, "<q", 2**62), Damaged, "partition 1 at"),
    "an unknown row flag": (damage(152, "<Q", 1 << 63 | 5), Incompatible, "unknown flag bit 63"),
    "an unknown word flag": (damage(168, "<Q", 1 << 57 | 5), Incompatible, "unknown flag bits in its version word"),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_a_damaged_file_is_refused(case: str, tmp_path: Path) -> None:
    data, error, message = REFUSALS[case]
    with pytest.raises(error, match=message) as parsed:
        parse_txn(data, "t/_txn")
    assert "t/_txn" in str(parsed.value)
    (tmp_path / "_txn").write_bytes(data)
    with pytest.raises(error, match=message):
        read_txn(tmp_path / "_txn", deadline=0.01)


def test_no_byte_of_a_file_crashes_the_parser() -> None:
    data = golden()
    used = place_of(data[:64], "_txn")[1].end
    for offset in range(used):
        for flip in (0x01, 0x80, 0xFF):
            changed = bytearray(data)
            changed[offset] ^= flip
            with suppress(WindrowError):
                parse_txn(bytes(changed), "_txn")


def test_a_missing_file_is_reported() -> None:
    with pytest.raises(NotFound, match="no such file"):
        read_txn("/nowhere/_txn")


def test_a_short_file_is_read_again_until_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "_txn"
    path.write_bytes(b"")
    writer = threading.Timer(0.05, path.write_bytes, [golden()])
    writer.start()
    assert read_txn(path).version == 3
    writer.join()


def test_reads_under_a_writer_are_commits(tmp_path: Path) -> None:
    """Every field of commit n is n; a torn read would mix them."""
    path, commits = tmp_path / "_txn", 300
    create_txn(path, empty_txn(symbol_columns=3))
    writer, done = TxnWriter(path), threading.Event()

    def write() -> None:
        for number in range(1, commits + 1):
            partitions = tuple(Partition(at, number, number, number, PARQUET) for at in range(1 + number % 5))
            state = replace(
                writer.current,
                transient_rows=number,
                seq_txn=number,
                max_timestamp=number,
                symbols=((number, number),) * 3,
                partitions=partitions,
            )
            (writer.commit_fast if number % 3 == 0 else writer.commit)(state)
        done.set()

    thread = threading.Thread(target=write)
    thread.start()
    seen = set()
    while not done.is_set():
        txn = read_txn(path)
        if txn.version:
            values = {txn.transient_rows, txn.seq_txn, txn.max_timestamp, *(v for pair in txn.symbols for v in pair)}
            values |= {value for p in txn.partitions for value in (p.rows, p.name_txn, p.word)}
            assert values == {txn.version}
            assert len(txn.partitions) == 1 + txn.version % 5
        seen.add(txn.version)
    thread.join()
    assert read_txn(path).version == commits
    assert len(seen) > 1
