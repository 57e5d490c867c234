"""Small files are read many at once, and windows are written as soon as no file to come has rows of them."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow.errors import Damaged
from windrow.ingest import share_rows
from windrow.ingest.files import deal_out, find_files, read_part, schema_of
from windrow.ingest.parquet_heads import heads_of
from windrow.ingest.share_rows import Progress, ShareRows
from windrow.ingest.spill import Spill, in_budget
from windrow.model.widening import plain
from windrow.runners.dealing import cut

HOUR = 3600
START = 1_700_002_800
KINDS = {
    "i8": pa.int8(),
    "u16": pa.uint16(),
    "i32": pa.int32(),
    "u32": pa.uint32(),
    "i64": pa.int64(),
    "u64": pa.uint64(),
    "f32": pa.float32(),
    "f64": pa.float64(),
    "date": pa.date32(),
    "time": pa.time64("us"),
    "clock": pa.time32("ms"),
    "ms": pa.timestamp("ms"),
    "us": pa.timestamp("us", "UTC"),
    "ns": pa.timestamp("ns", "UTC"),
}


def rows_of(rng, count, share_of_nulls):
    """Rows of every type that sets of files have."""
    texts = [f"host_{number}" for number in range(30)] + ["", "ä€😀"]
    columns = {
        name: pa.array(rng.integers(0, 100, count), pa.int64()).cast(pa.int32()).cast(kind)
        if kind.bit_width < 64
        else pa.array(rng.integers(0, 10**9, count), pa.int64()).cast(kind)
        for name, kind in KINDS.items()
    }
    columns["tag"] = pa.array(rng.choice(texts, count), pa.string())
    columns["large"] = pa.array(rng.choice(texts, count), pa.large_string())
    columns["code"] = pa.array(rng.choice(texts, count), pa.string()).dictionary_encode()
    columns["alone"] = pa.array([f"{number}" for number in rng.integers(0, 10**12, count)], pa.string())
    return pa.table(
        {
            name: pa.chunked_array([pa.array(values.to_pylist(), values.type, mask=rng.random(count) < share_of_nulls)])
            for name, values in columns.items()
        }
    )


def shares(folder, tasks=1, time="us"):
    files = find_files([str(folder)])
    by_name = {file.name: file for file in files}
    return deal_out(files, tasks, heads_of(list(by_name), time, lambda name: schema_of(by_name[name])))


def plainly(batches):
    table = pa.Table.from_batches(batches) if batches else None
    if table is None:
        return None
    return table.cast(pa.schema([(field.name, plain(field.type)) for field in table.schema])).combine_chunks()


def by_arrow(share):
    return plainly([batch for part in share for batch in read_part(part)])


@pytest.mark.parametrize("seed", range(12))
def test_files_read_at_once_have_the_rows_that_arrow_reads(tmp_path, seed, monkeypatch):
    rng = np.random.default_rng(seed)
    for number in range(int(rng.integers(1, 9))):
        count = int(rng.choice([0, 1, 7, 500, 3000]))
        pq.write_table(
            rows_of(rng, count, rng.choice([0, 0.3])),
            tmp_path / f"{number}.parquet",
            compression=str(rng.choice(["snappy", "zstd", "none", "gzip"])),
            data_page_version=str(rng.choice(["1.0", "2.0"])),
            use_dictionary=bool(rng.random() < 0.7),
            row_group_size=int(rng.choice([100, 10_000])),
            data_page_size=int(rng.choice([200, 10**6])),
            store_schema=bool(rng.random() < 0.7),
        )
    (share,) = shares(tmp_path)
    expected = by_arrow(share)
    monkeypatch.setattr(share_rows, "read_part", None)
    found = plainly([batch for batch in ShareRows(share) if batch.num_rows])
    assert (found is None) == (expected is None or not expected.num_rows)
    if found is not None:
        assert found.equals(expected.cast(found.schema))


def test_columns_of_other_types_are_read_by_arrow(tmp_path):
    for number in range(3):
        rows = pa.table({"us": pa.array([number], pa.timestamp("us")), "list": [[number, 1]], "flag": [True]})
        pq.write_table(rows, tmp_path / f"{number}.parquet")
    (share,) = shares(tmp_path)
    assert plainly(list(ShareRows(share))).equals(by_arrow(share))


def test_files_with_other_columns_are_batches_of_their_own(tmp_path):
    for number in range(6):
        columns = {"us": pa.array([number], pa.timestamp("us")), "ab"[number // 3]: [1.5]}
        pq.write_table(pa.table(columns), tmp_path / f"{number}.parquet")
    (share,) = shares(tmp_path)
    assert [(batch.num_rows, batch.schema.names[1]) for batch in ShareRows(share)] == [(3, "a"), (3, "b")]


@pytest.mark.parametrize("damage", [lambda data: data[:-30], lambda data: data[:50] + bytes(60) + data[110:]])
def test_a_file_that_was_damaged_since_is_named(tmp_path, damage):
    for number in range(3):
        rows = pa.table({"us": pa.array(range(1000), pa.timestamp("us")), "tag": [f"{each}" for each in range(1000)]})
        pq.write_table(rows, tmp_path / f"{number}.parquet")
    (share,) = shares(tmp_path)
    (tmp_path / "1.parquet").write_bytes(damage((tmp_path / "1.parquet").read_bytes()))
    with pytest.raises(Damaged, match=r"1\.parquet"):
        list(ShareRows(share))


def points(first, count, step=1, hosts=5):
    """Points from a second on, in order of time."""
    seconds = START + first + step * np.arange(count)
    return pa.table(
        {
            "timestamp": pa.array(seconds * 10**6).cast(pa.timestamp("us", "UTC")),
            "host": [f"h{number % hosts}" for number in range(count)],
            "value": np.arange(count, dtype=np.float64),
        }
    )


@pytest.fixture
def table(lake):
    return lake.create_table("metrics", sort="host|timestamp/V2", window="1h")


def write(folder, parts):
    folder.mkdir()
    for number, part in enumerate(parts):
        pq.write_table(part, folder / f"{number:03}.parquet")
    return folder


def windows_of(table):
    return sorted(split.window.split("/")[0] for split in table.inspect.splits())


@pytest.fixture
def small(monkeypatch):
    """Tasks hold so little that they would spill."""
    monkeypatch.setattr("windrow.ingest.spill._LEAST_HELD", 20_000)
    monkeypatch.setattr("windrow.ingest.run.held_rows", lambda _: 200_000)


def test_files_in_order_of_time_are_written_window_by_window(lake, table, tmp_path, small, monkeypatch):
    monkeypatch.setattr(Spill, "add", None)
    folder = write(tmp_path / "files", [points(600 * number, 600) for number in range(48)])
    assert table.ingest(folder, threads=1).rows == 600 * 48
    assert len(windows_of(table)) <= 8 + 1  # and one more where the second share begins
    (answer,) = lake.sql("select count(*) as n, sum(value) as s from metrics").to_dict()
    assert answer == {"n": 28_800, "s": 48 * 600 * 599 / 2}


def test_names_of_files_need_not_be_in_order_of_time(table, tmp_path, small, monkeypatch):
    monkeypatch.setattr(Spill, "add", None)
    order = np.random.default_rng(1).permutation(48)
    folder = write(tmp_path / "files", [points(600 * number, 600) for number in order.tolist()])
    assert table.ingest(folder, threads=1).rows == 600 * 48
    assert len(windows_of(table)) <= 8 + 1


def test_files_that_all_have_all_windows_are_spilled(table, tmp_path, small):
    folder = write(tmp_path / "files", [points(number, 600, step=48) for number in range(48)])
    assert table.ingest(folder, threads=1).rows == 600 * 48
    assert len(windows_of(table)) <= 2 * 8


def test_a_late_row_that_statistics_do_not_tell_has_a_second_split(lake, table, tmp_path, small, monkeypatch):
    parts = [points(600 * number, 600) for number in range(48)]
    parts[40] = pa.concat_tables([parts[40], points(5, 1)])
    folder = write(tmp_path / "files", parts)
    whole = share_rows._progress_after

    def deceived(parts):
        return [Progress(each.latest, each.later and max(each.later, each.latest + 10**6)) for each in whole(parts)]

    monkeypatch.setattr(share_rows, "_progress_after", deceived)
    assert table.ingest(folder, threads=1).rows == 600 * 48 + 1
    assert lake.sql("select count(*) as n from metrics").to_dict() == [{"n": 28_801}]
    assert windows_of(table).count("2023-11-14T23:00:00Z") == 2


class TestProgress:
    @given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 20)), min_size=1, max_size=12), st.integers(0, 11))
    def test_it_is_between_windows_when_no_window_is_on_both_sides(self, spans, at):
        seconds = [(600 * low, 600 * (low + length)) for low, length in spans]
        after = share_rows._progress_after([part(*each) for each in seconds])
        at = min(at, len(spans) - 1)
        before, behind = seconds[: at + 1], seconds[at + 1 :]
        is_apart = bool(behind) and max(high // HOUR for _, high in before) < min(low // HOUR for low, _ in behind)
        assert after[at].is_between(HOUR) == is_apart

    def test_a_file_without_times_leaves_it_unknown(self):
        after = share_rows._progress_after([part(0, 1), part(None, None), part(9000, 9001)])
        assert after == [Progress(10**6, None), Progress(None, 9000 * 10**6), Progress(None, None)]

    def test_the_overflow_window_is_never_done(self):
        from windrow.model.window import Window

        assert Progress(later=10**18).is_behind(Window(0, HOUR))
        assert not Progress(later=10**18).is_behind(Window.overflow_of(HOUR))


def part(low, high):
    from windrow.ingest.files import FileFormat, FilePart, SourceFile

    times = None if low is None else (low * 10**6, high * 10**6)
    return FilePart(SourceFile("a.parquet", FileFormat.PARQUET, 1), 1, None, 1, times)


def test_batches_are_held_up_to_the_end_of_a_window(monkeypatch):
    monkeypatch.setattr("windrow.ingest.spill._LEAST_HELD", 100)
    reached = [Progress(0, 10**6), Progress(0, 3600 * 10**6), Progress(0, 9000 * 10**6), Progress()]
    batches = [pa.record_batch({"a": pa.array([number], pa.int64())}) for number in range(4)]
    times = iter(reached)
    held = list(in_budget(batches, 10**6, lambda: next(times), HOUR))
    assert [(len(each.batches), each.is_last, each.progress) for each in held] == [
        (3, False, reached[2]),
        (1, True, reached[3]),
    ]


@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
def test_times_are_those_of_the_rows(tmp_path, unit):
    first = dt.datetime(1969, 12, 31, 23, tzinfo=dt.UTC)
    times = [first, None, first + dt.timedelta(hours=3)]
    pq.write_table(pa.table({"us": pa.array(times, pa.timestamp(unit, "UTC"))}), tmp_path / "a.parquet")
    ((found,),) = shares(tmp_path)
    assert found.times == (-HOUR * 10**6, 2 * HOUR * 10**6)


@pytest.mark.parametrize(
    "write_one",
    [
        lambda path: pq.write_table(pa.table({"us": pa.array([1], pa.timestamp("us"))}), path, write_statistics=False),
        lambda path: pq.write_table(pa.table({"us": [5]}), path),
        lambda path: pq.write_table(pa.table({"us": pa.nulls(3, pa.timestamp("us"))}), path),
        lambda path: pq.write_table(pa.table({"other": [1]}), path),
    ],
    ids=["no statistics", "integers", "nulls", "no times"],
)
def test_what_does_not_tell_its_times_has_none(tmp_path, write_one):
    write_one(tmp_path / "a.parquet")
    ((found,),) = shares(tmp_path)
    assert found.times is None


@given(st.lists(st.integers(0, 50), max_size=30), st.integers(1, 8))
def test_stretches_follow_each_other_and_are_about_even(sizes, tasks):
    stretches = cut(sizes, tasks)
    assert [number for stretch in stretches for number in stretch] == list(range(len(sizes)))
    assert len(stretches) <= tasks
    assert all(stretches)
    largest = max((sum(sizes[number] for number in stretch) for stretch in stretches), default=0)
    assert largest <= sum(sizes) / tasks + 2 * max(sizes, default=0)
