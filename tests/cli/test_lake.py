"""`windrow lake` shows, moves and adds lakes, and says what it would do first."""

from __future__ import annotations

import shutil

import pytest

from windrow.identity.marker import MARKER


@pytest.fixture
def served(call, here):
    """A lake whose metastore lies elsewhere."""
    shared = f"sqlite:///{here}/shared.db"
    (here / "points.csv").write_text("host,timestamp\na,2020-01-01T00:00:00Z\nb,\n")

    def on(*arguments, lake="lake"):
        return call("--lake", lake, "--metastore", shared, *arguments)

    assert on("create", "events", "--sort", "host|timestamp/V2").code == 0
    assert on("ingest", "events", "points.csv").code == 0
    return on


def test_a_lake_is_shown_with_what_its_metastore_serves(served, here):
    shown = served("lake", "show", "--json").json
    assert (shown["state"], shown["problem"]) == ("bound", None)
    assert shown["lakes"] == [{"lake_id": shown["lake_id"], "address": f"file://{here}/lake", "tables": 1}]
    assert shown["lake_id"] in served("lake", "show").out


def test_a_lake_that_was_moved_is_accepted_by_a_word(served, here):
    (here / "lake").rename(here / "moved")
    refused = served("list", lake="moved")
    assert (refused.code, "run `windrow lake move`" in refused.err) == (2, True)
    looked = served("lake", "move", "--dry-run", "--json", lake="moved").json
    assert (looked["state"], looked["dry_run"], looked["changed"]) == ("moved", True, True)
    assert served("list", lake="moved").code == 2
    done = served("lake", "move", "--json", lake="moved").json
    assert (done["state"], done["dry_run"], done["changed"]) == ("bound", False, True)
    assert served("describe", "events", "--json", lake="moved").json["rows"] == 2
    assert "is served already" in served("lake", "move", lake="moved").out


def test_a_lake_is_added_by_a_word(served, here):
    assert served("create", "events", "--sort", "host|timestamp/V2", lake="other").code == 2
    assert "would be added" in served("lake", "add", "--dry-run", lake="other").out
    assert not (here / "other").exists()
    assert len(served("lake", "add", "--json", lake="other").json["lakes"]) == 2
    assert (here / "other" / MARKER).exists()
    assert served("create", "events", "--sort", "host|timestamp/V2", lake="other").code == 0
    assert served("describe", "events", "--json", lake="other").json["rows"] == 0
    assert served("describe", "events", "--json").json["rows"] == 2


def test_there_is_nothing_to_move_where_nothing_is(call, here):
    assert call("lake", "show", "--json").json["state"] == "new"
    answer = call("lake", "move")
    assert (answer.code, "knows no lake" in answer.err) == (3, True)
    assert list(here.iterdir()) == []


def test_a_copy_of_a_lake_is_no_second_one(served, here):
    shutil.copytree(here / "lake", here / "copy")
    answer = served("lake", "add", lake="copy")
    assert (answer.code, "a copy needs a metastore of its own" in answer.err) == (2, True)
