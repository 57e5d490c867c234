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


def test_a_ledger_shows_what_was_there_at_its_last_look(tmp_path):
    world = World(tmp_path)
    ledger = Ledger(tmp_path / "windrow.db")
    with world.open() as lake:
        table = lake.create_table("events", sort="host|timestamp/V2", window="15m")
        table.ingest(points(0))
        ledger.look()
        table.ingest(points(1))
        assert (ledger.newest, len(ledger.keys(2))) == (1, 1)
        ledger.look()
        assert (ledger.newest, len(ledger.keys(2))) == (2, 2)
    ledger.close()
