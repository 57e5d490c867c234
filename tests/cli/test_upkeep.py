"""`windrow expire` and `windrow gc` only look unless they are told to act, and say what they did."""

from __future__ import annotations

import pytest


def test_expiring_needs_a_word(call, events):
    looked = call("expire", "events", "--retention", "30d", "--json").json
    assert (looked["dry_run"], looked["splits"], looked["rows"]) == (True, 1, 1)
    assert call("describe", "events", "--json").json["rows"] == 2
    done = call("expire", "events", "--retention", "30d", "--yes", "--json").json
    assert (done["dry_run"], done["rows"], done["version"]) == (False, 1, 2)
    assert call("describe", "events", "--json").json["rows"] == 1


def test_collecting_needs_a_word(call, events, here):
    call("expire", "events", "--retention", "30d", "--yes")
    files = set(here.rglob("*.parquet"))
    looked = call("gc", "events", "--grace", "0s", "--json").json
    assert (looked["dry_run"], looked["retired_splits"]) == (True, 1)
    assert set(here.rglob("*.parquet")) == files
    done = call("gc", "events", "--grace", "0s", "--yes", "--per-second", "1000", "--json").json
    assert (done["dry_run"], done["retired_splits"], done["failed_files"]) == (False, 1, 0)
    assert len(set(here.rglob("*.parquet"))) == len(files) - 1
    assert call("sql", "select host from events", "--json").json == [{"host": "b"}]


def test_people_are_told_that_nothing_changed(call, events):
    for command in ("gc", "expire --retention 30d"):
        answer = call(*command.split(), "events")
        assert answer.code == 0
        assert "nothing was changed; add --yes to do it" in answer.out


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("gc", "event"), 3, "did you mean 'events'"),
        (("gc", "events", "--grace", "soon"), 2, "grace: 'soon' is not a duration"),
        (("gc", "events", "--limit", "-1"), 2, "--limit"),
        (("expire", "events"), 2, "keeps its points for ever"),
        (("expire", "events", "--retention", "x"), 2, "retention: 'x' is not a duration"),
    ],
)
def test_bad_input_is_refused(call, events, arguments, code, message):
    answer = call(*arguments)
    assert (answer.code, message in answer.err) == (code, True), answer.err


def test_checking_says_what_is_wrong_and_repairs_what_can_be(call, events, here):
    assert call("check", "events", "--data", "--json").json["sound"]
    next(here.rglob("_*.pm")).unlink()
    answer = call("check", "events", "--json")
    assert (answer.code, [each["kind"] for each in answer.json["findings"]]) == (6, ["sidecar"])
    answer = call("check", "events", "--repair", "--json")
    assert (answer.code, len(answer.json["repaired"])) == (0, 1)
    assert "table events is sound" in call("check", "events").out


def lose(here):
    for each in (here / "lake").glob("windrow.db*"):
        each.unlink()


def test_a_lost_metastore_is_rebuilt(call, events, here):
    lose(here)
    for command in ("check events", "list", "create events --sort host|timestamp/V2", "create x --sort timestamp/V2"):
        answer = call(*command.split())
        assert (answer.code, "run `windrow check --repair`" in answer.err) == (6, True), answer
    answer = call("check", "events", "--repair", "--json")
    assert (answer.code, answer.json["rebuilt"]["rows"], answer.json["rebuilt"]["version"]) == (0, 2, 1)
    assert len(call("sql", "select * from events", "--json").json) == 2


def test_every_table_is_checked_and_rebuilt_when_none_is_named(call, events, here):
    assert call("create", "empty", "--sort", "timestamp/V2").code == 0
    assert [each["table"] for each in call("check", "--json").json["tables"]] == ["empty", "events"]
    lose(here)
    answer = call("check", "--repair", "--json")
    assert (answer.code, [each["rebuilt"]["rows"] for each in answer.json["tables"]]) == (0, [2])
    assert "table events is sound" in call("check").out


def test_a_table_that_cannot_be_rebuilt_stops_no_other(call, events, here):
    assert call("create", "bare", "--sort", "host|timestamp/V2").code == 0
    assert call("set", "bare", "mirror=false").code == 0
    assert call("ingest", "bare", "points.csv").code == 0
    lose(here)
    answer = call("check", "--repair", "--json")
    bare, whole = answer.json["tables"]
    assert (answer.code, bare["table"], "no Delta log" in bare["problem"]) == (6, "bare", True)
    assert (whole["sound"], whole["rebuilt"]["rows"]) == (True, 2)


def test_repairing_makes_no_lake_where_none_is(call, here):
    assert call("check", "events", "--repair").code == 3
    assert list(here.iterdir()) == []
