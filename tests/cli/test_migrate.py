"""Migration and tables of QuestDB from the command line."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

GOLDEN = Path(__file__).parents[1] / "data" / "golden" / "questdb-tables"


@pytest.fixture
def database(here):
    """Two tables, one of them without sidecars."""
    shutil.copytree(GOLDEN / "o3-2-tail", here / "db" / "o3~10", copy_function=shutil.copyfile)
    ignored = shutil.ignore_patterns("_pm", "converter.pm")
    shutil.copytree(GOLDEN / "format-parquet", here / "db" / "fmt~3", copy_function=shutil.copyfile, ignore=ignored)
    return "db"


def test_a_dry_run_says_what_would_be_written_and_writes_nothing(call, database, here):
    found = call("migrate", database, "--dry-run", "--json").json
    assert found["dry_run"]
    assert found["counts"] == {"generate": 3, "regenerate": 0, "rewrite": 0, "none": 2, "skip": 0, "refuse": 0}
    assert "no sidecar" in call("migrate", database, "--dry-run").out
    assert not list(here.glob("db/fmt~3/*/_pm"))


def test_a_run_writes_sidecars_and_a_second_one_has_nothing_to_do(call, database, here):
    assert call("migrate", database).out.startswith("migrated\n")
    assert len(list(here.glob("db/fmt~3/*/_pm"))) == 3
    assert call("migrate", database).out.startswith("nothing to do\n")
    assert call("migrate", database, "--dry-run").out.endswith("nothing to do\n")
    assert call("migrate", database, "--rewrite", "keep", "--json").json["written"] == 1
    assert call("migrate", database, "--regenerate", "--json").json["written"] == 5


def test_a_file_that_cannot_be_migrated_is_named_and_the_exit_code_says_so(call, database, here):
    (here / "db/fmt~3/2024-01-02/data.parquet").write_bytes(b"")
    answer = call("migrate", database)
    assert answer.code == 6
    assert "1 file failed" in answer.out
    assert "fmt~3/2024-01-02/data.parquet: the file is empty, 1188 bytes are committed" in answer.out
    assert len(list(here.glob("db/fmt~3/*/_pm"))) == 2


def test_a_plain_folder_is_migrated_too(call, here):
    (here / "raw").mkdir()
    pq.write_table(pa.table({"a": [1]}), here / "raw" / "a.parquet")
    assert call("migrate", "raw", "--json").json["written"] == 1
    assert (here / "raw" / "_a.pm").is_file()
    assert call("migrate", "nowhere").code == 3
    assert "on local files" in call("migrate", "s3://bucket/raw").err


def test_inspect_lists_tables_and_the_partitions_of_one(call, database):
    rows = call("questdb", "inspect", database, "--json").json
    assert {row["table"]: row["rows"] for row in rows} == {"fmt": 110, "o3": 706}
    assert "parquet partitions" in call("questdb", "inspect", database).out
    found = call("questdb", "inspect", database, "o3", "--json").json
    assert [each["footers"] for each in found["partitions"]] == [1, 3, None]
    assert call("questdb", "inspect", f"{database}/o3~10", "--json").json == found | {"folder": f"{database}/o3~10"}
    shown = call("questdb", "inspect", f"{database}/o3~10").out
    assert "2024-02-02.2" in shown
    assert "native" in shown
    assert call("questdb", "inspect", "db/fmt~3/2024-01-01").code == 3


def test_check_names_what_is_wrong(call, database, here):
    answer = call("questdb", "check", database)
    assert answer.code == 0
    assert "3 partitions without a sidecar; windrow migrate writes them" in answer.out
    assert call("questdb", "check", database, "o3", "--data", "--json").json["rows_read"] == 582
    (here / "db/o3~10/2024-02-02.2/_pm").write_bytes(b"")
    answer = call("questdb", "check", database, "--json")
    assert (answer.code, answer.json["sound"]) == (6, False)
    assert "table o3 is not sound" in call("questdb", "check", database).out


def test_scan_writes_rows_in_every_format(call, database, here):
    chosen = ["questdb", "scan", database, "fmt"]
    names = call("questdb", "scan", database, "fmt", "-o", "rows.parquet", "--json").json
    assert (names["rows"], pq.read_table(here / "rows.parquet").num_rows) == (110, 110)
    call(*chosen, "-o", "rows.csv")
    assert len((here / "rows.csv").read_text().splitlines()) == 111
    call(*chosen, "-o", "rows.json", "--format", "json")
    assert len(json.loads((here / "rows.json").read_text())) == 110
    assert len(call(*chosen, "--json").json) == 110
    call(*chosen, "-o", "rows.txt")
    assert len((here / "rows.txt").read_text().splitlines()) == 112


def test_scan_takes_conditions_columns_and_one_table(call, database, here):
    where = ("--where", "n <= 3", "--columns", "n, text", "-o", "rows.json")
    assert call("questdb", "scan", database, "o3", *where).code == 6
    assert call("questdb", "scan", database, "o3", "--skip-native", *where).code == 0
    rows = json.loads((here / "rows.json").read_text())
    assert {row["n"] for row in rows} == {-3, -2, -1, 1, 2, 3}
    assert set(rows[0]) == {"n", "text"}
    answer = call("questdb", "scan", database)
    assert (answer.code, "name one of fmt, o3" in answer.err) == (2, True)
    assert "did you mean 'o3'?" in call("questdb", "scan", database, "o33").err
