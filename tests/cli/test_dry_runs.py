"""Every command that changes or deletes something can say beforehand what it would do, and then changes nothing."""

from __future__ import annotations

import click
import pytest

from windrow.cli.main import cli

READING = {
    ("cache", "stats"),
    ("completion",),
    ("config", "show"),
    ("describe",),
    ("lake", "show"),
    ("list",),
    ("pm", "check"),
    ("doctor",),
    ("pm", "inspect"),
    ("pm", "prune"),
    ("questdb", "check"),
    ("questdb", "inspect"),
    ("questdb", "scan"),
    ("sql",),
    ("tune",),
}
"""Commands that show something, besides those of `inspect`; files are written where they are named for the answer."""
OF_ITS_OWN = {("analyze",), ("demo",)}
"""These fill the statistics of a table, which change no answer, a cache of this installation, and a folder."""
DELETING = {("drop",), ("expire",), ("gc",)}


def commands(group=cli, place=()):
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from commands(command, (*place, name))
        else:
            yield (*place, name), command


ALL = dict(commands())
CHANGING = {place for place in ALL if place[0] != "inspect"} - READING - OF_ITS_OWN


def options_of(command):
    return {name: each for each in command.params for name in each.opts}


@pytest.mark.parametrize("place", sorted(CHANGING), ids=" ".join)
def test_what_changes_something_has_a_dry_run(place):
    assert options_of(ALL[place])["--dry-run"].is_flag


@pytest.mark.parametrize("place", sorted(DELETING), ids=" ".join)
def test_what_deletes_only_looks_until_told(place):
    assert options_of(ALL[place])["--yes"].is_flag


@pytest.mark.parametrize("place", sorted({*READING, *OF_ITS_OWN}), ids=" ".join)
def test_what_shows_has_none(place):
    assert "--dry-run" not in options_of(ALL[place])


def test_one_of_both_words_is_given(call, events):
    for command in ("drop", "gc", "expire"):
        answer = call(command, "events", "--dry-run", "--yes")
        assert answer.code == 2
        assert "give one of them" in answer.err


class TestNothingIsChanged:
    """By commands whose dry run has no test elsewhere."""

    def test_expire_and_gc(self, call, events):
        for command in ("drop", "gc", "expire"):
            assert call(command, "events", "--dry-run").out == call(command, "events").out

    def test_check_with_repair(self, call, events, here):
        for file in here.glob("lake/events/**/_*.pm"):
            file.unlink()
        found = call("check", "events", "--repair", "--dry-run", "--json")
        assert (found.code, found.json["sound"]) == (6, False)
        assert list(here.glob("lake/events/**/_*.pm")) == []
        assert call("check", "events", "--repair").code == 0

    def test_pm_build(self, call, events, here):
        file = next(here.glob("lake/events/**/*.parquet"))
        answer = call("pm", "build", str(file), "-o", "new.pm", "--dry-run", "--json")
        assert answer.json["dry_run"]
        assert not (here / "new.pm").exists()
