"""`windrow drop`, `windrow rename` and `windrow gc --dropped`: what leaves a lake, and when."""

from __future__ import annotations


def test_dropping_needs_a_word(call, events, here):
    looked = call("drop", "events", "--json").json
    assert (looked["dry_run"], looked["table"], looked["rows"]) == (True, "events", 2)
    assert "add --yes to do it" in call("drop", "events").out
    assert call("describe", "events").code == 0
    done = call("drop", "events", "--yes", "--json").json
    assert (done["dry_run"], done["rows"]) == (False, 2)
    assert call("describe", "events").code == 3
    assert list(here.rglob("*.parquet"))


def test_a_dropped_table_is_collected_by_a_word_of_its_own(call, events, here):
    call("drop", "events", "--yes")
    assert "the grace period" in call("gc", "--dropped").out
    looked = call("gc", "--dropped", "--grace", "0s", "--json").json
    assert (looked["dry_run"], looked["tables"][0]["table"], looked["tables"][0]["held_by"]) == (True, "events", [])
    assert list(here.rglob("*.parquet"))
    assert call("gc", "--dropped", "--grace", "0s", "--yes").code == 0
    assert not list(here.rglob("*.parquet"))
    assert "there are no dropped tables" in call("gc", "--dropped").out


def test_gc_is_of_one_table_or_of_dropped_ones(call, events):
    for arguments in ((), ("events", "--dropped"), ("--dropped", "--limit", "1")):
        assert call("gc", *arguments).code == 2


def test_check_takes_a_dropped_table_for_none(call, events):
    call("drop", "events", "--yes")
    assert call("check").out.strip() == "no tables"
    assert call("check", "--repair").code == 0


def test_a_name_is_free_again(call, events):
    call("drop", "events", "--yes")
    assert call("create", "events", "--sort", "host|timestamp/V2").code == 0
    assert call("ingest", "events", "points.csv").code == 0
    assert call("check", "events").code == 0


def test_renaming(call, events):
    looked = call("rename", "events", "readings", "--dry-run", "--json").json
    assert (looked["dry_run"], looked["before"], looked["after"], looked["folder"]) == (
        True, "events", "readings", "events",
    )  # fmt: skip
    assert call("describe", "events").code == 0
    assert call("rename", "events", "readings").out.startswith("renamed")
    assert call("sql", "select count(*) as n from readings", "--json").json == [{"n": 2}]
    assert call("rename", "events", "x").code == 3


def test_a_name_that_is_taken_is_refused_dry_or_not(call, events):
    assert call("create", "other", "--sort", "host|timestamp/V2").code == 0
    for dry in ((), ("--dry-run",)):
        assert call("rename", "events", "Other", *dry).code == 4
