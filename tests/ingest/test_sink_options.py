"""The options of the sink are read strictly: what is missing, unknown or nonsense is named."""

from __future__ import annotations

import pytest

from windrow.errors import InvalidInput
from windrow.ingest.settings import IngestSettings
from windrow.ingest.sink_options import SinkOptions

PLACE = {"lake": "./lake", "table": "metrics"}
CHECKPOINT = {"checkpointlocation": "./checkpoint"}


def test_a_batch_takes_rows_of_any_age_and_a_stream_does_not():
    assert SinkOptions.of(PLACE, streaming=False).settings == IngestSettings(lease=3600)
    assert SinkOptions.of(PLACE | CHECKPOINT, streaming=True).settings == IngestSettings(drop_late=True, lease=3600)


def test_every_option_is_taken():
    given = {
        "path": "s3://bucket/lake",
        "Table": "metrics",
        "metastore": "postgresql://host/db",
        "source": "kafka",
        "drop_late": "TRUE",
        "future": "5m",
        "most_dropped": "0.9",
        "dead_letter": "true",
        "lease": "2h",
        "store.region": "eu-central-1",
        "store.endpoint": "http://s3",
    }
    options = SinkOptions.of(given, streaming=False)
    assert (options.lake, options.table, options.metastore) == ("s3://bucket/lake", "metrics", "postgresql://host/db")
    assert options.settings == IngestSettings(
        "kafka", drop_late=True, future="5m", most_dropped=0.9, lease=7200, dead_letter=True
    )
    assert options.store_options == {"region": "eu-central-1", "endpoint": "http://s3"}


def test_secrets_are_not_shown():
    options = SinkOptions.of(
        {**PLACE, "metastore": "postgresql://u:hunter2@h/d", "store.key": "hunter3"}, streaming=False
    )
    assert "hunter" not in repr(options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"table": ""}, "option 'table' is missing"),
        ({"lake": ""}, "option 'lake' is missing"),
        ({"checkpointlocation": ""}, "option 'checkpointLocation' is missing"),
        ({"tabel": "metrics"}, "unknown option 'tabel'; did you mean 'table'"),
        ({"x": "1"}, "unknown option 'x'; it knows lake, table"),
        ({"drop_late": "perhaps"}, "'drop_late' is 'perhaps'; write true or false"),
        ({"most_dropped": "50%"}, "a number from 0 to 1"),
        ({"most_dropped": "nan"}, "a number from 0 to 1"),
        ({"lease": "soon"}, "option lease: 'soon' is not a duration"),
    ],
)
def test_bad_options_are_refused(options, message):
    with pytest.raises(InvalidInput, match=message):
        SinkOptions.of(PLACE | CHECKPOINT | options, streaming=True)
