"""Rows go into a table in QuestDB's layout, and unused bytes out of it, from the command line."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

DAY = 86_400_000_000
MONDAY = 1_704_067_200_000_000


def write(path, times, host):
    stamps = pa.array([MONDAY + time for time in times], pa.timestamp("us", "UTC"))
    pq.write_table(pa.table({"ts": stamps, "host": [host] * len(times), "v": [0.5] * len(times)}), path)


@pytest.fixture
def files(here):
    write(here / "a.parquet", range(0, 2 * DAY, DAY // 50), "a")
    write(here / "b.parquet", range(1, DAY, DAY // 20), "b")


def count(call, where):
    return len(call("questdb", "scan", "points", "--where", where, "--json").json)


def test_rows_are_appended_to_a_table_that_is_created_by_the_way(call, files):
    plan = call("questdb", "append", "points", "a.parquet", "--create", "ts", "--dry-run", "--json").json
    assert plan["partitions"] == [{"partition": "2024-01-01", "rows": 50}, {"partition": "2024-01-02", "rows": 50}]
    assert call("questdb", "inspect", "points").code == 3
    made = call("questdb", "append", "points", "a.parquet", "--create", "ts", "--json").json
    assert (made["rows"], made["files"], made["dry_run"]) == (100, 1, False)
    assert "would append 20 rows" in call("questdb", "append", "points", "b.parquet", "--dry-run").out
    assert "appended 20 rows" in call("questdb", "append", "points", "b.parquet").out
    assert (count(call, "host = 'a'"), count(call, "host = 'b'")) == (100, 20)
    assert call("questdb", "check", "points", "--data").code == 0


def test_text_files_take_the_types_of_the_table(call, here, files):
    (here / "c.csv").write_text("ts,host,v\n2024-01-01T05:00:00Z,c,1.5\n2024-01-03T05:00:00Z,c,2.5\n")
    assert call("questdb", "append", "points", "c.csv", "--create", "ts", "--unit", "month").code == 0
    assert call("questdb", "append", "points", "c.csv", "a.parquet").code == 0
    assert count(call, "host = 'c' and v < 2") == 2
    assert call("questdb", "inspect", "points", "--json").json["unit"] == "month"


def test_partitions_with_many_unused_bytes_are_rewritten(call, files):
    call("questdb", "append", "points", "a.parquet", "--create", "ts")
    call("questdb", "append", "points", "b.parquet")
    before = call("questdb", "inspect", "points", "--json").json["partitions"]
    assert before[0]["unused_bytes"] > 0
    assert call("questdb", "compact", "points", "--ratio", "1").out == "nothing to rewrite\n"
    plan = call("questdb", "compact", "points", "--ratio", "0.01", "--dry-run", "--json").json
    assert (plan["dry_run"], plan["partitions"], plan["unused_bytes"]) == (True, 1, before[0]["unused_bytes"])
    assert call("questdb", "inspect", "points", "--json").json["partitions"] == before
    done = call("questdb", "compact", "points", "--ratio", "0.01", "--json").json
    assert done["parquet_bytes_after"] < done["parquet_bytes"]
    after = call("questdb", "inspect", "points", "--json").json["partitions"]
    assert (after[0]["unused_bytes"], after[0]["footers"], after[1]) == (0, 1, before[1])
    assert call("questdb", "compact", "points", "--ratio", "0.01").out == "nothing to rewrite\n"
    assert (count(call, "host = 'a'"), count(call, "host = 'b'")) == (100, 20)


@pytest.mark.parametrize(
    ("arguments", "code", "problem"),
    [
        (("append", "points", "a.parquet"), 3, "no such file"),
        (("append", "points", "a.parquet", "--create", "host"), 2, "no column of microseconds"),
        (("append", "points", "none.parquet", "--create", "ts"), 3, "there is no such file"),
        (("compact", "points"), 3, "no table of QuestDB"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_line(call, files, arguments, code, problem):
    answer = call("questdb", *arguments)
    assert answer.code == code
    assert problem in answer.err
    assert answer.err.count("\n") == 1
