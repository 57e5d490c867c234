"""Every entry of a mirror is looked at; what is wrong is written again, and what is intact is left alone."""

from __future__ import annotations

import json
import shutil

import pytest
from deltalake import DeltaTable
from tests.proofs.worlds import compact, points, rows_of, visible

import windrow
from windrow.mirror import follow
from windrow.mirror.log import Log

COUNT = 5


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A lake of five versions that is closed."""
    folder = tmp_path_factory.mktemp("made")
    with windrow.connect(folder) as lake:
        table = lake.create_table("events", sort="host|timestamp/V2", window="15m")
        for number in range(COUNT):
            table.ingest(points(*range(number * 5, number * 5 + 5), host="abcde"[number]))
    return folder


@pytest.fixture
def lake(made, tmp_path):
    shutil.copytree(made, tmp_path / "lake")
    with windrow.connect(tmp_path / "lake") as opened:
        yield opened


@pytest.fixture
def table(lake):
    return lake.table("events")


def key(number):
    return f"events/_delta_log/{number:020d}.json"


def delta_rows(lake, version=None):
    return DeltaTable(lake.context.store.root / "events", version=version).to_pyarrow_table().num_rows


def lines(lake, number):
    return [json.loads(line) for line in lake.context.store.get(key(number)).splitlines()]


def write(lake, number, actions):
    lake.context.store.put(key(number), "".join(json.dumps(each) + "\n" for each in actions).encode())


def without_digest(lake):
    """Make the log one that was written before entries carried digests."""
    for number in Log(lake.context.store, "events").numbers():
        actions = lines(lake, number)
        for action in actions:
            action.get("commitInfo", {}).get("windrow", {}).pop("digest", None)
        write(lake, number, actions)


def check_mends(lake, table, before):
    """The damage is found, put right, gone when looked at anew, and no intact entry was written again."""
    log = Log(lake.context.store, "events")
    looked = table.upkeep.check()
    assert {finding.kind for finding in looked.findings} == {"mirror"}
    intact = {each: lake.context.store.get(key(each)) for each in log.numbers() if log.entry(each).is_sealed}
    mended = table.upkeep.check(repair=True)
    assert mended.sound, mended.findings
    assert mended.repaired
    assert table.upkeep.check(data=True).sound
    assert all(lake.context.store.get(key(each)) == content for each, content in intact.items())
    assert [delta_rows(lake, version) for version in range(table.version() + 1)] == before


@pytest.mark.parametrize("number", [0, 2, COUNT])
@pytest.mark.parametrize("damage", ["gone", "emptied", "cut off", "a line lost", "another's"])
def test_an_entry_that_is_damaged_anywhere_is_written_again(lake, table, number, damage):
    store = lake.context.store
    before = [delta_rows(lake, version) for version in range(COUNT + 1)]
    content = store.get(key(number))
    if damage == "gone":
        store.delete(key(number))
    else:
        other = store.get(key((number + 1) % COUNT))
        damaged = {"emptied": b"", "cut off": content[:-9], "a line lost": content.partition(b"\n")[2]}
        store.put(key(number), damaged.get(damage, other))
    check_mends(lake, table, before)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("size", 7),
        ("path", "partition_id=0/window_start=0/other.parquet"),
        ("modificationTime", 1),
        ("partitionValues", {"partition_id": "1", "window_start": "0"}),
        ("stats", '{"numRecords": 1, "minValues": {}, "maxValues": {}, "nullCount": {}}'),
        ("tags", {"windrow.split": '{"split_id": "x", "etag": null, "sidecar": null}'}),
    ],
)
def test_without_digests_an_action_that_says_something_else_is_found(lake, table, name, value):
    before = [delta_rows(lake, version) for version in range(COUNT + 1)]
    without_digest(lake)
    assert table.upkeep.check().sound
    actions = lines(lake, 3)
    next(action for action in actions if "add" in action)["add"][name] = value
    write(lake, 3, actions)
    check_mends(lake, table, before)


@pytest.mark.parametrize(
    ("kind", "name", "value"),
    [
        ("protocol", "minReaderVersion", 9),
        ("metaData", "id", "other"),
        ("metaData", "schemaString", '{"type": "struct", "fields": []}'),
        ("metaData", "partitionColumns", ["partition_id"]),
        ("metaData", "configuration", {}),
    ],
)
def test_without_digests_a_table_that_is_described_otherwise_is_found(lake, table, kind, name, value):
    without_digest(lake)
    actions = lines(lake, 0)
    next(action for action in actions if kind in action)[kind][name] = value
    write(lake, 0, actions)
    assert {finding.kind for finding in table.upkeep.check().findings} == {"mirror"}
    assert table.upkeep.check(repair=True).sound
    assert delta_rows(lake) == COUNT * 5


def test_statistics_that_leave_rows_out_are_found(lake, table):
    without_digest(lake)
    actions = lines(lake, 2)
    added = next(action for action in actions if "add" in action)["add"]
    added["stats"] = added["stats"].replace('"host": "b"', '"host": "z"')
    write(lake, 2, actions)
    assert "differs in the statistics" in table.upkeep.check().findings[0].problem
    assert table.upkeep.check(repair=True).sound


def test_several_damaged_entries_are_written_again_with_what_is_collected_between(lake, table):
    """Versions that are no longer kept cannot be said again one by one; the log still ends where the table is."""
    for _ in range(2):
        compact(table, list(visible(table))[:2])
    table.upkeep.gc.run(grace=0)
    for number in (0, 2, 3, 6):
        lake.context.store.delete(key(number))
    assert len(table.upkeep.check().findings) == 4
    assert table.upkeep.check(repair=True).sound
    assert delta_rows(lake) == COUNT * 5
    table.ingest(points(50))
    assert table.upkeep.check().sound
    assert delta_rows(lake) == COUNT * 5 + 1


@pytest.mark.parametrize(
    "odd",
    [
        {"add": 7},
        {"add": {"path": 3}},
        {
            "add": {
                "path": "../../etc/passwd",
                "size": 1,
                "partitionValues": {},
                "modificationTime": 1,
                "dataChange": True,
            }
        },
        {"add": {"path": "/etc/passwd", "size": 1, "partitionValues": {}, "modificationTime": 1, "dataChange": True}},
        {"add": {"path": "a", "size": "1", "partitionValues": {}, "modificationTime": 1, "dataChange": True}},
        {"remove": {}},
        {"txn": {"appId": 1}},
        {"metaData": {"schemaString": "}"}},
        {"protocol": []},
        {"commitInfo": {"windrow": {"version": 2**62}}},
        {"commitInfo": {"windrow": {"version": "1"}}},
        {"commitInfo": {"windrow": {}}},
        {"commitInfo": []},
    ],
    ids=str,
)
def test_an_entry_of_an_odd_shape_is_damaged_and_nothing_else(lake, table, odd):
    before = [delta_rows(lake, version) for version in range(COUNT + 1)]
    write(lake, 2, [odd])
    check_mends(lake, table, before)


def test_an_entry_of_an_absurd_number_is_reported(lake, table):
    write(lake, 2**62, [{"commitInfo": {}}])
    (finding,) = table.upkeep.check().findings
    assert "stands alone" in finding.problem
    assert table.upkeep.check(repair=True).findings == (finding,)
    with pytest.raises(windrow.errors.Damaged, match="no log counts up to"):
        lake.context.metastore.mirror.version(table.record())


class TestCheckpoints:
    @pytest.fixture
    def lake(self, tmp_path):
        with windrow.connect(tmp_path / "lake") as opened:
            yield opened

    @pytest.fixture
    def table(self, lake, monkeypatch):
        monkeypatch.setattr(follow, "CHECKPOINT_EVERY", 2)
        table = lake.create_table("events", sort="host|timestamp/V2", window="15m")
        for number in range(COUNT):
            table.ingest(points(number))
        assert table.upkeep.check(data=True).sound
        return table

    def damage(self, lake, name, change):
        place = lake.context.store.root / "events/_delta_log" / name
        place.write_bytes(change(place.read_bytes()))

    @pytest.mark.parametrize(
        "change",
        [
            lambda content: b"",
            lambda content: content[:-20],
            lambda content: content[:300] + bytes([content[300] ^ 1]) + content[301:],
        ],
        ids=["emptied", "cut off", "flipped"],
    )
    @pytest.mark.parametrize("number", [2, 4])
    def test_one_that_is_damaged_is_made_again(self, lake, table, change, number):
        self.damage(lake, f"{number:020d}.checkpoint.parquet", change)
        assert {finding.kind for finding in table.upkeep.check(data=True).findings} == {"mirror"}
        assert table.upkeep.check(data=True, repair=True).sound
        assert [delta_rows(lake, version) for version in range(COUNT + 1)] == list(range(COUNT + 1))

    def test_one_without_a_digest_is_compared_with_the_entries(self, lake, table):
        folder = lake.context.store.root / "events/_delta_log"
        for digest in folder.glob("*.sha256"):
            digest.unlink()
        assert table.upkeep.check(data=True).sound
        (folder / f"{4:020d}.checkpoint.parquet").write_bytes((folder / f"{2:020d}.checkpoint.parquet").read_bytes())
        (finding,) = (each for each in table.upkeep.check().findings if "parquet" in each.place)
        assert "differs from the entries" in finding.problem
        assert table.upkeep.check(repair=True).sound

    @pytest.mark.parametrize(
        "content",
        [b"", b"{", b"[]", b"7", b'{"version": 3, "size": 1}', b'{"version": 4}', b'{"version": 4, "size": 1}'],
    )
    def test_what_points_to_the_newest_is_written_again(self, lake, table, content):
        self.damage(lake, "_last_checkpoint", lambda _: content)
        (finding,) = table.upkeep.check().findings
        assert "_last_checkpoint" in finding.place
        assert table.upkeep.check(repair=True).sound
        assert delta_rows(lake) == COUNT


def test_an_intact_log_that_contradicts_the_metastore_is_left_alone(lake, table, tmp_path):
    """A metastore that was restored from an old backup must not undo what the log still knows."""
    import sqlite3

    database = tmp_path / "lake" / "windrow.db"
    old = sqlite3.connect(":memory:")
    with sqlite3.connect(database) as now:
        now.backup(old)
    table.ingest(points(59))
    lake.close()
    with sqlite3.connect(database) as now:
        old.backup(now)
    contents = {path: path.read_bytes() for path in (tmp_path / "lake/events/_delta_log").iterdir()}
    with windrow.connect(tmp_path / "lake") as again:
        (finding,) = again.table("events").upkeep.check(repair=True).findings
        assert (finding.kind, finding.repairable) == ("database", False)
        assert "shows version 6, which the metastore does not have" in finding.problem
        assert "check --repair" in finding.problem
    assert {path: path.read_bytes() for path in (tmp_path / "lake/events/_delta_log").iterdir()} == contents


def test_readers_see_the_table_or_an_error_while_entries_are_written_again(lake, table, monkeypatch):
    """Whenever the repair stops, deltalake shows the rows of the newest version, or fails as it did before."""
    for number in (1, 2, 4):
        lake.context.store.delete(key(number))
    seen = []
    for name in ("put", "put_if_absent"):
        original = getattr(lake.context.store, name)

        def spy(place, data, original=original):
            answer = original(place, data)
            try:
                seen.append(delta_rows(lake))
            except Exception as error:
                seen.append(type(error).__name__)
            return answer

        monkeypatch.setattr(lake.context.store, name, spy)
    assert table.upkeep.check(repair=True).sound
    assert seen[-1] == COUNT * 5
    assert all(isinstance(each, str) or each == COUNT * 5 for each in seen)


def test_the_rows_of_every_version_come_back_after_columns_came_and_widened(lake, table):
    import pyarrow as pa

    table.ingest(points(30).append_column("n", pa.array([1], pa.int32())))
    table.ingest(points(31).append_column("n", pa.array([2**40], pa.int64())))
    table.change.run(retention="30d")
    assert table.upkeep.check(data=True).sound
    lake.context.store.put(key(6), b"")
    assert table.upkeep.check(repair=True).sound
    found = DeltaTable(lake.context.store.root / "events").to_pyarrow_table(columns=["host", "timestamp", "value", "n"])
    assert rows_of([found]) == rows_of([lake.sql("select * from events").to_arrow()])
