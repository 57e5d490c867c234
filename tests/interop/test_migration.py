"""Sidecars beside the partitions of a running QuestDB that knows none: it answers as before."""

from __future__ import annotations

import pytest

from windrow.questdb.checking import check_table
from windrow.questdb.migration_plan import Wish, plan_migration
from windrow.sidecar import Sidecar
from windrow.sidecar.rewrite import Sections
from windrow.upkeep.migration import Migration

pytestmark = pytest.mark.interop

QUERIES = (
    "select count(), sum(n), min(ts), max(ts) from {0}",
    "select sy, count(), sum(val) from {0} order by sy",
    "select * from {0} where ts in '2024-02-01T05' order by ts, n",
    "select ts, n from {0} where text = 'row-77'",
    "select ts, count(), max(val) from {0} sample by 6h",
    "select * from {0} latest on ts partition by sy order by sy, n",
)


def answers(questdb, table):
    return [questdb.rows(query.format(table)) for query in QUERIES]


def make(questdb, name):
    questdb.run(
        f"create table {name} (ts timestamp, sy symbol, val double, text varchar, n long) timestamp(ts) "
        "partition by day wal",
        f"insert into {name} select timestamp_sequence('2024-02-01', 30000000L), rnd_symbol('a','b',null), x*0.5, "
        "'row-'||x, x from long_sequence(9000)",
        f"alter table {name} convert partition to parquet list '2024-02-01','2024-02-02','2024-02-03'",
        table=name,
    )
    return questdb.table_folder(name)


def insert_late(questdb, name, day, count):
    questdb.run(
        f"insert into {name} select timestamp_sequence('{day}T05:00:00', 1000000L), 'z', x*0.25, 'late', -x "
        f"from long_sequence({count})",
        table=name,
    )


def test_answers_stay_the_same_and_a_second_run_does_nothing(questdb):
    folder = make(questdb, "moved")
    before = answers(questdb, "moved")
    files = {path: path.read_bytes() for path in [folder / "_txn", *folder.glob("*/data.parquet")]}
    result = Migration(folder).run()
    assert (result.written, result.failed) == (3, 0)
    assert {path: path.read_bytes() for path in files} == files
    assert answers(questdb, "moved") == before
    assert Migration(folder).run().planned == 0
    assert check_table(folder, data=True).findings == ()


def test_a_partition_that_grew_since_is_migrated_again(questdb):
    folder = make(questdb, "growing")
    Migration(folder).run()
    for count in (100, 2000, 300):
        insert_late(questdb, "growing", "2024-02-02", count)
        before = answers(questdb, "growing")
        work = plan_migration(folder).work
        assert [step.action.value for step in work if step.partition.startswith("2024-02-02")] in (
            ["regenerate"],
            ["generate"],
        )
        assert Migration(folder).run().failed == 0
        assert answers(questdb, "growing") == before
        assert plan_migration(folder).work == ()
        assert check_table(folder, data=True).findings == ()


def test_the_server_starts_again_on_migrated_tables(questdb):
    folder = make(questdb, "restarted")
    insert_late(questdb, "restarted", "2024-02-01", 500)
    before = answers(questdb, "restarted")
    questdb.stop()
    assert Migration(questdb.folder).run().failed == 0
    questdb.start()
    assert answers(questdb, "restarted") == before
    insert_late(questdb, "restarted", "2024-02-01", 50)
    [[count]] = questdb.rows("select count() from restarted")
    assert count == 9550
    assert Migration(folder).run().failed == 0


def test_partitions_go_to_native_and_back(questdb):
    folder = make(questdb, "turning")
    Migration(folder).run()
    before = answers(questdb, "turning")
    questdb.run("alter table turning convert partition to native list '2024-02-02'", table="turning")
    assert Migration(folder).run().failed == 0
    questdb.run("alter table turning convert partition to parquet list '2024-02-02'", table="turning")
    assert [step.action.value for step in plan_migration(folder).work] == ["generate"]
    Migration(folder).run()
    assert answers(questdb, "turning") == before


@pytest.mark.parametrize("sections", Sections)
def test_any_layout_of_sidecars_does_no_harm(questdb, sections):
    folder = make(questdb, f"layout_{sections}")
    before = answers(questdb, f"layout_{sections}")
    assert Migration(folder, Wish(rewrite=sections)).run().written == 3
    assert answers(questdb, f"layout_{sections}") == before
    for path in folder.glob("*/_pm"):
        Sidecar.open(path)
