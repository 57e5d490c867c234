"""On a bucket: others read the mirror by the table's address, and upkeep works as on a disk."""

from __future__ import annotations

import pytest
from deltalake import DeltaTable
from tests.proofs.worlds import compact, points, visible

import windrow
from windrow.mirror.checkpoints import Checkpoints
from windrow.mirror.log import Log


@pytest.mark.s3
@pytest.mark.xdist_group("s3")
def test_a_table_in_a_bucket_is_a_delta_table(tmp_path, s3_url, s3_options):
    metastore = f"sqlite:///{tmp_path}/windrow.db"
    with windrow.connect(s3_url, metastore=metastore, store_options=s3_options) as lake:
        table = lake.create_table("events", sort="host|timestamp/V2")
        for minute in range(3):
            table.ingest(points(minute))
        compact(table, visible(table))
        options = {f"aws_{name}" if name != "allow_http" else name: value for name, value in s3_options.items()}
        delta = DeltaTable(f"{s3_url}/events", storage_options=options)
        assert delta.version() == table.version() == 4
        assert [uri.rpartition("/")[2] for uri in delta.file_uris()] == [visible(table)[0].key.rpartition("/")[2]]
        Checkpoints(Log(lake.context.store, "events")).extend(table.version())
        assert any("_last_checkpoint" in info.key for info in lake.context.store.list("events"))
        assert table.upkeep.gc.run(grace=0).retired_splits == 3
        assert table.upkeep.check(data=True).sound
