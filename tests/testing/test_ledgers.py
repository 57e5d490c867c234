"""What is read past a metastore is what the metastore says."""

from windrow.testing.ledgers import Ledger
from windrow.testing.worlds import World, compact, points, visible


def test_a_ledger_shows_the_files_of_every_version_and_the_pins(tmp_path):
    world = World(tmp_path)
    ledger = Ledger(tmp_path / "windrow.db")
    with world.open() as lake:
        table = lake.create_table("events", sort="host|timestamp/V2", window="15m")
        for minute in (0, 1):
            table.ingest(points(minute))
        compact(table, visible(table))
        pin = table.context.metastore.pin(table.record.table_id, 2, pin_id="p", owner="a reader", seconds=60)
        ledger.look()
        assert ledger.newest == 3
        assert ledger.pins == {"p": pin.expires_at}
        for version in range(4):
            assert sorted(ledger.keys(version)) == sorted(split.key for split in visible(table.at(version=version)))
    ledger.close()


def test_only_another_content_counts_as_a_change(tmp_path):
    world = World(tmp_path)
    ledger = Ledger(tmp_path / "windrow.db")
    with world.open() as lake:
        table = lake.create_table("events", sort="host|timestamp/V2", window="15m")
        table.ingest(points(0))
        ledger.look()
        before = ledger.changes
        table.context.metastore.pin(table.record.table_id, 1, pin_id="p", owner="a reader", seconds=60)
        ledger.look()
        assert (ledger.changes, set(ledger.pins)) == (before, {"p"})
        table.ingest(points(1))
        ledger.look()
        assert ledger.changes == before + 1
    ledger.close()
