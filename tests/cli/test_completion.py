"""What may come next in a query that is being typed."""

from __future__ import annotations

import pyarrow as pa
import pytest

import windrow
from windrow.cli.completion import LakeCatalog, candidates
from windrow.cli.shell import COMMANDS


class Known:
    """Two tables; of one, a column has to be quoted."""

    def tables(self):
        return ["metrics", "Hosts"]

    def columns(self, table):
        return {"metrics": ["host", "value", "service.name"], "Hosts": ["host", "zone"]}[table]

    def values(self, table, column):
        return {"host": ["web-1", "web-2", "o'hara"], "zone": ["eu"]}.get(column, []) if table == "metrics" else ["eu"]


def offered(text):
    """The words that the last one of a line could become."""
    found = candidates(text, Known(), COMMANDS)
    assert all(text.endswith(text[len(text) - each.replaces :]) for each in found)
    return [(text[len(text) - each.replaces :], each.text) for each in found if each.kind != "word"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (".ti", [(".ti", ".timer")]),
        (".mode c", [("c", "csv")]),
        (".schema me", [("me", "metrics")]),
        (".explain select * from ho", [("ho", "Hosts")]),
        ("select * from m", [("m", "metrics")]),
        ("select * from metrics join h", [("h", "Hosts")]),
        ("select * from metrics where val", [("val", "value")]),
        ("select * from metrics where ser", [("ser", '"service.name"')]),
        ('select * from metrics where "ser', [('"ser', '"service.name"')]),
        ("select * from Hosts h, metrics m where h.", [("", "host"), ("", "zone")]),
        ("select * from metrics as m where m.v", [("v", "value")]),
        ("select * from metrics where host = 'web", [("web", "web-1'"), ("web", "web-2'")]),
        ("select * from metrics where host in ('web-1', 'o", [("o", "o''hara'")]),
        ("select * from metrics where host in ('web-1', 'o''", [("o''", "o''hara'")]),
        ("select * from Hosts h where h.zone like 'e", [("e", "eu'")]),
        ("select 'some text fr", []),
        ("select x.", []),
    ],
)
def test_what_is_offered(text, words):
    assert offered(text) == words


def test_columns_come_before_tables_and_words():
    kinds = [each.kind for each in candidates("select * from Hosts where h", Known(), COMMANDS)]
    assert kinds == ["column", "table", "word"]


def test_a_lake_tells_its_names_and_the_values_of_its_newest_window(here, metrics):
    with windrow.connect(here / "lake") as lake:
        catalog = LakeCatalog(lake)
        assert catalog.tables() == ["metrics"]
        assert "host" in catalog.columns("metrics")
        assert catalog.values("metrics", "HOST") == ["a", "c"]
        assert catalog.values("metrics", "value") == []


def test_values_of_a_table_with_integer_times_are_those_of_its_newest_window(tmp_path):
    with windrow.connect(tmp_path / "lake", cache=None) as lake:
        table = lake.create_table("events", sort="name|ts/V2", timestamp="ts", timestamp_unit="ms", window="1h")
        table.ingest(pa.table({"name": ["old", "new"], "ts": [1_767_225_600_000, 1_767_232_800_000]}))
        assert LakeCatalog(lake).values("events", "name") == ["new"]
