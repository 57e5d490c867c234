"""What a prompt shows of a lake, a table and a plan is for people."""

from __future__ import annotations

import re

import pyarrow as pa
import pytest

import windrow

MINUTE = 60_000_000


@pytest.fixture
def lake(tmp_path):
    with windrow.connect(tmp_path / "lake") as opened:
        yield opened


@pytest.fixture
def table(lake):
    made = lake.create_table("metrics", sort="host|timestamp/V2", window="15m")
    times = pa.array([0, MINUTE, 20 * MINUTE], pa.timestamp("us", "UTC"))
    for _ in range(2):
        made.ingest(pa.table({"metric_name": ["cpu"] * 3, "host": list("aab"), "timestamp": times, "value": [1.0] * 3}))
    return made


def test_a_lake_shows_where_it_is_and_its_tables(lake):
    assert repr(lake) == f"<Lake {lake.url}: 0 tables>"
    lake.create_table("metrics", sort="host|timestamp/V2")
    assert repr(lake) == f"<Lake {lake.url}: 1 table: metrics>"
    lake.close()
    assert repr(lake) == f"<Lake {lake.url}: closed>"


def test_a_table_shows_how_much_it_holds(table):
    shown = r"<Table metrics, version 2: 6 rows, 4 splits, 2 windows, \d+\.\d KiB, sort host\|timestamp/V2>"
    assert re.fullmatch(shown, repr(table))
    assert repr(table.at(version=1)).startswith("<Table metrics, version 1: 3 rows, 2 splits")


def test_a_table_that_is_not_there_shows_that(table):
    gone = windrow.Table(table.context, "nothing")
    assert repr(gone).startswith("<Table nothing: there is no table 'nothing'")


def test_a_plan_of_compaction_shows_what_it_would_do_and_cost(table):
    lines = repr(table.compact.plan()).splitlines()
    assert re.fullmatch(
        r"CompactionPlan of metrics: 2 merges, 4 files to 2, \d+\.\d KiB to read, about \d+\.\d s", lines[0]
    )
    assert re.fullmatch(r"  1970-01-01T00:15:00Z/PT15M  2 splits to 1, \d+\.\d KiB", lines[1])


def test_a_plan_of_a_scan_shows_what_each_step_left(table):
    lines = repr(table.plan("timestamp >= '1970-01-01 00:15:00'")).splitlines()
    assert re.fullmatch(r"ScanPlan: at most 2 rows, \d+ B to read", lines[0])
    assert any(re.fullmatch(r"  time range +1 windows of 2 windows", line) for line in lines)
    assert re.search(r"\d+ B of \d+\.\d KiB$", lines[-1])


def test_other_plans_show_a_line_for_each_field(table):
    rows = pa.table({"host": ["a"], "timestamp": pa.array([0], pa.timestamp("us", "UTC")), "extra": [1]})
    assert re.search(r"^  new_columns +extra$", repr(table.ingest.plan(rows)), re.MULTILINE)
    assert re.search(r"^  retired_bytes +0 B$", repr(table.upkeep.gc.plan()), re.MULTILINE)


def test_rows_show_as_the_table_that_they_print_as(table):
    windows = table.inspect.windows()
    assert repr(windows) == str(windows)
    assert re.search(r"\d\.\d KiB", repr(windows))


def test_the_package_lists_its_public_names_alone():
    assert dir(windrow) == sorted(windrow.__all__)


def test_results_show_a_line_for_each_field(lake, table):
    rows = pa.table({"host": ["a"], "timestamp": pa.array([0], pa.timestamp("us", "UTC")), "value": [1.0]})
    made = lake.create_table("other", sort="host|timestamp/V2", window="15m").ingest(rows)
    assert re.search(r"^IngestResult\n  table +other\n", repr(made))
    assert re.search(r"\n  size_bytes +\d+\.\d KiB\n", repr(made))
    assert re.search(r"^CompactionResult\n(.*\n)*  done +2\n", repr(table.compact.run()))
    assert re.search(r"^GcResult\n  table +metrics\n", repr(table.upkeep.gc.run()))


def test_findings_of_a_check_have_a_line_each(lake, table):
    for split in table.inspect.splits():
        (lake.context.store.root / split.key).write_bytes(b"")
    lines = repr(table.upkeep.check()).splitlines()
    first = next(place for place, line in enumerate(lines) if line.startswith("  findings"))
    assert all(re.match(r"(  findings)? +\w+: metrics/.+: .+", line) for line in lines[first : first + 4])
