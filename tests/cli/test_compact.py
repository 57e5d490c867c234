"""Compaction from the command line."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest


@pytest.fixture
def many(call, metrics):
    """The table, with two splits more in each window."""
    from windrow import connect

    from .conftest import point, write_points

    with connect("lake") as lake:
        for host in "xy":
            seconds = (1_700_000_000, 1_700_001_000)
            write_points(lake.table(metrics), [point(host, second, 3.0) for second in seconds])
    return metrics


def test_small_splits_become_large_ones(call, many):
    rows = call("sql", "select * from metrics order by all", "--json").json
    answer = call("compact", many)
    assert answer.code == 0, answer.err
    assert answer.out.startswith("compacted\n")
    assert [row["splits"] for row in call("inspect", "windows", many, "--json").json] == [1, 1, 1]
    assert call("sql", "select * from metrics order by all", "--json").json == rows


def test_programs_get_the_counts(call, many):
    found = call("compact", many, "--json").json
    assert (found["state"], found["planned"], found["done"], found["failed"]) == ("done", 2, 2, 0)
    assert (found["splits_in"], found["splits_out"], found["problems"]) == (7, 2, [])


def test_a_dry_run_says_what_it_costs_and_gains_and_changes_nothing(call, many):
    before = call("inspect", "commits", many, "--json").json
    found = call("compact", many, "--dry-run", "--json").json
    assert (found["merges"], found["forecast"]["files_before"], found["forecast"]["files_after"]) == (2, 8, 3)
    assert found["left"] == {"it is alone in its window": 1}
    answer = call("compact", many, "--dry-run")
    assert "would merge in metrics" in answer.out
    assert "it is alone in its window" in answer.out
    assert call("inspect", "commits", many, "--json").json == before
    assert call("inspect", "runs", many, "--json").json == []


def test_a_dry_run_says_why_splits_of_a_former_sort_schema_stay_apart(call, many):
    call("set", many, "sort=host|timestamp/V2")
    found = call("compact", many, "--dry-run", "--json").json
    assert [(each["setting"], each["now"], each["splits"]) for each in found["apart"]] == [
        ("sort", "host|timestamp/V2", 8)
    ]
    out = call("compact", many, "--dry-run").out
    assert "and is host|timestamp/V2: 8 splits in 3 windows stay apart; a merge keeps one sort order" in out


def test_why_names_every_split(call, many):
    found = call("compact", many, "--dry-run", "--why", "--json").json["decisions"]
    assert [(row["action"], row["splits"]) for row in found] == [("leave", 1), ("merge", 4), ("merge", 3)]
    assert found[1]["why"] == "the window is closed: 4 splits become 1"
    assert len(found[1]["split_ids"]) == 4
    assert found[1]["split_ids"][0] in call("compact", many, "--dry-run", "--why").out


def test_one_window_alone(call, many):
    assert call("compact", many, "--window", "2023-11-14T22:20", "--json").json["done"] == 0
    assert call("compact", many, "--window", "2023-11-14T22:30", "--json").json["done"] == 1


def test_how_merges_are_compared_is_an_option_and_a_setting(call, many, monkeypatch):
    from windrow.compaction import merge_task
    from windrow.merging.splits import merge_splits

    compared = []

    def merge(store, splits, settings, *more, verify, **others):
        compared.append(verify or settings.verify)
        return merge_splits(store, splits, settings, *more, verify=verify, **others)

    monkeypatch.setattr(merge_task, "merge_splits", merge)
    assert call("compact", many, "--window", "2023-11-14T22:13:20Z", "--verify", "sample").code == 0
    assert compared == ["sample"]
    assert call("set", many, "verify=sample").code == 0
    assert call("compact", many, "--verify", "full").code == 0
    assert compared == ["sample", "full"]


def test_nothing_to_do(call, metrics):
    assert call("compact", metrics, "--window", "overflow", "--dry-run").out.startswith("nothing to merge in metrics")


def test_merges_and_runs_are_listed(call, many):
    call("compact", many)
    merges = call("inspect", "merges", many, "--json").json
    assert [(row["splits_in"], row["splits_out"]) for row in merges] == [(3, 1), (4, 1)]
    (run,) = call("inspect", "runs", many, "--json").json
    assert (run["state"], run["done"], run["run_id"]) == ("done", 2, merges[0]["run"])
    assert "the window is closed" in call("inspect", "merges", many).out
    assert "done" in call("inspect", "runs", many).out


def test_failures_are_told_and_end_with_a_code_of_their_own(call, many, here):
    (gone, *_) = [row for row in call("inspect", "splits", many, "--json").json if "1699999200" in row["key"]]
    (here / "lake" / gone["key"]).unlink()
    answer = call("compact", many)
    assert answer.code == 5
    assert "quarantine" in answer.out
    assert gone["split_id"] in answer.out
    (kept_away,) = call("inspect", "quarantine", many, "--json").json
    assert (kept_away["split_id"], gone["key"] in kept_away["reason"]) == (gone["split_id"], True)
    assert call("compact", many, "--json").json["done"] == 1
    # Still gone, so it is found out again.
    assert call("compact", many, "--pardon", "--json").json["failed"] == 1


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("nothing",), 3, "no table 'nothing'"),
        (("metrics", "--window", "soon"), 2, "'soon' is no moment"),
        (("metrics", "--memory", "much"), 2, "--memory: 'much' is not a size"),
        (("metrics", "--why"), 2, "add --dry-run"),
        (("metrics", "--dry-run", "--watch"), 2, "leave --watch"),
        (("metrics", "--threads", "0"), 2, "--threads"),
        (("metrics", "--verify", "half"), 2, "--verify"),
    ],
)
def test_bad_input_is_refused(call, metrics, arguments, code, message):
    answer = call("compact", *arguments)
    assert (answer.code, message in answer.err) == (code, True), answer.err


def test_watching_compacts_until_it_is_interrupted(call, many, here):
    command = [sys.executable, "-m", "windrow", "compact", many, "--watch", "--every", "0.2"]
    watch = subprocess.Popen(command, cwd=here, stdout=subprocess.PIPE, text=True, env={**os.environ})
    try:
        assert watch.stdout.readline() == "compacted\n"
        deadline = time.monotonic() + 60
        while call("inspect", "runs", many, "--json").json[0]["state"] != "done" and time.monotonic() < deadline:
            time.sleep(0.05)
        watch.send_signal(signal.SIGINT)
        out, _ = watch.communicate(timeout=60)
    finally:
        watch.kill()
    assert watch.returncode == 0
    assert "watched metrics: 1 runs" in out


WRITES = """
import types
import click
from windrow.cli.compact import _stopping
from windrow.cli.output import TextOutput

with _stopping(types.SimpleNamespace(output=TextOutput())) as cancelled:
    while not cancelled.is_set():
        click.echo("a line")
"""


def test_ctrl_c_may_come_in_the_middle_of_a_line():
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    with subprocess.Popen(
        [sys.executable, "-c", WRITES], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=buffered
    ) as writer:
        assert writer.stdout.readline() == "a line\n"
        # Nobody reads on, so soon the writer waits inside of a write.
        time.sleep(1)
        writer.send_signal(signal.SIGINT)
        time.sleep(0.2)
        out, err = writer.communicate(timeout=60)
    assert (writer.returncode, err) == (0, "")
    assert out.count("finishing the merges that run") == 1
